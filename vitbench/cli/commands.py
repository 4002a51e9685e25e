"""What the commands do once their arguments are read."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from vitbench.claims import CLAIMS
from vitbench.cli.errors import Terminated
from vitbench.config import BadStudy, DatasetEntry, Loaded, Mistake, find, load
from vitbench.config.load import shipped_studies
from vitbench.config.strict_yaml import YamlRefused, parse
from vitbench.datasets import DATASETS
from vitbench.grid import BadSelection, Run, select
from vitbench.live import running
from vitbench.metrics import METRICS
from vitbench.models import MODELS
from vitbench.options import BadOption
from vitbench.record import DamagedRecord, Failure
from vitbench.registry import load_plugin
from vitbench.report.frame import Frame
from vitbench.store import ResultStore, write_atomically
from vitbench.study import costs
from vitbench.study.drive import Options, Summary
from vitbench.study.execute import execute
from vitbench.study.folder import StudyFolder
from vitbench.study.meaning import resolved
from vitbench.units import duration


def output() -> Console:
    """Standard output; a pipe gets 120 columns."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = 120  # a pipe has no width; tables should not be cut at 80
    return console


def run_study(study: str, results: Path, overrides: list[str], only: str | None, options: Options, *,
              allow_plugins: bool, quiet: bool) -> int:
    """Load, check, execute, report; the exit status."""
    from vitbench.cli.display import display

    loaded = load(find(study, results), overrides)
    refuse_strange_plugins(loaded, results, allow_plugins)
    meaning, names = resolved(loaded, import_plugins=True)
    folder = StudyFolder(loaded.name, meaning, names, ResultStore(results / loaded.name))
    console = output()
    runs = _only(folder, only)
    try:
        with display(console, runs, quiet) as shown:
            shown.note(f"study {loaded.name}, from {loaded.source}")
            summary = execute(folder, lambda of: _only(of, only), loaded.plugin_files(), options, shown)
    except (KeyboardInterrupt, Terminated) as stop:
        print("stopped; finished runs are kept, the same command goes on from here", file=sys.stderr)
        return 143 if isinstance(stop, Terminated) else 130
    folder = folder.again()
    _closing(console, folder, _only(folder, only), summary)
    return 1 if summary.failed else 0


def _only(folder: StudyFolder, only: str | None) -> list[Run]:
    try:
        return select(folder.runs, only)
    except BadSelection as error:
        raise BadSelection(f"--only {error}") from None


def refuse_strange_plugins(loaded: Loaded, results: Path, allowed: bool) -> None:
    """Raise BadStudy where a plug-in is code from outside the study's own folder and that was not allowed."""
    home = loaded.folder.resolve()
    stored = (loaded.folder / "study.yaml").is_file() or home.is_relative_to(results.resolve())
    strange = [path for path in loaded.plugin_files().values() if stored or not path.resolve().is_relative_to(home)]
    if strange and not allowed:
        raise BadStudy(loaded.source, [Mistake("plugins", f"{path} is code from outside the study's own folder; "
                                               "read it, then add --allow-plugins") for path in strange])


def _closing(console: Console, folder: StudyFolder, chosen: list[Run], summary: Summary) -> None:
    """The table of the chosen runs and where the page of all lies; failures last, where they are seen."""
    from vitbench.cli.show import print_table

    began, page = time.monotonic(), folder.store.folder / "report.html"
    frame = folder.frame()
    if not summary.ended and not summary.left:
        console.print(f"nothing to do: all {summary.already} runs are there")
    if summary.ended or summary.study_changed or _outdated(folder, frame):
        print_table(console, frame if len(chosen) == len(folder.runs) else folder.frame(chosen))
        page = write_report(folder, frame)
        costs.keep(folder.store.folder.parent, {}, closing_seconds=time.monotonic() - began)
    if summary.already and summary.done:
        console.print(f"{summary.already} runs were there already, {summary.done} are new")
    if summary.forecast_seconds and not summary.left:
        wrong = summary.seconds / summary.forecast_seconds - 1
        console.print(f"the runs took {duration(summary.seconds)}; forecast {duration(summary.forecast_seconds)} "
                      f"({wrong:+.0%})")
    for end in summary.failed:
        console.print(f"failed: {end.spec.run_id}: {end.reason} (vitbench logs {end.spec.run_id})")
    for one in folder.searches:
        if one.search.ended and one.search.best is None:
            console.print(f"no trial of {', '.join((one.search.setting, *one.search.condition))} gave a number, so "
                          "this cell has no runs; other values in tuning.space or more trials may give one (vitbench "
                          f"trials {folder.name})")
    if summary.stopped:
        console.print(f"stopped: {summary.stopped}; {summary.left} runs are left, the same command goes on from here")
    console.print(f"report: {page}")


def _outdated(folder: StudyFolder, frame: Frame) -> bool:
    """True where the kept table or page is missing, or shows other records: a driver may have been killed since."""
    from vitbench.report import render
    from vitbench.report.tables import summary

    table, page = folder.store.folder / "table.md", folder.store.folder / "report.html"
    now = render.markdown(summary(frame, mixed_devices=True)).encode()
    return not page.exists() or not table.is_file() or table.read_bytes() != now


def write_report(folder: StudyFolder, frame: Frame) -> Path:
    """Write report.html and table.md; the page's path."""
    from vitbench.report import render
    from vitbench.report.html import page
    from vitbench.report.tables import summary

    write_atomically(folder.store.folder / "table.md", render.markdown(summary(frame)))
    path = folder.store.folder / "report.html"
    write_atomically(path, page(frame, folder.study, folder.store.picture))
    return path


def show_status(folder: StudyFolder, *, as_json: bool, quiet: bool) -> None:
    """How many runs are done, running, failed and to do, for each model; opens no record."""
    from vitbench.cli.show import print_status
    from vitbench.study import progress

    live = running(folder.store.folder / "live")
    if as_json:
        print(json.dumps(progress.as_json(folder, live), indent=1))
    elif quiet:
        _, total = progress.counts(folder, live)
        print(f"{total.total()} runs: {', '.join(f'{total[state]} {state}' for state in progress.STATES)}")
    else:
        print_status(output(), folder, live)


def show_logs(run_id: str, results: Path) -> None:
    """What a run left. Raises BadStudy where none or several begin with `run_id`."""
    found = sorted(p for p in results.glob(f"*/runs/{run_id}*") if run_id.isalnum())
    if len({p.name for p in found}) != 1:
        several = ", ".join(p.name for p in found[:5])
        raise BadStudy(run_id, [Mistake("", f"{len(found)} runs in {results} begin with this id"
                                            + (f": {several}" if several else "; `vitbench export` lists the ids"))])
    try:
        ended = ResultStore(found[0].parent.parent).read(found[0].name)
    except DamagedRecord as error:
        raise BadStudy(run_id, [Mistake("", f"this run's record is damaged ({error}); `vitbench run` does it "
                                            "again")]) from None
    spec = ended.spec
    print(f"run {ended.run_id}: {spec.model} {spec.size or ''} on {spec.dataset_text}, "
          f"{spec.share}, seed {spec.seed}")
    if isinstance(ended, Failure):
        print(f"failed: {ended.reason}\n{ended.traceback}".rstrip())
    else:
        print(f"{ended.outcome}: {ended.reason or f'test accuracy {ended.final.test_accuracy:.4f}'}")


def show_model(model: str, dataset: str, options: list[str], plugin: Path | None, *, as_json: bool) -> None:
    """A model's card at a dataset's image size, of one size or of each. Loads torch, and runs the plug-in."""
    from vitbench.cli.show import print_cards
    from vitbench.study.card import cards

    if plugin is not None:
        load_plugin(plugin)
    name, colon, size = model.partition(":")
    found = cards(name, size if colon else None, dataset_entry(dataset), parse("{}", options))
    if as_json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        print_cards(output(), found)


def dataset_entry(text: str) -> DatasetEntry:
    """'digits', or 'far_pairs:distance=12,canvas=32'. Raises BadOption."""
    name, _, options = text.partition(":")
    try:
        return DatasetEntry(name=name, options=parse("{}", options.split(",") if options else []))
    except YamlRefused as error:
        raise BadOption(f"--dataset {text!r}: {error}; write NAME or NAME:KEY=VALUE,KEY=VALUE") from None


def _models(_: Path) -> Iterator[str]:
    for name in MODELS.names():
        inner = MODELS.open_names(name)
        if inner is not None:
            yield f"{name}/<name>\tfamily by name\t{len(inner):,} names"
            continue
        meta = MODELS.get(name).meta
        yield f"{name}\t{meta.family}\t{' '.join(meta.sizes) or 'one size'}"


def _datasets(_: Path) -> Iterator[str]:
    for name in DATASETS.names():
        meta = DATASETS.get(name).meta
        yield (f"{name}\t{sum(meta.train_counts)} train, {sum(meta.test_counts)} test\t{meta.num_classes} classes\t"
               f"{meta.image.size}x{meta.image.size}x{meta.image.channels}"
               + (f"\toptions {' '.join(meta.options.model_fields)}" if meta.options.model_fields else ""))


def _studies(results: Path) -> Iterator[str]:
    files = {p.stem: p for folder in (shipped_studies(), Path("configs/studies")) for p in folder.glob("*.yaml")}
    files |= {p.parent.name: p for p in results.glob("*/study.yaml")}
    for name, path in sorted(files.items()):
        try:
            loaded = load(path)
        except BadStudy:
            loaded = None
        question = loaded.study.question if loaded and loaded.study else "not readable"
        yield f"{name}\t{' '.join(question.split())}"


def _claims(_: Path) -> Iterator[str]:
    for name in CLAIMS.names():
        yield f"{name}\t{CLAIMS.get(name).meta.sentence}"


def _metrics(_: Path) -> Iterator[str]:
    for name in METRICS.names():
        meta = METRICS.get(name).meta
        yield (f"{name}\tversion {meta.version}\t{'a number a class' if meta.per_class else 'a number'}\t{meta.unit}\t"
               f"{meta.better} is better\tundefined {meta.undefined}\t{meta.meaning}\t{meta.source}")


def _probes(_: Path) -> Iterator[str]:
    from vitbench.probes import PROBES  # with the library that draws, which no other command here needs

    for name in PROBES.names():
        meta = PROBES.get(name).meta
        defaults = meta.options().model_dump(mode="json")
        options = " ".join(f"{key}={json.dumps(value)}" for key, value in defaults.items())
        yield f"{name}\t{meta.statement}\tlooks at {', '.join(meta.looks_at)}\t{options or 'no options'}"


LISTS: dict[str, Callable[[Path], Iterator[str]]] = {"models": _models, "datasets": _datasets, "metrics": _metrics,
                                                     "studies": _studies, "claims": _claims, "probes": _probes}

"""The command `plan`: what a study will take, for people and as JSON."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from vitbench.cli.commands import output, refuse_strange_plugins
from vitbench.cli.show import grid_of
from vitbench.config import find, load
from vitbench.stats.intervals import FEW_SEEDS
from vitbench.store import ResultStore
from vitbench.study.drive import Options
from vitbench.study.folder import StudyFolder
from vitbench.study.meaning import resolved
from vitbench.study.memory import allowed_bytes
from vitbench.study.plan import ModelPlan, Plan, plan, planned_placement
from vitbench.study.resolution import LEAST_PAIRS
from vitbench.study.slow import TooSlow
from vitbench.units import byte_text, duration


def plan_study(study: str, results: Path, overrides: list[str], options: Options, *, probe: bool,
               deviation: float | None, allow_plugins: bool) -> tuple[StudyFolder, Plan]:
    """From the study file, the results folder and the cost file; with `probe` a few steps are run first."""
    loaded = load(find(study, results), overrides)
    if probe:
        refuse_strange_plugins(loaded, results, allow_plugins)
    meaning, names = resolved(loaded, import_plugins=probe)
    folder = StudyFolder(loaded.name, meaning, names, ResultStore(results / loaded.name))
    placement = planned_placement(folder, workers=options.workers, runs_per_device=options.runs_per_device)
    if probe:
        from vitbench.study.measure import measure_missing

        measure_missing(folder, placement, tuple(loaded.plugin_files().values()),
                        lambda line: print(line, file=sys.stderr), allow_slow=options.allow_slow)
    return folder, plan(folder, placement, deviation=deviation)


def show_plan(folder: StudyFolder, found: Plan, *, as_json: bool, quiet: bool, allow_slow: bool) -> None:
    """Tables and sentences for people, only these where `quiet`; or one JSON object. Raises TooSlow, when all is shown,
    unless that is allowed."""
    _show(folder, found, as_json=as_json, quiet=quiet)
    if found.too_slow and not allow_slow:
        raise TooSlow(found.too_slow)
    if found.too_slow and not as_json:
        output().print(found.too_slow)


def _show(folder: StudyFolder, found: Plan, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        models = {model.label: _counts(model) for model in found.models}
        print(json.dumps(asdict(found) | {"models": models, "totals": _counts(found.totals)}, indent=1,
                         ensure_ascii=False))
        return
    out = output()
    if not quiet:
        _print_tables(out, found)
    for line in _sentences(folder, found):
        out.print(line)


def _counts(model: ModelPlan) -> dict[str, object]:
    return {key: value for key, value in asdict(model).items() if key != "label"}


def _print_tables(out: Console, found: Plan) -> None:
    shares = grid_of("share", "drawn", "train", "validation", "per class")
    for share in found.shares:
        low, high = share["least_per_class"], share["most_per_class"]
        shares.add_row(share["share"], str(share["drawn_images"]), str(share["train_images"]),
                       str(share["val_images"] or "none"), str(low) if low == high else f"{low}-{high}")
    out.print(shares)
    models = grid_of("model", "runs", "done", "failed", "to do", "seconds a run", "in all", "memory a run")
    for model in (*found.models, found.totals):
        models.add_row(*_row(model))
    out.print(models)


def _row(model: ModelPlan) -> tuple[Text | str, ...]:
    counts = (Text(model.label), str(model.runs), str(model.done), str(model.failed), str(model.to_do))
    if not model.to_do:
        return (*counts, "", "", "")
    seconds, peak = model.seconds, model.peak_memory_bytes
    if seconds is None or peak is None:
        return (*counts, "not measured", "", "")
    return (*counts, f"{seconds / model.to_do:,.1f}", duration(seconds), byte_text(peak))


def _sentences(folder: StudyFolder, found: Plan) -> list[str]:
    lines, totals = folder.remarks(), found.totals
    if found.trials:
        lines.append(f"{found.trials:,} tuning trials to do, in {len(folder.searches)} searches")
    if found.unmeasured:
        lines.append(f"never measured here: {', '.join(found.unmeasured)}; `vitbench plan STUDY --probe` measures a "
                     "few steps")
    elif totals.to_do and found.seconds is not None and found.peak_memory_bytes is not None:
        lines.append(f"forecast: {duration(found.seconds)} with {found.workers} at a time on {found.device}, "
                     f"{byte_text(found.peak_memory_bytes)} of memory")
        if found.device == "cpu" and found.peak_memory_bytes > allowed_bytes():
            lines.append(f"that does not fit: {byte_text(allowed_bytes())} of memory may be used; take fewer --workers")
    seeds = len(folder.study.seeds)
    if seeds < FEW_SEEDS:
        lines.append("1 seed: no cell will have an interval" if seeds == 1 else
                     f"{seeds} seeds: every interval will be marked 'few seeds'; from {FEW_SEEDS} on none is")
    if seeds > 1:  # else there is no difference that they could show
        lines.append(found.resolution.sentence if found.resolution else
                     "which differences these seeds can show: say --deviation, or run a part of the study first "
                     f"(two models, {LEAST_PAIRS} seeds)")
    return lines

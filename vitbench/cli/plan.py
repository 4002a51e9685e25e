"""The command `plan`: what a study will take, for people and as JSON."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from vitbench.cli.commands import output, refuse_strange_plugins
from vitbench.cli.display import duration
from vitbench.cli.show import grid_of
from vitbench.config import find, load
from vitbench.environment import usable_cores
from vitbench.grid import distinct
from vitbench.stats.intervals import FEW_SEEDS
from vitbench.store import ResultStore
from vitbench.study import costs
from vitbench.study.folder import StudyFolder
from vitbench.study.meaning import resolved
from vitbench.study.plan import ModelPlan, Plan, plan, planned_device


def plan_study(study: str, results: Path, overrides: list[str], workers: int | None, *, probe: bool,
               deviation: float | None, allow_plugins: bool) -> tuple[StudyFolder, Plan]:
    """From the study file, the results folder and the cost file; with `probe` a few steps are run first."""
    loaded = load(find(study, results), overrides)
    if probe:
        refuse_strange_plugins(loaded, results, allow_plugins)
    meaning, names = resolved(loaded, import_plugins=probe)
    folder = StudyFolder(loaded.name, meaning, names, ResultStore(results / loaded.name))
    workers = workers or (1 if planned_device(folder) == "cuda" else usable_cores())
    if probe:
        _measure_missing(folder, loaded.plugin_files(), workers)
    return folder, plan(folder, workers, deviation=deviation)


def _measure_missing(folder: StudyFolder, plugins: dict[str, Path], workers: int) -> None:
    from vitbench.study.measure import measure

    known, device, ended = costs.read(folder.store.folder.parent).kinds, planned_device(folder), folder.store.ids()
    to_do = [run for run in distinct(folder.runs) if run.spec.run_id not in ended]
    workers = min(workers, max(1, len(to_do)))
    missing = [run for run in to_do if costs.kind_of(run.spec, device, shared=workers > 1) not in known]
    if missing:
        measure(folder, missing, plugins, workers, lambda line: print(line, file=sys.stderr))


def show_plan(folder: StudyFolder, found: Plan, *, as_json: bool, quiet: bool) -> None:
    """Tables and sentences for people, only these where `quiet`; or one JSON object."""
    if as_json:
        print(json.dumps(asdict(found), indent=1, ensure_ascii=False))
        return
    out = output()
    if not quiet:
        _print_tables(out, found)
    for line in _sentences(folder, found):
        out.print(line)


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
    return (*counts, f"{seconds / model.to_do:.3g}", duration(seconds), f"{peak / 1e6:,.0f} MB")


def _sentences(folder: StudyFolder, found: Plan) -> list[str]:
    lines = []
    totals = found.totals
    twice = len(folder.runs) - len(distinct(folder.runs))
    if twice:
        lines.append(f"{twice} runs stand under a second label; they are done once")
    lines += [remark for remark in (folder.earlier_runs(), folder.exploratory()) if remark]
    if found.unmeasured:
        lines.append(f"never measured here: {', '.join(found.unmeasured)}; `vitbench plan --probe` measures a few "
                     "steps")
    elif totals.to_do and found.seconds is not None and found.peak_memory_bytes is not None:
        lines.append(f"forecast: {duration(found.seconds)} with {found.workers} at a time on {found.device}, "
                     f"{found.peak_memory_bytes / 1e9:.2g} GB of memory")
    seeds = len(folder.study.seeds)
    if seeds < FEW_SEEDS:
        lines.append(f"{seeds} seeds: every interval will be marked 'few seeds'; from {FEW_SEEDS} on none is")
    lines.append(found.resolution.sentence if found.resolution else
                 "which differences these seeds can show: say --deviation, or run a part of the study first")
    return lines

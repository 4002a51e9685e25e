"""Executing a study: the runs that the store lacks, given to an engine until all have ended."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from vitbench.environment import code_version
from vitbench.grid import Run, model_of
from vitbench.live import clear
from vitbench.record import DamagedRecord, Execution, Failure
from vitbench.store import ResultStore
from vitbench.study import costs
from vitbench.study.drive import Display, Driver, Options, Summary
from vitbench.study.engines.local import LocalEngine, imports_of
from vitbench.study.folder import StudyFolder
from vitbench.study.forecast import forecasts, refuse_short_budgets, search_forecasts, wall_seconds
from vitbench.study.measure import PREFIX, Bench, NotMeasured, probe_store
from vitbench.study.memory import refuse_too_large
from vitbench.study.place import Machine, Placement, choose_place
from vitbench.study.searches import FOLDER, JOURNAL, Wanted, once
from vitbench.study.slow import doubtful, refuse_too_slow, too_slow
from vitbench.units import duration

TRIAL_IMPORTS = ("vitbench.training.trial", "sklearn.model_selection")  # folds


def to_do(runs: Iterable[Run], store: ResultStore, *, retry_failed: bool) -> tuple[list[Run], list[str]]:
    """Runs without a whole record or whose worker died, and a line for each damaged one, which is set aside.

    `runs` are distinct. Raises ForeignRecord for a record of another version.
    """
    todo, damaged, there = [], [], store.ids()
    for run in runs:
        run_id = run.spec.run_id
        if run_id not in there:
            todo.append(run)
            continue
        try:
            found = store.read(run_id)
        except DamagedRecord as error:
            place = store.set_aside(run_id, "damaged")
            damaged.append(f"{run_id} ({run.label}, {run.spec.share}, seed {run.spec.seed}): {error}; moved to {place}")
            todo.append(run)
            continue
        if isinstance(found, Failure) and (retry_failed or found.crash):
            store.set_aside(run_id, "replaced")
            todo.append(run)
    return todo, damaged


Choose = Callable[[StudyFolder], list[Run]]


def execute(folder: StudyFolder, choose: Choose, plugins: dict[str, Path], options: Options,
            display: Display) -> Summary:
    """Do the chosen runs that the folder lacks, and the trials that decide them, keeping what ends at once.

    Raises StoreError where results cannot be written, another driver is at work or earlier runs saw other images,
    DatasetError where the dataset cannot be had. KeyboardInterrupt ends the running workers and passes on.
    """
    store = folder.store
    store.prepare()
    with store.locked():
        store.clean()
        if any(not one.search.ended for one in folder.searches):
            from vitbench.study.sampler import open_journal  # Optuna: half a second that most need not wait

            open_journal(store.folder / FOLDER / JOURNAL)  # a damaged one is told before anything is written
        changes = folder.write(plugins)
        for change in changes:
            display.note(f"the study changed since its last run: {change}")
        for remark in folder.remarks():
            display.note(remark)
        summary = Summary(study_changed=bool(changes))
        work = _Work.of(folder, choose, options, display)
        summary.already, summary.left = work.already, len(work.todo) + len(work.pending)
        if work.todo or work.searches:
            try:
                # The copies in the results folder: an edit while the study runs changes no run of it.
                copies = tuple(store.folder / "plugins" / path.name for path in plugins.values())
                _start(folder, work, _Driving(copies, options, display, summary), choose)
            finally:
                clear(store.folder / "live")
                costs.keep(store.folder.parent, summary.measured, start_seconds=summary.start_seconds)
        return summary


@dataclass(frozen=True)
class _Work:
    """What is left of the chosen runs: those that can start, those that wait for a search, and the searches."""

    todo: list[Run]
    pending: list[Run]
    searches: list[Wanted]
    already: int

    @classmethod
    def of(cls, folder: StudyFolder, choose: Choose, options: Options, display: Display) -> "_Work":
        """Sets damaged records aside. Raises ForeignRecord."""
        chosen = {run.key for run in choose(folder)}
        ids = {key[-1] for key in chosen}
        # Of all, in order: a priority may name runs that --only left out. One run may stand under two labels.
        wanted = [run for run in folder.in_order() if run.key in chosen or (not run.pending and run.spec.run_id in ids)]
        pending = [run for run in wanted if run.pending]
        todo, damaged = to_do([run for run in wanted if not run.pending], folder.store,
                              retry_failed=options.retry_failed)
        for line in damaged:
            display.note(f"damaged record, done again: {line}")
        cells = {(run.setting, run.condition) for run in pending}
        asked = [one for one in folder.searches if (one.search.setting, one.search.condition) in cells]
        for one in (one.search for one in asked if one.search.ended):
            display.note(f"no trial of {one.label}, {one.share}, {one.setting} gave a number: its runs cannot be done; "
                         "search elsewhere, or with more trials")
        searches = [one for one in once(asked) if not one.search.ended]
        return cls(todo, pending, searches, len(wanted) - len(pending) - len(todo))


@dataclass(frozen=True)
class _Driving:
    """How the work is driven, and who hears of it."""

    plugins: tuple[Path, ...]
    options: Options
    display: Display
    summary: Summary


def _start(folder: StudyFolder, work: _Work, how: _Driving, choose: Choose) -> None:
    options, display, summary = how.options, how.display, how.summary
    began, todo = time.monotonic(), [*work.todo, *work.pending]
    trials = sum(one.search.left for one in work.searches)
    display.note(f"{len(todo)} runs{f' and {trials} tuning trials' if trials else ''} to do; the workers load torch "
                 "first, once")
    with LocalEngine([*imports_of(todo), *TRIAL_IMPORTS] if trials else imports_of(todo)) as engine:
        machine = engine.inspect(folder.study.dataset, how.plugins, {run.label: model_of(run) for run in todo},
                                 tuple(regime for regime in folder.study.regimes if regime != "none"))
        for regime, png in machine.pictures.items():
            folder.store.write_picture(regime, png)
        summary.start_seconds = time.monotonic() - began - machine.load_seconds
        folder.refuse_other_images(machine.dataset_sha256)
        place = choose_place(folder.store, folder.study.device, machine, code_version())
        engine.placement = Placement.of(place.device, machine.devices, workers=options.workers,
                                        runs_per_device=options.runs_per_device, runs=max(len(todo), trials))
        refuse_short_budgets(todo, folder.resolved, machine.costs)
        known = costs.read(folder.store.folder.parent)
        forecast = forecasts(todo, folder.resolved, known, engine.placement)
        if place.device == "cpu":
            refuse_too_large(todo, folder.resolved, machine.costs, forecast, engine.placement.workers)
        if _look_for_slow(folder, todo, machine, engine, place, how):
            known = costs.read(folder.store.folder.parent)
            forecast = forecasts(todo, folder.resolved, known, engine.placement)
        expected = [*forecast.values(), *search_forecasts(work.searches, folder.resolved, known, engine.placement)]
        summary.forecast_seconds = wall_seconds(expected, engine.placement.workers)
        seconds = "" if summary.forecast_seconds is None else f"; forecast: {duration(summary.forecast_seconds)}"
        display.note(f"{engine.placement.workers} at a time on {place.device}{seconds}")
        driver = Driver(folder, engine, place, how.plugins, options, display, summary, waiting=len(work.pending))
        driver.drive(work.todo)
        if work.searches and not summary.stopped:
            driver.tune(work.searches)
        if work.pending:
            # What failed in this session failed: it is not tried a second time.
            rest = _Work.of(folder.again(), choose, replace(options, retry_failed=False), display)
            driver.waiting = len(rest.pending)
            driver.drive(rest.todo)


def _look_for_slow(folder: StudyFolder, todo: list[Run], machine: Machine, engine: LocalEngine, place: Execution,
                   how: _Driving) -> bool:
    """Raise TooSlow, or only tell it where that is allowed; True where kinds of runs were measured to find out."""
    known, arguments = costs.read(folder.store.folder.parent), (todo, folder.resolved, machine.costs)
    if how.options.allow_slow:
        told = too_slow(*arguments, known, engine.placement)
        if told:
            how.display.note(f"{told} (--allow-slow)")
        return False
    refuse_too_slow(*arguments, known, engine.placement)
    doubts = doubtful(*arguments, known, engine.placement)
    if doubts:
        with TemporaryDirectory(prefix=PREFIX) as temporary:
            bench = Bench(folder, engine, probe_store(temporary), place, how.plugins)
            try:
                bench.measure(doubts, lambda line: how.display.note(f"{line}, whose runs may be long"))
            except NotMeasured as error:
                how.display.note(str(error))  # the run itself will tell why, in its failure
        refuse_too_slow(*arguments, costs.read(folder.store.folder.parent), engine.placement)
    return bool(doubts)

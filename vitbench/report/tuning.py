"""What tuning did: one row a tuned cell, and one a trial."""

from collections.abc import Sequence

from vitbench.report import notes
from vitbench.report.cells import Cell, CellKey, cells, paired
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, plain, where_varied, word
from vitbench.report.wording import NONE, interval_text, percent, shortened, signed_interval
from vitbench.search import Search, Trial
from vitbench.stats.intervals import t_interval
from vitbench.stats.search import expected_best, quartiles

MANY = 5  # trials: where a column tells what a short search would have found
GIVEN_ONE = "Tuned intervals are given one tuning outcome: they do not hold the chance of the search itself."

COLUMNS = (
    Column("label", "model"), Column("share", "share"), Column("regime", "regime"), Column("budget", "budget"),
    Column("setting", "setting"), Column("trials", "trials", numeric=True), Column("validation", "judged on"),
    Column("best", "best trial"), Column("edge", "edge"),
    Column("val_accuracy", "its validation accuracy, %", numeric=True),
    Column("quartiles", "all trials: quartiles, %", numeric=True),
    Column("best_of_1", "expected best of 1, %", numeric=True),
    Column("best_of_5", f"of {MANY}, %", numeric=True), Column("best_of_all", "of all, %", numeric=True),
    Column("default_accuracy", "default, test %", numeric=True),
    Column("tuned_accuracy", "tuned, test % [95 %]", numeric=True),
    Column("difference", "tuned minus default, points [95 %]", numeric=True),
    Column("difference_low", "", shown=False), Column("difference_high", "", shown=False), Column("notes", "notes"),
    *notes.RESTS_ON)


def marks(frame: Frame) -> dict[CellKey, str]:
    """For each tuned cell how long its search was, and whether it ended on an edge."""
    return {(*one.condition, one.setting): f"best of {len(one.trials)} trials{', edge' if one.edge else ''}"
            if one.best else "no trial gave a number" if one.ended else
            f"{len(one.trials)} of {one.tuning.trials} trials done" for one in frame.searches}


def tuning(frame: Frame) -> Table | None:
    """One row a search: its best trial, how much the choice mattered, and the tuned cell beside the default one."""
    if not frame.searches:
        return None
    found, chance = {cell.key: cell for cell in cells(frame)}, 1 / frame.resolved.num_classes
    identity = notes.identity(frame)
    pairs = [(found.get((*one.condition, one.setting)), found.get((*one.condition, "default")))
             for one in frame.searches]
    rows = tuple((*_row(one, *pair, chance), *notes.rests_on(filter(None, pair), identity))
                 for one, pair in zip(frame.searches, pairs, strict=True))
    values = {key: len({getattr(one, key) for one in frame.searches}) for key in ("regime", "budget", "setting")}
    return Table(f"Study {frame.study}: tuning", where_varied(COLUMNS, values), rows, (), _footer(frame))


def values(search: Search, chance: float) -> list[float]:
    """Validation accuracy of each trial; of one that diverged or failed, chance. Pruned ones have none."""
    return [chance if trial.val_accuracy is None else trial.val_accuracy for trial in search.trials
            if trial.state != "pruned"]


def _row(search: Search, tuned: Cell | None, default: Cell | None, chance: float) -> tuple[Entry, ...]:
    best = search.best
    found = values(search, chance)
    differences = paired(tuned, default) if tuned and default else []
    difference = t_interval(differences) if differences else None
    before = default.accuracy.mean if default and default.accuracy else None
    after = tuned.accuracy if tuned else None
    return (
        word(search.label), word(search.share), word(search.regime), word(search.budget), word(search.setting),
        Entry(len(search.trials), f"{len(search.trials)} of {search.tuning.trials}"),
        word(f"{search.validation}, {search.validation_images:,} images"),
        word(params_text(best) if best else None), word(", ".join(search.edge) or None),
        _share(best.val_accuracy if best else None), word(_quartiles(found) if found else None),
        *(_share(expected_best(found, k) if found and k <= len(found) else None) for k in (1, MANY)),
        _share(expected_best(found, len(found)) if found else None),
        _share(before), Entry(after.mean if after else None, interval_text(after)),
        Entry(difference.mean if difference else None, signed_interval(difference)),
        plain(difference.low if difference else None), plain(difference.high if difference else None),
        word(_notes(search)))


def params_text(trial: Trial) -> str:
    """'learning_rate 0.003, weight_decay 0.05'."""
    return ", ".join(f"{key} {value}" for key, value in trial.params.items())


def _share(value: float | None) -> Entry:
    return Entry(value, percent(value))


def _quartiles(found: Sequence[float]) -> str:
    return " / ".join(percent(value) for value in quartiles(found))


def _notes(search: Search) -> str | None:
    states = [f"{sum(trial.state == state for trial in search.trials)} {state}"
              for state in ("diverged", "failed", "pruned") if any(trial.state == state for trial in search.trials)]
    marks = ["edge"] if search.edge else []
    return "; ".join([*marks, *states, *([] if search.ended else ["search not ended"])]) or None


def _footer(frame: Frame) -> tuple[str, ...]:
    one = frame.searches[0].tuning
    space = "; ".join(f"{key} {dimension_text(of)}" for key, of in one.dimensions.items())
    return (
        f"The same space and number of trials for every model: {space}; sampler {one.sampler}"
        + (", weak trials ended early by successive halving" if one.pruner == "halving" else "")
        + "; each trial trained for the whole schedule on the tuning's own seeds from 10,000 on; judged by "
        f"{one.objective}.",
        GIVEN_ONE,
        "Edge: the best value lies on the edge of what was searched; a wider search might find a better one.",
        "Quartiles and expected best of k (with replacement; Dodge et al. 2019) of validation accuracy over the "
        "trials; a trial that diverged or failed counts as chance."
        + ("" if one.sampler == "random" else f" They describe random search, which {one.sampler} is not.")
        + (" Trials that were ended early have none and are left out: the others are too good." if
           one.pruner == "halving" else ""),
        *notes.cited(frame))


def dimension_text(dimension: object) -> str:
    """'0.0001 to 0.01 (log)', or '0, 0.05'."""
    if isinstance(dimension, list):
        return ", ".join(map(str, dimension))
    low, high, log = dimension.low, dimension.high, dimension.log  # type: ignore[attr-defined]
    return f"{low} to {high}{' (log)' if log else ''}"


TRIAL_COLUMNS = (
    Column("setting", "setting"), Column("label", "model"), Column("share", "share"), Column("regime", "regime"),
    Column("budget", "budget"), Column("trial", "trial", numeric=True), Column("params", "setting tried"),
    Column("state", "state"), Column("val_accuracy", "validation accuracy, %", numeric=True),
    Column("val_loss", "validation loss, nats", numeric=True), Column("seconds", "seconds", numeric=True),
    Column("best", "best"), Column("reason", "reason"))


def trials(frame: Frame) -> Table | None:
    """One row a trial, none left out. None without tuning."""
    if not frame.searches:
        return None
    rows = tuple(_trial(one, trial) for one in frame.searches for trial in one.trials)
    return Table(f"Study {frame.study}: tuning trials", TRIAL_COLUMNS, rows, (),
                 ("Judged on validation images of the tuning's own subset; no trial sees a test image.",))


def _trial(search: Search, trial: Trial) -> tuple[Entry, ...]:
    best = search.best is not None and search.best.number == trial.number
    loss = Entry(trial.val_loss, NONE if trial.val_loss is None else f"{trial.val_loss:.4g}")
    return (word(search.setting), word(search.label), word(search.share), word(search.regime), word(search.budget),
            Entry(trial.number, str(trial.number)), word(params_text(trial)), word(trial.state),
            _share(trial.val_accuracy), loss, Entry(trial.seconds, f"{trial.seconds:.3g}"),
            Entry(best, "best" if best else ""), word(shortened(trial.reason) if trial.reason else None))

"""Error against training images, measured, made non-increasing and fitted: one row a model, condition and size."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitbench.report import notes
from vitbench.report.cells import cells
from vitbench.report.frame import Frame
from vitbench.report.render import Column, Entry, Table, plain, rounded, where_varied, word
from vitbench.report.seed_curves import SeedCurves, curves_of
from vitbench.report.wording import NONE, interval_text, percent
from vitbench.spec import canonical_json, sha256_json
from vitbench.stats.curve_band import RESAMPLES, Band, band
from vitbench.stats.curve_choice import LearningCurve, learning_curve, standard_errors
from vitbench.stats.curves import FAMILIES, Curve
from vitbench.stats.intervals import FEW_SEEDS, Interval, t_interval
from vitbench.stats.monotone import falling

COLUMNS = (
    Column("label", "model"), Column("regime", "regime"), Column("budget", "budget"), Column("setting", "setting"),
    Column("train_images", "train images", numeric=True), Column("error", "error, % [95 %]", numeric=True),
    Column("error_low", "", shown=False), Column("error_high", "", shown=False),
    Column("falling", "non-increasing, %", numeric=True), Column("fitted", "fitted, % [95 %]", numeric=True),
    Column("fitted_low", "", shown=False), Column("fitted_high", "", shown=False), Column("outcome", "curve"),
    Column("family", "", shown=False), Column("parameters", "", shown=False), Column("reason", "", shown=False),
    Column("n", "seeds", numeric=True), Column("few_seeds", "", shown=False), Column("notes", "notes"), *notes.RESTS_ON)
FOOTER = (
    f"Fitted: the one of {', '.join(FAMILIES)} that foretells the largest sizes best, fitted to all of them, weighted "
    f"by 1/se². A picture and an interpolator: nothing is decided by it. Its band: {RESAMPLES} resamples of whole "
    "seeds, selection and fit repeated, fit +- t(.975, S-1) x deviation x sqrt(S/(S-1)).",
    "Ill-behaved: the error rises from one size to the next (the t interval of the paired difference lies above 0, "
    "level 1 - .05 over the number of steps), or every family misses a mean by more than the margin and its t "
    "interval. Too few sizes: the smallest family needs five.",
    "Non-increasing: weighted least squares without a family (pool adjacent violators).",
    f"Few seeds (2 to {FEW_SEEDS - 1}): for looking, nothing rests on them. One seed has no interval and cannot show "
    "that a curve is ill-behaved. A run that diverged or failed counts as chance.")




@dataclass(frozen=True)
class Fitted:
    """One model's curve under one condition. `found` is None where no seed ended at every size that has runs."""

    label: str
    condition: tuple[str, ...]
    curves: SeedCurves
    found: LearningCurve | None
    band: Band | None

    @property
    def errors_SN(self) -> npt.NDArray[np.float64]:
        """Test error; chance where a run diverged or failed."""
        return np.asarray(1 - self.curves.accuracy_KSN[0])

    @property
    def note(self) -> str:
        """The formula with its numbers, or what is wrong with the curve; empty where there is nothing to say."""
        where = f"{self.label}, {', '.join(self.condition)}"
        if self.found is None or self.found.curve is None:
            return f"{where}: {self.found.outcome}: {self.found.reason}." if self.found and self.found.reason else ""
        curve = self.found.curve
        numbers = ", ".join(f"{name} = {value:.3g}" for name, value in curve.parameters.items())
        chosen = f"; chosen in {self.band.families.get(curve.family, 0)} of {RESAMPLES} resamples" if self.band else ""
        return f"{where}: {curve.family}, {FAMILIES[curve.family].formula} with {numbers}{chosen}."


def learning_curves(frame: Frame) -> Table:
    """One row a model, condition and size of training images, of the seeds that ended at every size that has runs.

    A curve without such a seed has one row. The same records give the same bands: draws are seeded from their hash.
    """
    identity = notes.identity(frame)
    named = dict.fromkeys((cell.label, (cell.regime, cell.budget, cell.setting)) for cell in cells(frame))
    fits = [fitted(curves, label, condition, identity[-1], frame.margin) for label, condition in named
            if (curves := curves_of(frame, label, condition=", ".join(condition))) is not None]
    told = [fit.note for fit in fits]
    rows = tuple((*row, *notes.rests_on((cell for cells_N in fit.curves.cells_KN for cell in cells_N), identity))
                 for fit, number in zip(fits, notes.numbered(told), strict=True) for row in _rows(fit, number))
    values = {key: len({fit.condition[i] for fit in fits}) for i, key in enumerate(("regime", "budget", "setting"))}
    exploratory = (frame.exploratory,) if frame.exploratory else ()
    return Table(f"Study {frame.study}: learning curves, test error on {frame.resolved.dataset_text}",
                 where_varied(COLUMNS, values), rows, tuple(note for note in told if note),
                 (*FOOTER, *exploratory, *notes.cited(frame)))


def fitted(curves: SeedCurves, label: str, condition: tuple[str, ...], sha256: str, margin: float) -> Fitted:
    """The curve with its band; the draws follow from the hash and the names."""
    if not curves.seeds:
        return Fitted(label, condition, curves, None, None)
    errors_SN, sizes = 1 - curves.accuracy_KSN[0], curves.sizes_N
    found, around = learning_curve(sizes, errors_SN, margin=margin), None
    if found.curve is not None:
        rng = np.random.default_rng(int(sha256_json([sha256, label, condition])[:16], 16))
        around = band(sizes, errors_SN, sizes, rng=rng, margin=margin)
    return Fitted(label, condition, curves, found, around)


def _rows(fit: Fitted, number: int | None) -> Iterator[tuple[Entry, ...]]:
    curves, found, n = fit.curves, fit.found, len(fit.curves.seeds)
    named, marks = tuple(map(word, (fit.label, *fit.condition))), word("; ".join(curves.notes) or None)
    if found is None:
        yield (*named, *(Entry(None, NONE) for _ in COLUMNS[4:12]), word("missing"), *(plain(None),) * 3,
               Entry(0, "0"), plain(True), marks)
        return
    family = found.curve.family if found.curve else None
    told = (family or found.outcome) + (f" (note {number})" if number else "")
    of_curve = (Entry(found.outcome, told), plain(family), plain(_parameters(found.curve)), plain(found.reason),
                Entry(n, str(n)), plain(n < FEW_SEEDS), marks)
    errors = fit.errors_SN
    falling_N = falling(errors.mean(axis=0), _weights(errors))
    for i, size in enumerate(curves.sizes_N):
        measured = t_interval(errors[:, i])
        yield (*named, Entry(size, f"{size:,}"), Entry(measured.mean, interval_text(measured)),
               plain(measured.low), plain(measured.high), Entry(float(falling_N[i]), percent(float(falling_N[i]))),
               *_fit_at(fit, i), *of_curve)


def _weights(errors_SN: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    spread_N = standard_errors(errors_SN)
    return None if spread_N is None else spread_N**-2


def _parameters(curve: Curve | None) -> str | None:
    return canonical_json({name: rounded(v) for name, v in curve.parameters.items()}) if curve else None


def _fit_at(fit: Fitted, i: int) -> tuple[Entry, ...]:
    """Fit and band at the i-th size."""
    curve = fit.found.curve if fit.found else None
    if curve is None:
        return Entry(None, NONE), plain(None), plain(None)
    value = float(curve.at([fit.curves.sizes_N[i]])[0])
    low, high = (float(fit.band.low_M[i]), float(fit.band.high_M[i])) if fit.band else (None, None)
    text = interval_text(Interval(value, low, high, None, len(fit.curves.seeds)))
    return Entry(value, text), plain(low), plain(high)

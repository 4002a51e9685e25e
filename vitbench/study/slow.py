"""Whether single runs of a study would take too long: asked before any of them starts."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from vitbench.cost import ModelCost
from vitbench.grid import Resolved, Run, counts_of
from vitbench.spec import Budget
from vitbench.study.costs import Costs, Rates, kind_of
from vitbench.study.forecast import at
from vitbench.study.place import Placement
from vitbench.study.smaller import nearest_that_fits
from vitbench.units import duration

LONGEST_SECONDS = 4 * 3600.0
"""Three times the longest run that the package itself proposes: an anchor of convnet m on Fashion-MNIST, 9,380 steps,
takes 75 minutes on one core. A study has tens of runs, and of this length they would take days."""

# Multiply-adds a second of one core, for runs of a kind that was never measured here (docs/log.md has what was).
FASTEST = {"fp32": 2e11, "bf16": 2e12}  # no core does more; the best model reached 0.7e11 and 1.4e11
USUAL = 2e10
SLOWEST, STEP_SECONDS = 1e9, 0.1  # many thin heads, depthwise convolutions; a step of many small layers


class TooSlow(ValueError):
    """Runs that would take longer than the limit; its argument: the numbers and what would fit."""

    def __str__(self) -> str:
        return f"{self.args[0]}; --allow-slow runs it all the same"


@dataclass(frozen=True)
class _Forecast:
    """A run's seconds: as measured here, or no less than."""

    run: Run
    seconds: float
    rates: Rates  # measured; else those that advice rests on
    measured: bool


def refuse_too_slow(runs: Sequence[Run], resolved: Resolved, costs: Mapping[str, ModelCost], known: Costs,
                    placement: Placement) -> None:
    """Raise TooSlow where a run would take longer than the limit. The rest is as of `too_slow`."""
    told = too_slow(runs, resolved, costs, known, placement)
    if told:
        raise TooSlow(told)


def too_slow(runs: Sequence[Run], resolved: Resolved, costs: Mapping[str, ModelCost], known: Costs,
             placement: Placement) -> str | None:
    """The slowest run, the limit and what would fit, in words; None where no run is known to take longer.

    What was measured here counts, and on a CPU, for models in `costs` (by label) that were not, that no core is faster
    than FASTEST. Loads torch to find options that fit. Raises BudgetTooSmall.
    """
    found = [one for one in _forecasts(runs, resolved, costs, known, placement) if one.seconds > LONGEST_SECONDS]
    if not found:
        return None
    worst = max(found, key=lambda one: one.seconds)
    run, others = worst.run, dict.fromkeys(one.run.label for one in found if one.run.label != worst.run.label)
    per_second = FASTEST[run.spec.recipe.precision] / 1e9
    how = f"{duration(worst.seconds)}, as measured here" if worst.measured else \
        f"at least {duration(worst.seconds)}: no core does {per_second:,.0f} billion multiply-adds a second"
    too = f" The same is true of {', '.join(others)}." if others else ""
    return (f"a run of {run.label} (share {run.spec.share}, {run.budget}) would take {how}; a run may take "
            f"{duration(LONGEST_SECONDS)}.{too} {_advice(worst, resolved)}")


def doubtful(runs: Sequence[Run], resolved: Resolved, costs: Mapping[str, ModelCost], known: Costs,
             placement: Placement) -> dict[str, Run]:
    """Runs by kind, one each, that were never measured here and might take longer than the limit, were they slow."""
    return {kind: run for kind, run in _distinct(runs, placement)
            if placement.device == "cpu" and kind not in known.kinds
            and at(_slowest(run, costs[run.label].macs), run, resolved).seconds > LONGEST_SECONDS}


def _distinct(runs: Sequence[Run], placement: Placement) -> Iterator[tuple[str, Run]]:
    """Kinds with their runs, one for all seeds."""
    first: dict[object, tuple[str, Run]] = {}
    for run in runs:
        kind = kind_of(run.spec, placement.device, shared=placement.shared)
        first.setdefault((kind, run.spec.share, run.spec.budget, run.spec.refit), (kind, run))
    return iter(first.values())


def _forecasts(runs: Sequence[Run], resolved: Resolved, costs: Mapping[str, ModelCost], known: Costs,
               placement: Placement) -> Iterator[_Forecast]:
    for kind, run in _distinct(runs, placement):
        if kind in known.kinds:
            yield _Forecast(run, at(known.kinds[kind], run, resolved).seconds, known.kinds[kind], True)
        elif placement.device == "cpu" and run.label in costs:
            macs = costs[run.label].macs
            least = at(_assumed(macs, FASTEST[run.spec.recipe.precision]), run, resolved).seconds
            yield _Forecast(run, least, _assumed(macs, USUAL), False)


def _assumed(macs: int, per_second: float) -> Rates:
    """A training step is three forward passes."""
    return Rates(train_images_per_second=per_second / (3 * macs), eval_images_per_second=per_second / macs,
                 overhead_seconds=0, base_memory_bytes=0, macs=macs)


def _slowest(run: Run, macs: int) -> Rates:
    rates = _assumed(macs, SLOWEST)
    image_seconds = 1 / rates.train_images_per_second + STEP_SECONDS / run.spec.recipe.batch_size
    return rates.model_copy(update={"train_images_per_second": 1 / image_seconds})


def _advice(slow: _Forecast, resolved: Resolved) -> str:
    run, rates = slow.run, slow.rates

    def fits(changed: ModelCost) -> bool:
        scale = rates.macs / changed.macs
        other = rates.model_copy(update={"train_images_per_second": rates.train_images_per_second * scale,
                                         "eval_images_per_second": rates.eval_images_per_second * scale,
                                         "macs": changed.macs})
        return at(other, run, resolved).seconds <= LONGEST_SECONDS

    options, budget = nearest_that_fits(run, resolved, fits), run.spec.budget
    steps = run.spec.steps(sum(counts_of(run, resolved).train), rates.macs)
    fit = bisect_right(range(1, steps), LONGEST_SECONDS, key=lambda n: at(rates, _with_steps(run, n), resolved).seconds)
    amount = _two_digits(budget.amount * fit // steps)
    found = [text for text in (options, f"{budget.unit}: {amount}" if amount else None) if text]
    if not found:
        return "Take a smaller model"
    return f"{'' if slow.measured else 'By a rough estimate '}{' or '.join(found)} would fit"


def _with_steps(run: Run, steps: int) -> Run:
    return replace(run, spec=run.spec.changed(budget=Budget(unit="steps", amount=steps)))


def _two_digits(number: int) -> int:
    """Rounded down to two digits: more would say more than a forecast knows."""
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit

"""The tidy frame: one row a run, in the order of the study's grid; runs without a record are named apart."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from vitbench.config import FitRule
from vitbench.config.controls import MAIN
from vitbench.grid import Resolved, Run, counts_of
from vitbench.metrics import fit_state, over_confident, overfitting
from vitbench.record import DamagedRecord, Failure, RunRecord
from vitbench.row import MATCHED_LOSS, Row
from vitbench.search import Search
from vitbench.streams import Streams


@dataclass(frozen=True)
class Frame:
    """Rows of the runs that ended with a result, and the runs that have none."""

    study: str
    rows: tuple[Row, ...]
    missing: tuple[Run, ...]
    excluded: dict[str, str]  # run id of a missing run that left something -> why that is no result
    records: dict[str, RunRecord]  # by run id, for curves
    runs: tuple[Run, ...]  # the whole grid, in its order
    resolved: Resolved
    rule: FitRule  # constants of the fit state
    exploratory: str | None = None  # why no verdict on it is more than that (protocol rule 22)
    margin: float = 0.01  # difference of accuracy that matters, as the study says
    searches: tuple[Search, ...] = ()  # of the study's tuning

    def of(self, chosen: Callable[[str], bool]) -> "Frame":
        """The part whose runs' controls are `chosen`: the grid itself has none, ''."""
        runs = tuple(run for run in self.runs if chosen(run.control))
        ids = {run.spec.run_id for run in runs}
        return replace(self, runs=runs, rows=tuple(row for row in self.rows if chosen(row.control)),
                       missing=tuple(run for run in self.missing if chosen(run.control)),
                       excluded={i: why for i, why in self.excluded.items() if i in ids},
                       records={i: record for i, record in self.records.items() if i in ids})

    @property
    def main(self) -> "Frame":
        """The grid itself, without controls and anchors."""
        return self.of(lambda control: control == MAIN)


def build(study: str, runs: Iterable[Run], read: Callable[[str], RunRecord | Failure],
          resolved: Resolved, rule: FitRule) -> Frame:
    """Rows for `runs`; `read` raises KeyError for a run that has not ended and DamagedRecord for a bad one.

    A crash is not a result: the run counts as missing (protocol rule 13).
    """
    rows, missing, excluded, records = [], [], {}, {}
    grid = tuple(runs)
    for run in grid:
        run_id = run.spec.run_id
        if run.pending:
            missing.append(run)
            continue
        try:
            found = read(run_id)
        except KeyError:
            missing.append(run)
            continue
        except DamagedRecord as error:
            missing.append(run)
            excluded[run_id] = f"its record is damaged: {error}"
            continue
        if isinstance(found, Failure) and found.crash:
            missing.append(run)
            excluded[run_id] = f"its {found.reason}; `vitbench run` does it again"
            continue
        if isinstance(found, RunRecord):
            records[run_id] = found
        rows.append(row(study, run, found, resolved, rule))
    return Frame(study, tuple(rows), tuple(missing), excluded, records, grid, resolved, rule)


def row(study: str, run: Run, found: RunRecord | Failure, resolved: Resolved, rule: FitRule) -> Row:
    """One run's row; what was known before training is there for failed runs too."""
    spec, counts, streams = run.spec, counts_of(run, resolved), Streams.of(run.spec)
    record = found if isinstance(found, RunRecord) else None
    measured = _measure(record, rule) if record else {}
    return Row(
        run_id=spec.run_id, study=study, label=run.label, dataset=spec.dataset_text, model=spec.model,
        family=resolved.models[run.label].family, size=spec.size, options=spec.options, share=run.spec.share,
        fraction=sum(counts.drawn) / sum(resolved.train_counts), drawn_images=sum(counts.drawn),
        train_images=sum(counts.train),
        # Of masked duplicates only the run itself knows the number.
        val_images=record.data.val_images if record else sum(counts.validation),
        test_images=record.data.test_images if record else resolved.test_images,
        seed=spec.seed, regime=spec.regime, budget_unit=spec.budget.unit, budget_amount=spec.budget.amount,
        setting=run.setting, control=run.control, init_seed=streams.init, order_seed=streams.order,
        pixels=spec.data.pixels, label_noise=spec.data.label_noise, refit=spec.refit, precision=spec.recipe.precision,
        outcome=record.outcome if record else "failed", reason=found.reason,
        chance_accuracy=1 / resolved.num_classes, numerics=spec.numerics, **measured)


def _measure(record: RunRecord, rule: FitRule) -> dict[str, Any]:
    final, cost, curves = record.final, record.cost, record.curves
    along = None
    if record.outcome == "done" and curves.val_loss is not None:
        along = overfitting(_whole(curves.val_loss), _whole(curves.test_loss),
                            [1 - a for a in _whole(curves.test_accuracy)])
    matched = next((i for i, loss in enumerate(curves.train_loss) if loss is not None and loss <= MATCHED_LOSS), None)
    gap = state = None
    if final.test_accuracy is not None and final.train_accuracy is not None:
        gap = final.train_accuracy - final.test_accuracy
        state = fit_state(1 - final.train_accuracy, 1 - final.test_accuracy, along.time_harm if along else None,
                          train_error_floor=rule.train_error_floor, harm=rule.time_harm)
    return {
        "steps": curves.step[-1] if curves.step else None,
        "test_accuracy": final.test_accuracy, "test_loss": final.test_loss,
        "val_accuracy": final.val_accuracy, "val_loss": final.val_loss,
        "clean_train_accuracy": final.train_accuracy, "clean_train_loss": final.train_loss, "gap": gap,
        "time_harm": along.time_harm if along else None,
        "onset_step": curves.step[along.onset_index] if along else None,
        "early_stopped_accuracy": curves.test_accuracy[along.onset_index] if along else None,
        "matched_loss_step": None if matched is None else curves.step[matched],
        "matched_loss_accuracy": None if matched is None else curves.test_accuracy[matched],
        "rise": along.rise if along else None,
        "fit_state": state,
        "over_confident": over_confident(along.test_loss_ratio if along else None, threshold=rule.test_loss_ratio),
        "params": cost.params, "macs": cost.macs, "activations": cost.activations,
        "train_images_per_second": cost.train_images_per_second, "peak_memory_bytes": cost.peak_memory_bytes,
        "seconds": cost.seconds, "shared_device": cost.shared, "device": record.execution.device,
        "threads": record.execution.threads, "subset": record.data.subset,
        "code_version": record.execution.code_version,
    }


def _whole(column: tuple[float | None, ...]) -> list[float]:
    """A column of a run that did not diverge has a value at every point."""
    values = [value for value in column if value is not None]
    assert len(values) == len(column)
    return values

"""Adding a metric to runs that ended: from their stored logits and the dataset's test labels, training nothing."""

from dataclasses import dataclass, field
from pathlib import Path

from vitbench.grid import Run, distinct
from vitbench.metrics import METRICS, MetricError, compute, kept
from vitbench.metrics.classification import Labels
from vitbench.metrics.registry import Value
from vitbench.record import DamagedRecord, Failure, RunRecord
from vitbench.row import COLUMNS
from vitbench.study.folder import StudyFolder
from vitbench.study.labelled import Data


@dataclass
class Added:
    """What became of a metric, run by run: run ids, for those in doubt with the reason."""

    computed: list[str] = field(default_factory=list)
    there: list[str] = field(default_factory=list)  # of this version and these predictions
    without_predictions: list[str] = field(default_factory=list)  # pruned, or never copied here
    damaged: dict[str, str] = field(default_factory=dict)
    diverged: list[str] = field(default_factory=list)  # these and failed ones have no predictions
    failed: list[str] = field(default_factory=list)
    to_do: list[str] = field(default_factory=list)  # have not run, or were moved away in this moment


def add_metric(folder: StudyFolder, name: str) -> Added:
    """Compute metric `name` for all runs of a study, beside a driver or not: no lock is taken, no record is touched.

    What is there already of the same version, source and predictions stays. Raises UnknownName, MetricError,
    DatasetError.
    """
    METRICS.get(name)
    if name in COLUMNS:
        raise MetricError(f"metric {name!r} has the name of a column of `vitbench export`; choose another")
    data, added = Data(), Added()
    _, arrays = data.dataset(folder.resolved.dataset, folder.resolved.dataset_options)
    for run in distinct(run for run in folder.runs if not run.pending):
        _add(folder, run, name, arrays.sha256, data.test_labels(run.spec), added)
    return added


def _add(folder: StudyFolder, run: Run, name: str, sha256: str, labels_I: Labels, added: Added) -> None:
    run_id, place = run.spec.run_id, folder.store.runs / run.spec.run_id
    try:
        ended = folder.store.read(run_id)
        if isinstance(ended, Failure):
            added.failed.append(run_id)
        elif ended.predictions_sha256 is None:
            added.diverged.append(run_id)
        elif _is_there(place, name, ended):
            added.there.append(run_id)
        else:
            kept.write(place, _value(folder, name, ended, sha256, labels_I))
            added.computed.append(run_id)
    except KeyError:
        added.to_do.append(run_id)
    except DamagedRecord as error:
        added.damaged[run_id] = str(error)
    except FileNotFoundError:
        (added.without_predictions if place.exists() else added.to_do).append(run_id)


def _is_there(place: Path, name: str, ended: RunRecord) -> bool:
    entry = METRICS.get(name)
    try:
        found = kept.read(kept.path_of(place, name), ended)
    except (FileNotFoundError, DamagedRecord):
        return False
    return (found.version, found.plugin_sha256) == (entry.meta.version, entry.plugin_sha256)


def _value(folder: StudyFolder, name: str, ended: RunRecord, sha256: str, labels_I: Labels) -> kept.MetricValue:
    if ended.data.dataset_sha256 != sha256:
        raise DamagedRecord(f"its record names a dataset of SHA-256 {ended.data.dataset_sha256}; "
                            f"{ended.spec.dataset_text} has {sha256}")
    logits_IC = folder.store.logits_IC(ended)
    assert ended.predictions_sha256 is not None
    return value_of(name, compute(name, logits_IC, labels_I), ended.predictions_sha256)


def value_of(name: str, value: Value, predictions_sha256: str) -> kept.MetricValue:
    """A metric's value as it is kept."""
    entry = METRICS.get(name)
    return kept.MetricValue(name=name, version=entry.meta.version, unit=entry.meta.unit, meaning=entry.meta.meaning,
                            per_class=entry.meta.per_class, value=value, plugin_sha256=entry.plugin_sha256,
                            predictions_sha256=predictions_sha256)

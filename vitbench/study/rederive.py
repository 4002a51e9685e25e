"""Checks that derive anew what records say: from the dataset its counts and subsets, from stored logits the metrics."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import isclose
from pathlib import Path
from typing import Any

import numpy as np

from vitbench import subset
from vitbench.metrics import METRICS, accuracy, compute, cross_entropy, kept
from vitbench.metrics.classification import correct
from vitbench.metrics.registry import Value
from vitbench.record import Failure, RunRecord, pack_hits
from vitbench.registry import UnknownName
from vitbench.spec import exact_decimal, split_version, with_options
from vitbench.streams import Streams
from vitbench.study.findings import Check, NotKept, Stored, listed
from vitbench.study.labelled import Data, Share

SAME = 1e-9  # relative: exponentials and sums in float64 differ in their last bits between machines


def checks(stored: Stored) -> Iterator[Check]:
    """Those of datasets, subsets, index files, predictions and added metrics."""
    data = Data()
    datasets = _of_runs("datasets", _dataset_fault, stored, data, stored.records)
    datasets.judge("resolved.json", partial(_resolved_fault, stored, data),
                   f"`vitbench run {stored.folder.name}` writes it again")
    yield datasets
    yield _of_runs("subsets", _subset_fault, stored, data, stored.records)
    yield _index_files(stored, data)
    yield _of_runs("predictions", _predictions_fault, stored, data, stored.predicted)
    yield _metrics(stored, data)


def _of_runs(kind: str, look: Callable[[Stored, Data, RunRecord], str | None], stored: Stored, data: Data,
             runs: Mapping[str, RunRecord]) -> Check:
    check = Check(kind)
    for run_id, record in runs.items():
        check.judge(f"run {run_id}", partial(look, stored, data, record), stored.redo)
    return check


def _dataset_fault(_: Stored, data: Data, record: RunRecord) -> str | None:
    """The record's dataset is the declared one, and its counts follow from the share."""
    meta, arrays = data.of(record.spec)
    if record.data.dataset_sha256 != arrays.sha256:
        return (f"names a dataset of SHA-256 {record.data.dataset_sha256}; {record.spec.dataset_text} has "
                f"{arrays.sha256}")
    counts = subset.counts(meta.train_counts, fraction=record.spec.fraction,
                           images_per_class=record.spec.images_per_class)
    counts = counts.refitted() if record.spec.refit else counts
    expected = {"drawn_images": sum(counts.drawn), "train_images": sum(counts.train),
                "num_classes": meta.num_classes, "test_images": len(data.test_labels(record.spec))}
    if record.spec.data.duplicates == "kept":  # of masked ones the number follows from the images
        expected["val_images"] = sum(counts.validation)
    return _differing(expected, record.data.model_dump())


def _resolved_fault(stored: Stored, data: Data) -> str | None:
    """What tables take from resolved.json is what the dataset declares and the records hold."""
    resolved = stored.folder.resolved
    if others := names_other_data(stored):
        return others
    meta, _ = data.dataset(resolved.dataset, resolved.dataset_options)
    expected = {"train_counts": meta.train_counts, "test_images": sum(meta.test_counts),
                "num_classes": meta.num_classes, "split": resolved.split and meta.split,
                "duplicates": resolved.duplicates and meta.duplicates}
    families = {run.label: stored.records[run.spec.run_id].family for run in stored.folder.runs
                if run.spec.run_id in stored.records}
    return (_differing(expected, dict(resolved))
            or _differing(families, {label: facts.family for label, facts in resolved.models.items()}))


def names_other_data(stored: Stored) -> str | None:
    """Where resolved.json and study.yaml disagree on the dataset, and so on which runs are the study's."""
    named, wanted = stored.folder.resolved.dataset, stored.folder.study.dataset.name
    return None if split_version(named)[0] == wanted else f"names {named}, and study.yaml {wanted}"


def _differing(expected: dict[str, Any], found: dict[str, Any]) -> str | None:
    wrong = [f"{key} {found[key]} where {value} follows" for key, value in expected.items() if found[key] != value]
    return f"says {', '.join(wrong)}" if wrong else None


def _subset_fault(stored: Stored, data: Data, record: RunRecord) -> str | None:
    """The record's subset is the one that its dataset, share and seed give, and its index file is there."""
    share, seed = (record.spec.fraction, record.spec.images_per_class), Streams.of(record.spec).subset
    derived = data.subset(record.spec.dataset, record.spec.dataset_options, share, seed).sha256
    if derived != record.data.subset:
        return f"names subset {record.data.subset}; share {record.spec.share} and seed {seed} give {derived}"
    if not (stored.folder.store.folder / "subsets" / f"{derived}.json").is_file():
        return f"subsets/{derived}.json, which it names, is missing"
    return None


def _index_files(stored: Stored, data: Data) -> Check:
    """Each file under subsets/ lists what its name says and what its dataset, share and seed give."""
    check, named = Check("index files"), dict[str, dict[str, str]]()
    for run_id, record in stored.records.items():
        named.setdefault(record.data.subset, {})[run_id] = record.spec.dataset_text
    for path in sorted((stored.folder.store.folder / "subsets").glob("[!.]*.json")):
        by = named.get(path.stem, {})
        check.judge(f"subsets/{path.name} (of run {listed(by or ['none'])})",
                    partial(_index_fault, data, path, set(by.values())),
                    "put it back from a copy, or remove it and do its runs again")
    return check


def _index_fault(data: Data, path: Path, datasets: set[str]) -> str | None:
    try:
        content = json.loads(path.read_bytes())
        dataset, options = str(content["dataset"]), dict(content.get("dataset_options", {}))
        share, seed, named = str(content["share"]), int(content["seed"]), with_options(dataset, options)
        wanted = _share(share)
        indices = np.array([*content["train"], *content["validation"]], dtype=np.int64) if "train" in content else None
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError):
        return "is no index file"
    if content["sha256"] != path.stem or (indices is not None and subset.sha256_of(np.sort(indices)) != path.stem):
        return "does not hash to its name"
    if datasets and named not in datasets:
        return f"is of dataset {named}, and its records of {listed(sorted(datasets))}"
    derived = data.subset(dataset, options, wanted, seed)
    total = sum(data.dataset(dataset, options)[0].train_counts)
    if content != subset.index_file(derived, dataset, share, seed, total, options=options):
        return f"is not what dataset {named}, share {share} and seed {seed} give"
    return None


def _share(written: str) -> Share:
    """'0.1' or '5 a class', as RunSpec.share writes it. Raises ValueError."""
    a_class = written.removesuffix(" a class")
    return (None, int(a_class)) if a_class != written else (exact_decimal(written), None)


def _logits(stored: Stored, record: RunRecord) -> np.ndarray:
    try:
        return stored.folder.store.logits_IC(record)
    except FileNotFoundError:
        raise NotKept("keeps no logits: pruned, or not copied here") from None


def _predictions_fault(stored: Stored, data: Data, record: RunRecord) -> str | None:
    """Logits are those that the record names, and give its hits and final test metrics (protocol rule 17)."""
    logits_IC = _logits(stored, record)
    labels_I = data.test_labels(record.spec)
    if len(labels_I) != len(logits_IC):
        return f"has logits of {len(logits_IC):,} images; {record.spec.dataset_text} has {len(labels_I):,} test images"
    with np.errstate(all="ignore"):
        derived = {"test_loss": cross_entropy(logits_IC, labels_I), "test_accuracy": accuracy(logits_IC, labels_I)}
    wrong = [f"final {name} {found} where {value:.10g} follows" for name, value in derived.items()
             if not _same(value, found := getattr(record.final, name))]
    if pack_hits(correct(logits_IC, labels_I)) != record.test_correct:
        wrong.append("other hits than follow")
    return f"its logits do not give its record: {', '.join(wrong)}" if wrong else None


def _same(derived: Value, found: Value) -> bool:
    if isinstance(derived, tuple) and isinstance(found, tuple) and len(derived) == len(found):
        return all(map(_same, derived, found))
    if isinstance(derived, float) and isinstance(found, float):
        return isclose(derived, found, rel_tol=SAME, abs_tol=SAME)
    return derived == found


def _metrics(stored: Stored, data: Data) -> Check:
    """Added metrics are whole, of their record's predictions, and what these give."""
    check = Check("metrics")
    for run_id, ended in stored.found.items():
        if isinstance(ended, ValueError):
            continue
        for path in kept.files(stored.folder.store.runs / run_id):
            check.judge(f"run {run_id}", partial(_metric_fault, stored, data, ended, path),
                        f"`vitbench metrics add {path.stem} {stored.folder.name}` computes it again")
    return check


def _metric_fault(stored: Stored, data: Data, ended: RunRecord | Failure, path: Path) -> str | None:
    try:
        found = kept.read(path, ended)
    except FileNotFoundError:
        raise NotKept("went away while it was looked at") from None
    assert isinstance(ended, RunRecord)
    name = f"metrics/{path.name}"
    if found.plugin_sha256 is not None:
        raise NotKept(f"{name} is of a user's file, and is not computed again")
    try:
        meta = METRICS.get(found.name).meta
    except UnknownName as error:
        raise NotKept(f"{name}: {error}") from None
    if meta.version != found.version:
        raise NotKept(f"{name} has version {found.version} of the metric; this vitbench computes {meta.version}")
    derived = compute(found.name, _logits(stored, ended), data.test_labels(ended.spec))
    return None if _same(derived, found.value) else f"{name} holds {found.value} where {derived} follows"

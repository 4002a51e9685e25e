"""Datasets and subsets that records name, as this machine has them: checked, or refused with the reason."""

from collections.abc import Mapping
from typing import Any

from vitbench import subset
from vitbench.datasets import DEFAULTS, Arrays, DatasetError, DatasetMeta, load, resolve
from vitbench.datasets._variant import labels_of_test
from vitbench.metrics.classification import Labels
from vitbench.registry import UnknownName
from vitbench.spec import RunSpec, named_version, split_version, with_options
from vitbench.streams import Streams

Share = tuple[str | None, int | None]  # fraction, images a class


def dataset_of(versioned: str, options: Mapping[str, Any] = DEFAULTS) -> tuple[DatasetMeta, Arrays]:
    """Declaration and arrays of 'digits@1'. Raises DatasetError where it cannot be had in this version."""
    name, _ = split_version(versioned)
    try:
        meta, _ = resolve(name, options)
    except UnknownName as error:
        raise DatasetError(f"{error} Where it is a plug-in of the study, add --allow-plugins") from None
    here = named_version(name, meta.version)
    if here != versioned:
        raise DatasetError(f"the records name dataset {versioned}; this version of vitbench has {here}")
    return meta, load(name, options)


class Data:
    """Datasets and subsets, each had once; a dataset that cannot be had is tried once."""

    def __init__(self) -> None:
        self._datasets: dict[str, tuple[DatasetMeta, Arrays] | DatasetError] = {}
        self._labels: dict[tuple[str, str], Labels] = {}
        self._subsets: dict[tuple[str, Share, int], subset.Subset] = {}

    def dataset(self, versioned: str, options: Mapping[str, Any] = DEFAULTS) -> tuple[DatasetMeta, Arrays]:
        """As `dataset_of`."""
        named = with_options(versioned, options)
        if named not in self._datasets:
            try:
                self._datasets[named] = dataset_of(versioned, options)
            except DatasetError as error:
                self._datasets[named] = error
            except Exception as error:  # a dataset of a user's own may raise anything
                self._datasets[named] = DatasetError(f"dataset {named} cannot be read: {error}")
        found = self._datasets[named]
        if isinstance(found, DatasetError):
            raise found
        return found

    def of(self, spec: RunSpec) -> tuple[DatasetMeta, Arrays]:
        """The dataset of a run. Raises DatasetError."""
        return self.dataset(spec.dataset, spec.dataset_options)

    def test_labels(self, spec: RunSpec) -> Labels:
        """Labels of the test images that a run is judged on. Raises DatasetError."""
        key = spec.dataset_text, spec.data.duplicates
        if key not in self._labels:
            self._labels[key] = labels_of_test(self.of(spec)[1], spec.data)
        return self._labels[key]

    def subset(self, versioned: str, options: Mapping[str, Any], share: Share, seed: int) -> subset.Subset:
        """Drawn as a run draws it. Raises DatasetError, or EmptyClass for a share that nothing can be drawn for."""
        key = with_options(versioned, options), share, seed
        if key not in self._subsets:
            meta, arrays = self.dataset(versioned, options)
            wanted = subset.counts(meta.train_counts, fraction=share[0], images_per_class=share[1])
            rng = Streams(subset=seed, init=0, order=0, augment=0).subset_rng()
            self._subsets[key] = subset.draw(arrays.train_labels, wanted, rng)
        return self._subsets[key]

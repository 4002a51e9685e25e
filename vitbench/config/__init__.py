"""Study files: read, validated, frozen."""

from vitbench.config.load import BadStudy, Loaded, Mistake, find, load, mistake
from vitbench.config.schema import DatasetEntry, FitRule, ModelEntry, Study

__all__ = ["BadStudy", "DatasetEntry", "FitRule", "Loaded", "Mistake", "ModelEntry", "Study", "find", "load", "mistake"]

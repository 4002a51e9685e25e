"""Study files: read, validated, frozen."""

from vitbench.config.load import BadStudy, Loaded, Mistake, find, load, mistake
from vitbench.config.schema import FitRule, ModelEntry, Study

__all__ = ["BadStudy", "FitRule", "Loaded", "Mistake", "ModelEntry", "Study", "find", "load", "mistake"]

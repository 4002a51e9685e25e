"""Statistics: pure functions on named array layouts; chance is an argument."""

from vitbench.stats.intervals import FEW_SEEDS, Interval, t_interval

__all__ = ["FEW_SEEDS", "Interval", "t_interval"]

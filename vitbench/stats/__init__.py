"""Statistics: pure functions on named array layouts; chance is an argument."""

from vitbench.stats.intervals import FEW_SEEDS, Interval, t_interval
from vitbench.stats.sign_flip import sign_flip_p
from vitbench.stats.two_way import two_way_interval

__all__ = ["FEW_SEEDS", "Interval", "sign_flip_p", "t_interval", "two_way_interval"]

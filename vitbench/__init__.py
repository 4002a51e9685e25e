"""vitbench: how much data does attention need?"""

__version__ = "0.1.0"

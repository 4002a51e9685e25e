"""Engines: where runs are computed. One file each."""

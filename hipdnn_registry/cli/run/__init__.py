"""`hipdnn run`: a graph planned, run on random inputs, timed and checked."""

from .report import RunOptions, run_report

__all__ = ["RunOptions", "run_report"]

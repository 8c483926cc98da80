"""The figures of a run, by Matplotlib; `drawing` holds what all share."""

from skillpager.bench.report.figures.drawing import Picture

__all__ = ["Picture"]

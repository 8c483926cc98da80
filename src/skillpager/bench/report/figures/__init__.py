"""The figures of a run, drawn with Matplotlib; `drawing` has their common style."""

from skillpager.bench.report.figures.drawing import Picture

__all__ = ["Picture"]

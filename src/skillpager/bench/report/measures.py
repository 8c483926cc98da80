"""The measures, which `data/measures.csv` defines, and their computation from the rows of a method.

A row is the result of one page for one query (`results.NUMBERS`).
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from skillpager.bench.report.paper import read_data
from skillpager.bench.report.statistics import Interval, Numbers, bootstrap

_SCALES = {"%": 100.0, "ms": 1000.0, "nodes": 1.0}


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity of a method: over its rows, the sum of `parts` by the sum of `wholes`."""

    name: str  # short, as a column of a table has it
    unit: str  # `%`, `ms` or `nodes`; values are in that unit
    digits: int  # decimals to print
    parts: str  # numerator of each row, an expression of columns
    wholes: str  # denominator of each row, in the same way; empty for 1, which makes the measure a mean
    quantile: float | None  # of `parts`, 0 to 1, in place of the ratio of sums

    @property
    def heading(self) -> str:
        """Name and unit, as the heading of a column."""
        return self.name if self.unit == "nodes" else f"{self.name} ({self.unit})"

    def of(self, rows: pd.DataFrame) -> float:
        """Return the measure over all rows, in its unit; NaN if a row has no such number."""
        if not self.known(rows):
            return math.nan
        parts, wholes = self.sums(rows)
        if self.quantile is not None:
            return _SCALES[self.unit] * float(np.quantile(parts, self.quantile))
        return _SCALES[self.unit] * float(parts.sum()) / float(len(rows) if wholes is None else wholes.sum())

    def interval(self, rows: pd.DataFrame, *, by_skill: bool = False) -> Interval:
        """Return the measure with its 95 % bootstrap interval over queries, or over skills, in its unit.

        It is NaN if a row has no such number. A quantile has no interval here.
        """
        if self.quantile is not None:
            raise ValueError(f"{self.name} is a quantile, not a ratio of sums")
        if not self.known(rows):
            return Interval(math.nan, math.nan, math.nan)
        clusters = list(rows["skill"]) if by_skill else None
        return bootstrap(*self.sums(rows), clusters=clusters).scaled(_SCALES[self.unit])

    def known(self, rows: pd.DataFrame) -> bool:
        """Return True if there are rows, and each has a number for this measure."""
        return len(rows) > 0 and not bool(np.isnan(self.sums(rows)[0]).any())

    def sums(self, rows: pd.DataFrame) -> tuple[Numbers, Numbers | None]:
        """Return numerator and denominator of each row; None for denominators of 1."""
        wholes = np.asarray(rows.eval(self.wholes), dtype=float) if self.wholes else None
        return np.asarray(rows.eval(self.parts), dtype=float), wholes


MEASURES = tuple(
    Measure(name, unit, int(digits), parts, wholes, float(quantile) if quantile else None)
    for name, unit, digits, parts, wholes, quantile, *_ in map(dict.values, read_data("measures.csv"))
)
(
    SUFFICIENCY,
    COVERAGE,
    AVERAGE_NODES,
    FRAGMENT_REDUCTION,
    MICRO_REDUCTION,
    MACRO_REDUCTION,
    STRONG_VOTES,
    LATENCY_MEDIAN,
) = MEASURES

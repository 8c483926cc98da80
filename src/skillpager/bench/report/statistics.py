"""Measures of the rows of a method, intervals and paired tests: over queries, or over the skills they share.

Every measure is a ratio of two sums over rows. A resample draws queries, as the paper does, or whole skills
(`clusters`): queries about one skill are not independent, so that this is the interval to trust.

Reference: paper §5 (B = 10,000, seed 42); Efron and Tibshirani, *An Introduction to the Bootstrap* (1993),
chapters 13 and 16; Field and Welsh, *Bootstrapping clustered data* (2007); Holm (1979).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]

SAMPLES, SEED = 10_000, 42  # resamples (the paper's B) and seed of the random generator, paper §5.3.1
LEVEL = 0.95  # share of the resamples inside an interval
# a smaller mean difference is zero: processors round sums differently, and p values must not depend on that
ROUNDING = 1e-12
BATCH = 1_000  # resamples held at once


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its percentile bootstrap interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Interval":
        """Return the interval in another unit."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)


class UpperBound(float):
    """A p value of which only an upper bound is known: no resample was as extreme."""


def bootstrap(
    parts: ArrayLike, wholes: ArrayLike | None = None, *, clusters: Sequence[str] | None = None
) -> Interval:
    """Return `sum(parts) / sum(wholes)` and its percentile bootstrap interval.

    Both are `(n,)`, one a query; without `wholes` the quantity is a mean. With `clusters`, the skill of each
    query, whole skills are drawn instead of queries.
    """
    sums = _sums(parts, wholes, clusters)
    low, high = np.quantile(_resample(sums), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    total, weight = sums.sum(axis=1)
    return Interval(float(total / weight), float(low), float(high))


def bootstrap_p(differences: ArrayLike, *, clusters: Sequence[str] | None = None) -> float:
    """Return the two-sided p that the mean difference is zero: twice the smaller tail of the resamples.

    The least possible value is `2 / (SAMPLES + 1)`, a bound (`UpperBound`).

    Reference: Efron and Tibshirani (1993), chapter 16; Davison and Hinkley (1997), §4.2.5 for the + 1.
    """
    resampled = _resample(_sums(differences, None, clusters))
    tail = min(np.sum(resampled <= ROUNDING), np.sum(resampled >= -ROUNDING))
    return min(1.0, 2 * (float(tail) + 1) / (SAMPLES + 1)) if tail else UpperBound(2 / (SAMPLES + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number by Holm's method, in the order given; bounds stay bounds."""
    from statsmodels.stats.multitest import multipletests

    corrected = multipletests(p_values, method="holm")[1] if p_values else []
    return [type(raw)(p) for raw, p in zip(p_values, corrected, strict=True)]


def _sums(parts: ArrayLike, wholes: ArrayLike | None, clusters: Sequence[str] | None) -> Numbers:
    """Return `(2, n)` numerators and denominators, summed over each cluster where there are clusters."""
    numerators = np.asarray(parts, dtype=float)
    denominators = np.ones_like(numerators) if wholes is None else np.asarray(wholes, dtype=float)
    if clusters is None:
        return np.stack([numerators, denominators])
    members = np.unique(np.asarray(clusters), return_inverse=True)[1]
    return np.stack([np.bincount(members, weights=each) for each in (numerators, denominators)])


def _resample(sums: Numbers) -> Numbers:
    """Return `(SAMPLES,)` ratios of resamples of the columns of `sums`."""
    if sums.shape[1] == 1:  # scipy wants two or more
        return np.full(SAMPLES, sums[0, 0] / sums[1, 0])
    from scipy import stats

    found: Numbers = stats.bootstrap(
        sums,
        lambda parts, wholes, axis: parts.sum(axis=axis) / wholes.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=SAMPLES,
        batch=BATCH,
        method="percentile",
        rng=SEED,
    ).bootstrap_distribution
    return found


@dataclass(frozen=True, slots=True)
class Measure:
    """A quantity of a method: over its rows, the sum of `parts` by the sum of `wholes`."""

    name: str  # short, as a column of a table has it
    parts: str  # numerator of each row, an expression of columns
    wholes: str = ""  # denominator of each row, in the same way; empty for 1, which makes the measure a mean
    percent: bool = True

    @property
    def heading(self) -> str:
        """Name and unit, as the heading of a column."""
        return f"{self.name} (%)" if self.percent else self.name

    def of(self, rows: pd.DataFrame) -> float:
        """Return the measure over all rows; NaN if there are none, or one has no such number."""
        if not self.known(rows):
            return math.nan
        parts, wholes = self.sums(rows)
        return self._scale * float(parts.sum()) / float(wholes.sum())

    def interval(self, rows: pd.DataFrame, *, by_skill: bool = False) -> Interval:
        """Return the measure with its 95 % bootstrap interval over queries, or over skills; NaN as `of`."""
        if not self.known(rows):
            return Interval(math.nan, math.nan, math.nan)
        clusters = list(rows["skill"]) if by_skill else None
        return bootstrap(*self.sums(rows), clusters=clusters).scaled(self._scale)

    def known(self, rows: pd.DataFrame) -> bool:
        """Return True if there are rows, and each has a number for this measure."""
        return len(rows) > 0 and not bool(np.isnan(self.sums(rows)[0]).any())

    def sums(self, rows: pd.DataFrame) -> tuple[Numbers, Numbers]:
        """Return numerator and denominator of each row."""
        parts = np.asarray(rows.eval(self.parts), dtype=float)
        return parts, np.asarray(rows.eval(self.wholes), dtype=float) if self.wholes else np.ones(len(rows))

    @property
    def _scale(self) -> float:
        return 100.0 if self.percent else 1.0


# the share of the queries whose page the judge held for sufficient (paper §4.2)
SUFFICIENCY = Measure("Suff.", "sufficient")
# the mean share of a query's evidence that its page holds (docs/measured.md)
COVERAGE = Measure("Coverage", "coverage")
# of the picks, against the nodes that hold needed lines (`judge.evidence_measure.rank_measures`)
RECALL, AVERAGE_PRECISION, NDCG = Measure("Recall", "recall"), Measure("AP", "ap"), Measure("nDCG", "ndcg")
TOKENS = Measure("Tokens", "tokens", percent=False)
AVERAGE_NODES = Measure("Nodes", "nodes", percent=False)
# token reduction of the paper's tables, “aggregate fragment token reduction” (§5.2.1): headings do not count
FRAGMENT_REDUCTION = Measure("Fragment red.", "pool_tokens - node_tokens", "pool_tokens")
# the same of the texts that an agent is given: over all queries, in which long skills weigh more; and as mean
MICRO_REDUCTION = Measure("Token red.", "full_tokens - tokens", "full_tokens")
MACRO_REDUCTION = Measure("Token red., macro", "1 - tokens / full_tokens")
# the share of the verdicts on which all votes agree: “strong-agreement rate” (paper §5.2.2)
STRONG_VOTES = Measure("3-0 votes", "unanimous")
# the main measures, by the names that `methods.summarise` gives them; and those of the table of all methods
SUMMARY_MEASURES = {
    "coverage": COVERAGE,
    "recall": RECALL,
    "ap": AVERAGE_PRECISION,
    "ndcg": NDCG,
    "nodes": AVERAGE_NODES,
    "tokens": TOKENS,
    "token_reduction": MICRO_REDUCTION,
    "token_reduction_macro": MACRO_REDUCTION,
}
ALL_MEASURES = (
    *(COVERAGE, STRONG_VOTES, RECALL, AVERAGE_PRECISION, NDCG),
    *(AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION, MACRO_REDUCTION),
)

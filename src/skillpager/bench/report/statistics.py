"""Intervals and tests over queries, and over the skills that queries share.

Every quantity is a ratio of two sums over queries: a mean divides by the number of queries, a micro-averaged
token reduction by the tokens of the full documents. A resample draws queries with replacement, as the paper
does. But queries about one skill are answered from the same nodes and so are not independent: where they
agree, that interval is too narrow. With `clusters` whole skills are drawn, which is the interval to trust.

Reference: paper §5 (B = 10,000, seed 42); Efron and Tibshirani, *An Introduction to the Bootstrap* (1993),
chapters 13 and 16; Field and Welsh, *Bootstrapping clustered data* (2007); McNemar (1947); Holm (1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skillpager.errors import require_extra

Numbers = NDArray[np.float64]

SAMPLES, SEED = 10_000, 42  # resamples (the paper's B) and seed of the random generator, paper §5.3.1
LEVEL = 0.95  # share of the resamples inside an interval
# a smaller mean difference is zero: processors round sums differently, and p values must not depend on that
ROUNDING = 1e-12
# numbers held at once while resampling, 8 bytes each
BLOCK = 2_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and its percentile bootstrap interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> "Interval":
        """Return the interval in another unit."""
        return Interval(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two methods differ on the same queries."""

    difference: Interval  # mean of first minus second, interval over queries
    clustered: Interval  # the same, interval over skills
    p: float  # two-sided, of the bootstrap over skills, that the means are equal
    first_only: int  # queries on which only the first succeeds
    second_only: int
    p_mcnemar: float  # exact and two-sided; McNemar's test takes queries for independent


def bootstrap(
    parts: ArrayLike, wholes: ArrayLike | None = None, *, clusters: Sequence[str] | None = None
) -> Interval:
    """Return `sum(parts) / sum(wholes)` and its percentile bootstrap interval.

    Args:
        parts: `(n,)` numerators, one a query.
        wholes: `(n,)` denominators; 1 each when not given, so that the quantity is a mean.
        clusters: The skill of each query: whole skills are drawn instead of queries.

    Raises:
        ValueError: There is nothing to resample, or the lengths differ.
    """
    pairs = _pairs(parts, wholes, clusters)
    low, high = np.quantile(_resample(pairs), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    total, weight = pairs.sum(axis=0)
    return Interval(float(total / weight), float(low), float(high))


def compare(first: ArrayLike, second: ArrayLike, *, clusters: Sequence[str]) -> Comparison:
    """Return how two methods differ, by paired bootstrap and McNemar's test.

    Args:
        first: `(n,)` success of the first method on each query, 0 or 1.
        second: `(n,)` that of the second on the same queries.
        clusters: The skill of each query.
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape:
        raise ValueError(f"the methods have {a.size} and {b.size} queries: compare them on the same ones")
    first_only, second_only = int(np.sum(a > b)), int(np.sum(b > a))
    return Comparison(
        difference=bootstrap(a - b),
        clustered=bootstrap(a - b, clusters=clusters),
        p=bootstrap_p(a - b, clusters=clusters),
        first_only=first_only,
        second_only=second_only,
        p_mcnemar=mcnemar(first_only, second_only),
    )


def bootstrap_p(differences: ArrayLike, *, clusters: Sequence[str] | None = None) -> float:
    """Return the two-sided p that the mean difference is zero: twice the smaller tail of the resamples.

    The least possible value is `2 / (SAMPLES + 1)`.

    Reference: Efron and Tibshirani (1993), chapter 16; Davison and Hinkley (1997), §4.2.5 for the + 1.
    """
    resampled = _resample(_pairs(differences, None, clusters))
    tail = min(np.sum(resampled <= ROUNDING), np.sum(resampled >= -ROUNDING))
    return min(1.0, 2 * (float(tail) + 1) / (SAMPLES + 1))


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the exact two-sided p of McNemar's test from the numbers of discordant queries.

    Reference: McNemar, *Psychometrika* 12 (1947).
    """
    if first_only + second_only == 0:
        return 1.0
    stats = require_extra("scipy.stats", extra="bench", purpose="McNemar's test")
    return float(stats.binomtest(first_only, first_only + second_only, 0.5).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number, in the order given.

    Reference: Holm, *Scandinavian Journal of Statistics* 6 (1979).
    """
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = largest
    return corrected


def _pairs(parts: ArrayLike, wholes: ArrayLike | None, clusters: Sequence[str] | None) -> Numbers:
    """Return `(n, 2)` numerators and denominators, summed over each cluster where there are clusters."""
    numerators = np.asarray(parts, dtype=float)
    denominators = np.ones_like(numerators) if wholes is None else np.asarray(wholes, dtype=float)
    if numerators.ndim != 1 or numerators.shape != denominators.shape or not numerators.size:
        raise ValueError(f"parts {numerators.shape} and wholes {denominators.shape} must be (n,), n > 0")
    pairs = np.stack([numerators, denominators], axis=1)
    if clusters is None:
        return pairs
    if len(clusters) != len(pairs):
        raise ValueError(f"{len(clusters)} clusters for {len(pairs)} queries: give each query its skill")
    names, members = np.unique(np.asarray(clusters), return_inverse=True)
    summed = np.zeros((len(names), 2))
    np.add.at(summed, members, pairs)
    return summed


def _resample(pairs: Numbers) -> Numbers:
    """Return `(SAMPLES,)` ratios of resamples of the rows of `pairs`.

    Equal rows are drawn together: how often each distinct row falls into a resample is multinomial. So
    verdicts, of which there are two kinds, cost two numbers a resample and not one for each query.
    """
    rows, counts = np.unique(pairs, axis=0, return_counts=True)
    random = np.random.default_rng(SEED)
    ratios = np.empty(SAMPLES)
    step = max(1, BLOCK // len(rows))
    for start in range(0, SAMPLES, step):
        size = min(step, SAMPLES - start)
        drawn = random.multinomial(counts.sum(), counts / counts.sum(), size=size) @ rows
        ratios[start : start + size] = drawn[:, 0] / drawn[:, 1]
    return ratios

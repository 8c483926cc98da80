"""Neighbouring nodes that belong together, such as a section, and what is best or average in each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from skillpager.types import FloatArray

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Runs:
    """Neighbours that belong together: `member[i]` is the run of node i, `starts` where runs begin."""

    member: IntArray
    starts: IntArray

    @classmethod
    def of(cls, keys: Sequence[object]) -> "Runs":
        """Return the runs of equal neighbours."""
        lengths = [sum(1 for _ in run) for _, run in groupby(keys)]
        member = np.repeat(np.arange(len(lengths)), lengths)
        return cls(member, np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp))

    def best(self, values: FloatArray) -> FloatArray:
        """Return `(runs,)`: the largest value of each run."""
        result: FloatArray = np.maximum.reduceat(values, self.starts)
        return result

    def mean(self, values: FloatArray, weights: FloatArray) -> FloatArray:
        """Return `(runs,)` or `(runs, k)`: the weighted mean of each run."""
        weights = weights if values.ndim == 1 else weights[:, None]
        sums: FloatArray = np.add.reduceat(values * weights, self.starts)
        return np.divide(sums, np.add.reduceat(weights, self.starts), dtype=np.float32)

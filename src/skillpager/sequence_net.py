"""A small network over the nodes of a document, in plain numpy: each node sees its neighbours and section.

    x     = standardised features of the node
    h     = ReLU(A x)
    h     = LayerNorm(h + W2 ReLU(W1 [h; h of the 2 nodes before and behind; mean of its section;
                                      weighted mean of the document]))          once per block
    logit = B h + C x, averaged over several networks that differ in their seed

Time and memory are linear in the number of nodes. `training/sequence_net.py` trains it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skillpager.types import FloatArray

IntArray = NDArray[np.intp]

# neighbours that a block sees: so many places before (positive) or behind (negative)
NEIGHBOURS = (1, -1, 2, -2)
# a standardised feature is cut here, so that an odd document cannot drive the network out of its range
CLIP = 4.0
# bounds of the exponent of a node's weight in the document's mean
MAX_EXPONENT = 8.0
EPSILON = 1e-5


@dataclass(frozen=True)
class SequenceNet:
    """The networks of one model.

    Attributes:
        arrays: The weights by name, as `training/sequence_net.py` writes them; those of network s begin
            with `s.`.
    """

    arrays: Mapping[str, FloatArray]

    @cached_property
    def seeds(self) -> int:
        """How many networks there are."""
        return len({name.partition(".")[0] for name in self.arrays})

    def logits(self, features: FloatArray, sections: IntArray) -> FloatArray:
        """Return `(n, outputs)` float32, averaged over the networks.

        Args:
            features: `(n, f)` features, unscaled; n is at least 1.
            sections: `(n,)` number of the section of each node, rising from 0 by at most 1.
        """
        starts = np.flatnonzero(np.concatenate([[True], sections[1:] != sections[:-1]]))
        sizes = np.diff([*starts, len(sections)])
        places = np.repeat(np.arange(len(starts)), sizes)
        total = sum(
            _run(_Weights(self.arrays, f"{seed}."), features, (starts, sizes, places))
            for seed in range(self.seeds)
        )
        mean: FloatArray = np.asarray(total, np.float32) / np.float32(self.seeds)
        return mean


class _Weights:
    def __init__(self, arrays: Mapping[str, FloatArray], prefix: str) -> None:
        self._arrays, self._prefix = arrays, prefix

    def __call__(self, name: str) -> FloatArray:
        return self._arrays[self._prefix + name]

    def has(self, name: str) -> bool:
        return self._prefix + name in self._arrays

    def linear(self, name: str, x: FloatArray) -> FloatArray:
        product: FloatArray = x @ self(f"{name}.weight")
        return product + self(f"{name}.bias") if self.has(f"{name}.bias") else product


def _run(
    weights: _Weights, features: FloatArray, sections: tuple[IntArray, IntArray, IntArray]
) -> FloatArray:
    x = ((features - weights("mean")) / weights("deviation")).clip(-CLIP, CLIP)
    h = np.maximum(weights.linear("features", x), 0)
    block = 0
    while weights.has(f"blocks.{block}.first.weight"):
        h = _block(weights, f"blocks.{block}", h, sections)
        block += 1
    return weights.linear("out", h) + weights.linear("direct", x)


def _block(
    weights: _Weights, name: str, h: FloatArray, sections: tuple[IntArray, IntArray, IntArray]
) -> FloatArray:
    width = h.shape[1]
    starts, sizes, places = sections
    first = weights(f"{name}.first.weight").reshape(-1, width, width)
    mixed = h @ first[0]
    for part, by in zip(first[1 : 1 + len(NEIGHBOURS)], NEIGHBOURS, strict=True):
        if by > 0:
            mixed[by:] += h[:-by] @ part
        else:
            mixed[:by] += h[-by:] @ part
    mixed += ((np.add.reduceat(h, starts) / sizes[:, None]) @ first[-2])[places]
    weight = np.exp(weights.linear(f"{name}.pool", h).clip(-MAX_EXPONENT, MAX_EXPONENT))
    mixed += ((h * weight).sum(0) / weight.sum()) @ first[-1]
    mixed += weights(f"{name}.first.bias")
    h = h + weights.linear(f"{name}.second", np.maximum(mixed, 0))
    h = h - h.mean(1, keepdims=True)
    h /= np.sqrt((h * h).mean(1, keepdims=True) + np.float32(EPSILON))
    normed: FloatArray = h * weights(f"{name}.norm.weight") + weights(f"{name}.norm.bias")
    return normed

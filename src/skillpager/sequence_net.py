"""A small neural network over the nodes of a document, in plain numpy.

Each node sees its neighbours, its section and the document.

    x     = standardised features of the node
    h     = ReLU(A x)
    h     = LayerNorm(h + W2 ReLU(W1 [h; h of the 2 nodes before and after; mean of its section;
                                      weighted mean of the document]))          once per block
    logit = B h + C x, averaged over several networks trained with different seeds

Time and memory are linear in the number of nodes. `training/sequence_net.py` trains it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skillpager.types import FloatArray

# neighbours that a block sees, by distance: positive before the node, negative after it
NEIGHBOURS = (1, -1, 2, -2)
# standardised features are clipped to ±CLIP, so that unusual documents stay in the range of training data
CLIP = 4.0
# bound of the exponent of a node's weight in the mean of the document
MAX_EXPONENT = 8.0
EPSILON = 1e-5

Weights = Mapping[str, FloatArray]


@dataclass(frozen=True)
class SequenceNet:
    """The networks of one model.

    Attributes:
        arrays: The weights by name, as `training/sequence_net.py` writes them; names of network s begin
            with `s.`.
    """

    arrays: Weights

    @cached_property
    def seeds(self) -> int:
        """Number of networks."""
        return len({name.partition(".")[0] for name in self.arrays})

    @cached_property
    def _networks(self) -> list[dict[str, FloatArray]]:
        """The weights of each network, by their names within it."""
        networks: list[dict[str, FloatArray]] = [{} for _ in range(self.seeds)]
        for name, array in self.arrays.items():
            seed, _, rest = name.partition(".")
            networks[int(seed)][rest] = array
        return networks

    def logits(self, features: FloatArray, sections: NDArray[np.intp]) -> FloatArray:
        """Return `(n, outputs)` float32, averaged over the networks.

        Args:
            features: `(n, f)`, not standardised; n is at least 1.
            sections: `(n,)` section number of each node; from 0, never falling, in steps of at most 1.
        """
        logits = []
        for weights in self._networks:
            x = ((features - weights["mean"]) / weights["deviation"]).clip(-CLIP, CLIP)
            h = np.maximum(_linear(weights, "features", x), 0)
            block = 0
            while f"blocks.{block}.first.weight" in weights:
                h = _block(weights, f"blocks.{block}", h, sections)
                block += 1
            logits.append(_linear(weights, "out", h) + _linear(weights, "direct", x))
        mean: FloatArray = np.asarray(sum(logits), np.float32) / np.float32(self.seeds)
        return mean


def _block(weights: Weights, block: str, h: FloatArray, sections: NDArray[np.intp]) -> FloatArray:
    """Return `(n, width)`: the hidden rows after one block."""
    width = h.shape[1]
    own, *of_neighbours, of_section, of_document = weights[f"{block}.first.weight"].reshape(-1, width, width)
    mixed = h @ own
    for matrix, distance in zip(of_neighbours, NEIGHBOURS, strict=True):
        if distance > 0:
            mixed[distance:] += h[:-distance] @ matrix
        else:
            mixed[:distance] += h[-distance:] @ matrix
    sizes = np.bincount(sections)
    section_means = np.add.reduceat(h, np.cumsum(sizes) - sizes) / sizes[:, None]
    mixed += (section_means @ of_section)[sections]
    weight = np.exp(_linear(weights, f"{block}.pool", h).clip(-MAX_EXPONENT, MAX_EXPONENT))
    mixed += ((h * weight).sum(0) / weight.sum()) @ of_document
    mixed += weights[f"{block}.first.bias"]
    h = h + _linear(weights, f"{block}.second", np.maximum(mixed, 0))
    # LayerNorm
    h = h - h.mean(1, keepdims=True)
    h /= np.sqrt((h * h).mean(1, keepdims=True) + np.float32(EPSILON))
    normed: FloatArray = h * weights[f"{block}.norm.weight"] + weights[f"{block}.norm.bias"]
    return normed


def _linear(weights: Weights, layer: str, x: FloatArray) -> FloatArray:
    product: FloatArray = x @ weights[f"{layer}.weight"]
    return product + weights[f"{layer}.bias"] if f"{layer}.bias" in weights else product

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
# where nodes stand: the section of each, and the first node and the size of each section
_Place = tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]


@dataclass(frozen=True)
class SequenceNet:
    """The networks of one model: weights by name, which for network s begin with `s.`."""

    arrays: Weights

    @cached_property
    def seeds(self) -> int:
        """Number of networks."""
        return len({name.partition(".")[0] for name in self.arrays})

    @cached_property
    def _networks(self) -> list["_Network"]:
        """The weights of each network, by their names within it."""
        networks: list[dict[str, FloatArray]] = [{} for _ in range(self.seeds)]
        for name, array in self.arrays.items():
            seed, _, rest = name.partition(".")
            networks[int(seed)][rest] = array
        return [_Network.of(weights) for weights in networks]

    def logits(self, features: FloatArray, sections: NDArray[np.intp]) -> FloatArray:
        """Return `(n, outputs)` float32, averaged over the networks, of at least one node.

        `features` are `(n, f)`, not standardised; `sections` `(n,)`, the section number of each node: from 0,
        never falling, in steps of at most 1.
        """
        sizes = np.bincount(sections)
        place = sections, np.cumsum(sizes) - sizes, sizes.astype(np.float32)[:, None]
        logits: FloatArray = np.add.reduce([network.logits(features, place) for network in self._networks])
        logits /= np.float32(self.seeds)
        return logits

    def linear(self, features: FloatArray) -> FloatArray:
        """Return `(n, outputs)`: a cheap estimate, the linear part of the first network."""
        first = self._networks[0]
        estimate: FloatArray = first.standardised(features) @ first.weights["direct.weight"]
        return estimate


@dataclass(frozen=True, slots=True)
class _Network:
    """One network: weights by name, and by block the matrices of a node's row, neighbours, section, document.

    One product for all of these would be no faster, and large enough for BLAS to start threads.
    """

    weights: Weights
    blocks: tuple[FloatArray, ...]

    @classmethod
    def of(cls, weights: Weights) -> "_Network":
        blocks: list[FloatArray] = []
        while (name := f"blocks.{len(blocks)}.first.weight") in weights:
            first = weights[name]
            blocks.append(first.reshape(-1, first.shape[1], first.shape[1]))
        return cls(weights, tuple(blocks))

    def logits(self, features: FloatArray, place: _Place) -> FloatArray:
        """Return `(n, outputs)`."""
        x = self.standardised(features)
        h: FloatArray = x @ self.weights["features.weight"]
        h += self.weights["features.bias"]
        np.maximum(h, 0, out=h)
        for number in range(len(self.blocks)):
            h = self._block(number, h, place)
        logits: FloatArray = h @ self.weights["out.weight"]
        logits += x @ self.weights["direct.weight"]
        logits += self.weights["out.bias"] + self.weights["direct.bias"]
        return logits

    def standardised(self, features: FloatArray) -> FloatArray:
        """Return features in standard deviations from the mean."""
        x: FloatArray = np.clip((features - self.weights["mean"]) / self.weights["deviation"], -CLIP, CLIP)
        return x

    def _block(self, number: int, h: FloatArray, place: _Place) -> FloatArray:
        """Return `(n, width)`: the hidden rows after one block."""
        weights, block = self.weights, f"blocks.{number}"
        sections, starts, sizes = place
        own, *of_neighbours, of_section, of_document = self.blocks[number]
        mixed: FloatArray = h @ own
        for matrix, distance in zip(of_neighbours, NEIGHBOURS, strict=True):
            if distance > 0:
                mixed[distance:] += h[:-distance] @ matrix
            else:
                mixed[:distance] += h[-distance:] @ matrix
        section_means = np.add.reduceat(h, starts)
        section_means /= sizes
        mixed += (section_means @ of_section)[sections]
        pool = h @ weights[f"{block}.pool.weight"][:, 0] + weights[f"{block}.pool.bias"]
        weight = np.exp(pool.clip(-MAX_EXPONENT, MAX_EXPONENT))
        document_mean = np.einsum("i,ij->j", weight, h) / weight.sum()
        mixed += document_mean @ of_document + weights[f"{block}.first.bias"]
        np.maximum(mixed, 0, out=mixed)
        change: FloatArray = mixed @ weights[f"{block}.second.weight"]
        change += weights[f"{block}.second.bias"]
        h = np.add(h, change, out=change)
        # LayerNorm; `einsum` sums rows in half the time of `mean`
        width = np.float32(h.shape[1])
        h -= (np.einsum("ij->i", h) / width)[:, None]
        h /= np.sqrt(np.einsum("ij,ij->i", h, h) / width + np.float32(EPSILON))[:, None]
        h *= weights[f"{block}.norm.weight"]
        h += weights[f"{block}.norm.bias"]
        return h

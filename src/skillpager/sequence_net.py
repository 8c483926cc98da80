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
    def _networks(self) -> list["_Network"]:
        """The weights of each network, by their names within it."""
        networks: list[dict[str, FloatArray]] = [{} for _ in range(self.seeds)]
        for name, array in self.arrays.items():
            seed, _, rest = name.partition(".")
            networks[int(seed)][rest] = array
        return [_Network.of(weights) for weights in networks]

    def logits(self, features: FloatArray, sections: NDArray[np.intp]) -> FloatArray:
        """Return `(n, outputs)` float32, averaged over the networks.

        Args:
            features: `(n, f)`, not standardised; n is at least 1.
            sections: `(n,)` section number of each node; from 0, never falling, in steps of at most 1.
        """
        sizes = np.bincount(sections)
        place = _Place(sections, np.cumsum(sizes) - sizes, sizes.astype(np.float32)[:, None])
        total, scaling, x = np.float32(0), None, features
        for network in self._networks:
            if scaling is None or not network.scales_as(scaling):
                scaling, x = network, network.standardised(features)
            total = total + network.logits(x, place)
        mean: FloatArray = total / np.float32(self.seeds)
        return mean


@dataclass(frozen=True, slots=True)
class _Place:
    """Where nodes stand: the section of each, and the first node and the size of each section."""

    sections: NDArray[np.intp]
    starts: NDArray[np.intp]
    sizes: FloatArray


@dataclass(frozen=True, slots=True)
class _Network:
    """One network; matrices that multiply the same rows stand side by side, for one product instead of many.

    Attributes:
        weights: By name.
        inner: Matrix and bias of the first layer, then those that lead from the features to the outputs.
        blocks: For each block, the matrix of a node's own row and of its neighbours, and their weight in the
            mean of the document; then the matrices of section and document.
    """

    weights: Weights
    inner: tuple[FloatArray, FloatArray]
    blocks: tuple[tuple[FloatArray, FloatArray, FloatArray], ...]

    @classmethod
    def of(cls, weights: Weights) -> "_Network":
        inner = (
            np.concatenate([weights["features.weight"], weights["direct.weight"]], axis=1),
            np.concatenate([weights["features.bias"], weights["direct.bias"]]),
        )
        blocks = []
        while (block := f"blocks.{len(blocks)}") + ".first.weight" in weights:
            first = weights[f"{block}.first.weight"]
            width = first.shape[1]
            *near, of_section, of_document = first.reshape(-1, width, width)
            wide = np.concatenate([*near, weights[f"{block}.pool.weight"]], axis=1)
            blocks.append((np.ascontiguousarray(wide), of_section, of_document))
        return cls(weights, inner, tuple(blocks))

    def scales_as(self, other: "_Network") -> bool:
        """Return whether features are standardised as in another network."""
        return all(np.array_equal(self.weights[name], other.weights[name]) for name in ("mean", "deviation"))

    def standardised(self, features: FloatArray) -> FloatArray:
        """Return `(n, f)`: the features in standard deviations from the mean, clipped."""
        x = features - self.weights["mean"]
        x /= self.weights["deviation"]
        return np.clip(x, -CLIP, CLIP, out=x)

    def logits(self, x: FloatArray, place: _Place) -> FloatArray:
        """Return `(n, outputs)`."""
        matrix, bias = self.inner
        both = x @ matrix
        both += bias
        width = self.weights["features.bias"].size
        h = np.maximum(both[:, :width], 0)
        for number in range(len(self.blocks)):
            h = self._block(number, h, place)
        logits: FloatArray = h @ self.weights["out.weight"]
        logits += self.weights["out.bias"]
        logits += both[:, width:]
        return logits

    def _block(self, number: int, h: FloatArray, place: _Place) -> FloatArray:
        """Return `(n, width)`: the hidden rows after one block."""
        weights, block, width = self.weights, f"blocks.{number}", h.shape[1]
        wide, of_section, of_document = self.blocks[number]
        products = h @ wide
        mixed = products[:, :width].copy()
        for part, distance in enumerate(NEIGHBOURS, start=1):
            of_neighbour = products[:, part * width : (part + 1) * width]
            if distance > 0:
                mixed[distance:] += of_neighbour[:-distance]
            else:
                mixed[:distance] += of_neighbour[-distance:]
        section_means = np.add.reduceat(h, place.starts)
        section_means /= place.sizes
        mixed += (section_means @ of_section)[place.sections]
        pool = products[:, -1] + weights[f"{block}.pool.bias"]
        weight = np.exp(pool.clip(-MAX_EXPONENT, MAX_EXPONENT))
        mixed += (weight @ h / weight.sum()) @ of_document + weights[f"{block}.first.bias"]
        np.maximum(mixed, 0, out=mixed)
        h = h + mixed @ weights[f"{block}.second.weight"]
        h += weights[f"{block}.second.bias"]
        # LayerNorm; products with a vector are faster than `mean`
        each = np.full(width, 1 / width, np.float32)
        h -= (h @ each)[:, None]
        spread = np.square(h) @ each
        spread += np.float32(EPSILON)
        h /= np.sqrt(spread)[:, None]
        h *= weights[f"{block}.norm.weight"]
        h += weights[f"{block}.norm.bias"]
        return h

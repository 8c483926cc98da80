"""Which nodes of a skill hold the words of a query: BM25, and shares of the words' rarity."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpager.types import FloatArray

IntArray = NDArray[np.intp]

# Robertson and Zaragoza 2009, §3.4
BM25_K1, BM25_B = 1.2, 0.75
# a stem is so many letters: "deploying" and "deployment" share one
STEM_CHARS = 5


@dataclass(frozen=True)
class Words:
    """Which nodes hold a term, and how much that says: BM25 over the nodes of one skill.

    Attributes:
        postings: By term, the ordinals of the nodes that hold it and its BM25 weight in each.
        rarity: By term, its inverse document frequency.
        count: Number of nodes.
    """

    postings: dict[str, tuple[IntArray, FloatArray]]
    rarity: dict[str, float]
    count: int

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]]) -> "Words":
        """Return the words of nodes given as lists of terms."""
        found: dict[str, list[tuple[int, int]]] = {}
        for ordinal, terms in enumerate(texts):
            for term, times in Counter(terms).items():
                found.setdefault(term, []).append((ordinal, times))
        lengths = np.array([len(terms) for terms in texts], np.float32)
        norms = BM25_K1 * (1 - BM25_B + BM25_B * lengths / max(1.0, float(lengths.mean() if texts else 1)))
        rarity = {
            term: math.log1p((len(texts) - len(places) + 0.5) / (len(places) + 0.5))
            for term, places in found.items()
        }
        return cls(
            {term: _weigh(places, norms, rarity[term]) for term, places in found.items()}, rarity, len(texts)
        )

    def score(self, terms: Iterable[str]) -> tuple[FloatArray, FloatArray]:
        """Return `(n,)` BM25 scores, and `(n,)` shares of the terms' rarity that each node holds."""
        scores, held = np.zeros((2, self.count), np.float32)
        total = 0.0
        unknown = math.log1p(self.count + 0.5)
        for term in terms:
            rarity = self.rarity.get(term)
            total += unknown if rarity is None else rarity
            if rarity is not None:
                ordinals, weights = self.postings[term]
                scores[ordinals] += weights
                held[ordinals] += rarity
        return scores, held / np.float32(total or 1.0)


def _weigh(places: list[tuple[int, int]], norms: FloatArray, rarity: float) -> tuple[IntArray, FloatArray]:
    ordinals = np.array([ordinal for ordinal, _ in places], np.intp)
    times = np.array([times for _, times in places], np.float32)
    return ordinals, np.float32(rarity * (BM25_K1 + 1)) * times / (times + norms[ordinals])


def stems_of(terms: Iterable[str]) -> list[str]:
    """Return the first letters of each term."""
    return [term[:STEM_CHARS] for term in terms]

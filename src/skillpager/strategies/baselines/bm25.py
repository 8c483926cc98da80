"""Words in common: BM25 over the nodes of a skill, the headings they stand under included.

Reference: Robertson and Zaragoza 2009, in the form of Lucene; Lù 2024 (bm25s).
"""

import logging
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from skillpager.errors import require_extra
from skillpager.node_text import text_under_headings
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.strategies.picking import PerIndex, select_by_score
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, TokenMeter

if TYPE_CHECKING:
    import bm25s

# saturation of repetitions and weight of length: the usual values, and bm25s's own
K1, B = 1.5, 0.75
# scores are compared to a millionth, as cosines are
DECIMALS = 6


class WordScores:
    """BM25 scores, with a cache of the word indexes that they take."""

    def __init__(self) -> None:
        """Start empty."""
        self._indexes: PerIndex[bm25s.BM25 | None] = PerIndex()

    def of(self, index: SkillIndex, text: str) -> FloatArray:
        """Return `(n,)` float32: the score of each node for a query, 0 without a word in common.

        Raises:
            MissingExtraError: The `bm25s` package is not installed.
        """
        words, terms = self._indexes.of(index, _word_index), terms_of(text)
        if words is None or not terms:
            return np.zeros(len(index.nodes), dtype=np.float32)
        scores: FloatArray = np.round(words.get_scores(terms), DECIMALS)
        return scores


def _word_index(index: SkillIndex) -> "bm25s.BM25 | None":
    """Return the BM25 index of the nodes; None when there is not one term in them."""
    first = "bm25s" not in sys.modules
    package = require_extra("bm25s", extra="strategies", purpose="Word search (bm25, hybrid)")
    if first:  # its first import sets its logger to DEBUG, whatever the application chose
        logging.getLogger("bm25s").setLevel(logging.NOTSET)
    # with headings 0.5 to 1.5 points more of the training queries have sufficient pages
    terms = [terms_of(text_under_headings(node)) for node in index.nodes]
    if not any(terms):
        return None
    words: bm25s.BM25 = package.BM25(method="lucene", k1=K1, b=B)
    words.index(terms, show_progress=False)
    return words


@dataclass(frozen=True, slots=True)
class Bm25:
    """Nodes by falling BM25 score; those without a word of the query come last, in document order.

    Attributes:
        name: `bm25`.
        words: Cache of word indexes.
    """

    name: str = "bm25"
    words: WordScores = field(default_factory=WordScores, repr=False, compare=False)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best score first.

        Raises:
            MissingExtraError: The `bm25s` package is not installed.
        """
        scores = self.words.of(index, query.text)
        return select_by_score(self.name, index, query, scores, budget=budget, meter=meter)

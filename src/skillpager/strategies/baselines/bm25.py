"""Words in common: BM25 over nodes with their headings, alone or fused with relevance ranks.

Reference: Robertson and Zaragoza 2009, in the form of Lucene; Lù 2024 (bm25s); Cormack, Clarke and Büttcher
2009 (reciprocal rank fusion).
"""

import logging
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import require_extra
from skillpager.sections import embedded_text
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.strategies.picking import PerIndex, Scores, cosines, falling, select_by_score
from skillpager.types import Budget, FloatArray, Query, ScoreKind, Selection, SkillIndex, TokenMeter

if TYPE_CHECKING:
    import bm25s

# saturation of repetitions and weight of length: the usual values, and bm25s's own
K1, B = 1.5, 0.75
DECIMALS = 6  # scores are compared to a millionth, as cosines are
RANK_CONSTANT = 60  # Cormack et al. 2009; not sensitive


def _word_index(index: SkillIndex) -> "bm25s.BM25 | None":
    """Return the BM25 index of the nodes; None if they have no terms."""
    first = "bm25s" not in sys.modules
    package = require_extra("bm25s", extra="strategies", purpose="Word search (bm25, hybrid)")
    if first:  # its first import sets its logger to DEBUG, against the application's choice
        logging.getLogger("bm25s").setLevel(logging.NOTSET)
    # with headings 0.5 to 1.5 points more of the training queries have sufficient pages
    terms = [terms_of(embedded_text(node, "heading")) for node in index.nodes]
    if not any(terms):
        return None
    words: bm25s.BM25 = package.BM25(method="lucene", k1=K1, b=B)
    words.index(terms, show_progress=False)
    return words


@dataclass(frozen=True, slots=True)
class Bm25:
    """Nodes by falling BM25 score; those without a word of the query come last, in document order."""

    name: str = "bm25"
    kind: ClassVar[ScoreKind] = ScoreKind.BM25
    words: "PerIndex[bm25s.BM25 | None]" = field(default_factory=PerIndex, repr=False, compare=False)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best score first; needs the package `bm25s`."""
        return select_by_score(
            self.name,
            index,
            query,
            self.scores(index, query),
            budget=budget,
            meter=meter,
            score_kind=self.kind,
        )

    def scores(self, index: SkillIndex, query: Query) -> Scores:
        """Return `(n,)`: the score of each node, 0 without a word in common; raises as `select` does."""
        words, terms = self.words.of(index, _word_index), terms_of(query.text)
        if words is None or not terms:
            return np.zeros(len(index.nodes), dtype=np.float32)
        scores: FloatArray = np.round(words.get_scores(terms), DECIMALS)
        return scores


@dataclass(frozen=True, slots=True)
class Hybrid(Bm25):
    """Nodes by reciprocal rank fusion of relevance and BM25.

        score(n) = 1 / (k + relevance rank of n) + 1 / (k + BM25 rank of n)

    A node without a word of the query has no BM25 rank, and the second term is 0.
    """

    name: str = "hybrid"
    kind: ClassVar[ScoreKind] = ScoreKind.RANK_FUSION

    def scores(self, index: SkillIndex, query: Query) -> Scores:
        """Return `(n,)`: the fused score of each node; raises as `select` does."""
        lexical = Bm25.scores(self, index, query)
        dense = _reciprocal_ranks(cosines(index.embeddings, query.embedding))
        fused: Scores = dense + np.where(lexical > 0, _reciprocal_ranks(lexical), 0.0)
        return fused


def _reciprocal_ranks(scores: Scores) -> NDArray[np.float64]:
    """Return `(n,)`: 1 / (k + rank) by falling score, ranks from 1, the earlier of equals first."""
    reciprocal = np.empty(len(scores))
    reciprocal[falling(scores)] = 1 / (RANK_CONSTANT + np.arange(1, len(scores) + 1))
    return reciprocal

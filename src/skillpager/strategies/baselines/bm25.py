"""Words in common: BM25 over nodes with their headings, alone or fused with relevance ranks.

Reference: Robertson and Zaragoza 2009, in the form of Lucene; Cormack, Clarke and Büttcher
2009 (reciprocal rank fusion).
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skillpager.sections import embedded_text
from skillpager.strategies.navigator.lexical import TermIndex, terms_of
from skillpager.strategies.picking import PerIndex, Scores, cosines, falling, select_by_score
from skillpager.types import Budget, FloatArray, Query, ScoreKind, Selection, SkillIndex, TokenMeter

K1 = 1.5  # saturation of repetitions
DECIMALS = 6  # scores are compared to a millionth, as cosines are
RANK_CONSTANT = 60  # Cormack et al. 2009; not sensitive


def _word_index(index: SkillIndex) -> TermIndex:
    # with headings 0.5 to 1.5 points more of the training queries have sufficient pages
    return TermIndex([terms_of(embedded_text(node, "heading")) for node in index.nodes], k1=K1)


@dataclass(frozen=True, slots=True)
class Bm25:
    """Nodes by falling BM25 score; those without a word of the query come last, in document order."""

    name: str = "bm25"
    kind: ClassVar[ScoreKind] = ScoreKind.BM25
    words: PerIndex[TermIndex] = field(default_factory=PerIndex, repr=False, compare=False)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best score first."""
        scores, kind = self.scores(index, query), self.kind
        return select_by_score(self.name, index, query, scores, budget=budget, meter=meter, score_kind=kind)

    def scores(self, index: SkillIndex, query: Query) -> Scores:
        """Return `(n,)`: the score of each node, 0 without a word in common."""
        found, _ = self.words.of(index, _word_index).score(terms_of(query.text))
        scores: FloatArray = np.round(found / np.float32(K1 + 1), DECIMALS)
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
        """Return `(n,)`: the fused score of each node."""
        lexical = Bm25.scores(self, index, query)
        dense = _reciprocal_ranks(cosines(index.embeddings, query.embedding))
        fused: Scores = dense + np.where(lexical > 0, _reciprocal_ranks(lexical), 0.0)
        return fused


def _reciprocal_ranks(scores: Scores) -> NDArray[np.float64]:
    """Return `(n,)`: 1 / (k + rank) by falling score, ranks from 1, the earlier of equals first."""
    reciprocal = np.empty(len(scores))
    reciprocal[falling(scores)] = 1 / (RANK_CONSTANT + np.arange(1, len(scores) + 1))
    return reciprocal

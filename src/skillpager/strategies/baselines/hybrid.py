"""Meaning and words together: reciprocal rank fusion of dense and BM25 ranks.

    score(n) = 1 / (k + dense rank of n) + 1 / (k + BM25 rank of n)

A node without a word of the query has no BM25 rank, and the second term is 0.

Reference: Cormack, Clarke and Büttcher 2009.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.baselines.bm25 import WordScores
from skillpager.strategies.picking import Scores, cosines, falling, select_by_score
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter

RANK_CONSTANT = 60  # Cormack et al. 2009; not sensitive


@dataclass(frozen=True, slots=True)
class Hybrid:
    """Nodes by falling fused score.

    Attributes:
        name: `hybrid`.
        words: Cache of word indexes.
    """

    name: str = "hybrid"
    words: WordScores = field(default_factory=WordScores, repr=False, compare=False)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best fused score first.

        Raises:
            MissingExtraError: The `bm25s` package is not installed.
        """
        lexical = self.words.of(index, query.text)
        dense = _reciprocal_ranks(cosines(index.embeddings, query.embedding))
        scores = dense + np.where(lexical > 0, _reciprocal_ranks(lexical), 0.0)
        return select_by_score(self.name, index, query, scores, budget=budget, meter=meter)


def _reciprocal_ranks(scores: Scores) -> NDArray[np.float64]:
    """Return `(n,)`: 1 / (k + rank) by falling score, ranks from 1, the earlier of equals first."""
    reciprocal = np.empty(len(scores))
    reciprocal[falling(scores)] = 1 / (RANK_CONSTANT + np.arange(1, len(scores) + 1))
    return reciprocal

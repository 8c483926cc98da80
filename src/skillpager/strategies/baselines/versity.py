"""The strategies of pyversity as ours: its order, our budget and record.

`diversity` is pyversity's own: 0 is relevance alone, 1 diversity alone, the opposite of `mmr_lambda`. What
lies between means something else in each strategy, so that each has a default of its own, chosen on
training data.

Reference: pyversity 0.2 (Pringled).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skillpager.errors import require_extra
from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import cosines
from skillpager.strategies.scoring import ScoredPicker, select_by_score
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, TokenMeter


@dataclass(frozen=True, slots=True)
class Diverse:
    """A strategy of pyversity.

    Attributes:
        diversity: Weight of diversity, 0 to 1; 0 picks by relevance alone.
        name: pyversity's name and ours.
        jitter: Added to the cosine of each node with itself, so that no row is a sum of others.
    """

    diversity: float
    name: str
    jitter: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        """Check the diversity.

        Raises:
            ValueError: `diversity` is outside 0 to 1.
        """
        if not 0.0 <= self.diversity <= 1.0:
            raise ValueError(f"diversity must be between 0 and 1, not {self.diversity}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the selection that admits nodes in pyversity's order until it is full.

        Under `max_tokens` the order is that of all nodes: one that does not fit is passed over for the next,
        and the order is not computed anew. The marginal value is pyversity's score at that rank; nodes that
        no rank was asked for have 0.

        Raises:
            MissingExtraError: The `pyversity` package is not installed.
        """
        purpose = f"The strategy {self.name}"
        package = require_extra("pyversity", extra="strategies", purpose=purpose)
        relevance = cosines(index.embeddings, query.embedding)
        if self.diversity == 0:  # pyversity's own order by relevance does not keep ties in document order
            return select_by_score(self.name, index, query, relevance, budget=budget, meter=meter)
        total = len(index.nodes)
        ranks = resolve(budget, total).max_nodes if budget.max_tokens is None else total
        rows = _independent(index.embeddings, self.jitter) if self.jitter else index.embeddings
        ranked = package.diversify(rows, relevance, k=ranks, strategy=self.name, diversity=self.diversity)
        scores: FloatArray = np.zeros_like(relevance)
        scores[ranked.indices] = ranked.selection_scores
        picker = ScoredPicker(index, query, scores, budget=budget, meter=meter)
        picker.admit_in_order(ranked.indices.tolist())
        return picker.selection(self.name)


def _independent(rows: FloatArray, jitter: float) -> FloatArray:
    """Return `(n, dim + n)`: rows of the same cosines with each other, and `jitter` more with themselves."""
    own = np.sqrt(jitter) * np.eye(len(rows), dtype=np.float32)
    return np.concatenate([rows, own.astype(np.float32)], axis=1)

"""The most relevant nodes, redundancy ignored: the plainest dense retrieval.

Reference: the retrieval step of paper §4.3, Top-k + dependency completion.
"""

from dataclasses import dataclass

import numpy as np

from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import Picker, cosines, select_in_order
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter


@dataclass(frozen=True, slots=True)
class TopK:
    """Nodes by falling relevance under a budget.

    Attributes:
        name: `topk`.
    """

    name: str = "topk"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the most relevant first."""
        relevance = cosines(index.embeddings, query.embedding)
        picker = Picker(index.nodes, resolve(budget, len(index.nodes)), meter)
        order = np.argsort(-relevance, kind="stable").tolist()
        return select_in_order(self.name, query.text, order, relevance, picker=picker)

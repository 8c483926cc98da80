"""Every node in document order: the reference condition, Full-document prompting.

Reference: paper §4.3.
"""

from dataclasses import dataclass

import numpy as np

from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import Picker, cosines
from skillpager.types import Budget, Query, Selection, SkillIndex, SkipReason, TokenMeter


@dataclass(frozen=True, slots=True)
class Full:
    """The whole skill, or as much of its beginning as the given limits allow.

    Attributes:
        name: `full`.
    """

    name: str = "full"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return every node in document order; the dynamic `max_nodes` does not apply."""
        total = len(index.nodes)
        limit = total if budget.max_nodes is None else budget.max_nodes
        picker = Picker(index.nodes, resolve(Budget(limit, budget.max_tokens), total), meter)
        relevance = cosines(index.embeddings, query.embedding)
        values = relevance.tolist()
        for ordinal in range(total):
            if picker.full:
                break
            picker.admit(ordinal, relevance=values[ordinal], redundancy=0.0, marginal=values[ordinal])
        return picker.selection(
            self.name,
            query.text,
            relevance=relevance,
            redundancy=np.zeros_like(relevance),
            marginal=relevance,
            reason=SkipReason.MAX_NODES,
        )

"""Every node in document order: the reference condition, Full-document prompting.

Reference: paper §4.3.
"""

from dataclasses import dataclass

from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import Picker, cosines, select_in_order
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter


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
        return select_in_order(self.name, query.text, range(total), relevance, picker=picker)

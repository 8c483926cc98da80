"""Every node in document order: the reference condition, Full-document prompting.

Reference: paper §4.3.
"""

from dataclasses import dataclass

from skillpager.strategies.picking import Picker
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
        limits = Budget(total if budget.max_nodes is None else budget.max_nodes, budget.max_tokens)
        picker = Picker(index, query, budget=limits, meter=meter)
        picker.fill(range(total), compare=False)
        return picker.selection(self.name)

"""The most relevant nodes, redundancy ignored: the plainest dense retrieval.

Reference: the retrieval step of paper §4.3, Top-k + dependency completion.
"""

from dataclasses import dataclass

from skillpager.strategies.picking import Picker, falling
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
        picker = Picker(index, query, budget=budget, meter=meter)
        picker.fill(falling(picker.relevance), compare=False)
        return picker.selection(self.name)

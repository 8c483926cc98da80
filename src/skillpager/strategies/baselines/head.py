"""The beginning of the skill: what a host keeps that cuts by position."""

from dataclasses import dataclass

from skillpager.strategies.picking import Picker
from skillpager.types import Budget, Query, Selection, SkillIndex, SkipReason, TokenMeter

# what Claude Code keeps of each invoked skill when it compacts a conversation (claude-code#94564, #96168)
HEAD_TOKENS = 5_000


@dataclass(frozen=True, slots=True)
class Head:
    """The first nodes in document order, whatever the query.

    Attributes:
        name: `head`.
    """

    name: str = "head"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the first nodes, up to the first that does not fit.

        Without `max_tokens` the ceiling is `HEAD_TOKENS`; the dynamic `max_nodes` does not apply. There
        is no score: the marginal value on record is the relevance.
        """
        nodes = len(index.nodes) if budget.max_nodes is None else budget.max_nodes
        tokens = HEAD_TOKENS if budget.max_tokens is None else budget.max_tokens
        picker = Picker(index, query, budget=Budget(nodes, tokens), meter=meter)
        for ordinal in range(len(index.nodes)):
            if picker.room <= 0 or not picker.admit(ordinal):
                break
            picker.compare(ordinal)
        return picker.selection(
            self.name, reason=SkipReason.MAX_TOKENS if picker.room else SkipReason.MAX_NODES
        )

"""The plainest selections: the most relevant nodes, the whole skill, or its beginning.

Reference: paper §4.3, the retrieval step of Top-k + dependency completion, and Full-document prompting.
"""

from dataclasses import dataclass

from skillpager.strategies.picking import Picker, falling
from skillpager.types import Budget, Query, Selection, SkillIndex, SkipReason, TokenMeter

# tokens of each invoked skill that Claude Code keeps when it compacts a conversation (claude-code#94564,
# #96168)
HEAD_TOKENS = 5_000


@dataclass(frozen=True, slots=True)
class TopK:
    """Nodes by falling relevance; redundancy is ignored."""

    name: str = "topk"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the most relevant first."""
        picker = Picker(index, query, budget=budget, meter=meter)
        picker.fill(falling(picker.relevance), compare=False)
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class Full:
    """The whole skill, or as many nodes as fit the given limits, in document order."""

    name: str = "full"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return every node in document order; the dynamic `max_nodes` does not apply."""
        total = len(index.nodes)
        limits = Budget(total if budget.max_nodes is None else budget.max_nodes, budget.max_tokens)
        picker = Picker(index, query, budget=limits, meter=meter)
        picker.fill(range(total), compare=False)
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class Head:
    """The first nodes in document order, for any query: what remains when a host cuts by position."""

    name: str = "head"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the first nodes, up to the first that does not fit.

        Without `max_tokens` the ceiling is `HEAD_TOKENS`; the dynamic `max_nodes` does not apply. The
        strategy has no score of its own: the recorded marginal value is the relevance.
        """
        nodes = len(index.nodes) if budget.max_nodes is None else budget.max_nodes
        tokens = HEAD_TOKENS if budget.max_tokens is None else budget.max_tokens
        picker = Picker(index, query, budget=Budget(nodes, tokens), meter=meter)
        for ordinal in range(len(index.nodes)):
            if picker.room <= 0 or not picker.admit(ordinal):
                break
            picker.compare(ordinal)
        reason = SkipReason.NOT_REACHED if picker.room else SkipReason.MAX_NODES
        return picker.selection(self.name, reason=reason)

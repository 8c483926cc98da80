"""What every strategy that picks by score shares: admission under the budget, and the record of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from skillpager.types import Budget, FloatArray, Node, Pick, Selection, Skip, SkipReason, TokenMeter

# float32 dot products differ in the last bits from machine to machine; rounded, ties stay ties
COSINE_DECIMALS = 6


def cosines(rows: FloatArray, row: FloatArray) -> FloatArray:
    """Return `(n,)` float32, the cosine of each unit row of `(n, dim)` with one unit row `(dim,)`."""
    return np.round(rows @ row, COSINE_DECIMALS)


@dataclass(slots=True)
class Picker:
    """Admits nodes one by one and keeps the numbers that decided each.

    Attributes:
        nodes: The pool, in document order.
        budget: The budget, `max_nodes` resolved.
        meter: Prices the growing page.
    """

    nodes: Sequence[Node]
    budget: Budget
    meter: TokenMeter
    picks: list[Pick] = field(default_factory=list)
    refused: dict[int, tuple[SkipReason, float, float]] = field(default_factory=dict)
    total_tokens: int = 0

    @property
    def full(self) -> bool:
        """Whether `max_nodes` are picked."""
        return len(self.picks) >= (self.budget.max_nodes or 0)

    def admit(self, ordinal: int, *, relevance: float, redundancy: float, marginal: float) -> bool:
        """Pick a node, or refuse it because the page would exceed `max_tokens`; tell which."""
        limit = self.budget.max_tokens
        total = self.meter.cost(ordinal)
        if limit is not None and total > limit:
            self.refused[ordinal] = (SkipReason.MAX_TOKENS, redundancy, marginal)
            return False
        self.meter.add(ordinal)
        rank, added = len(self.picks), total - self.total_tokens
        node = self.nodes[ordinal]
        self.picks.append(Pick(node, rank, relevance, redundancy, marginal, added, total))
        self.total_tokens = total
        return True

    def selection(
        self,
        strategy: str,
        query: str,
        relevance: FloatArray,
        *,
        reason: SkipReason,
        final: Callable[[int], tuple[float, float]],
    ) -> Selection:
        """Return the finished selection.

        Args:
            strategy: Name of the strategy.
            query: Text of the query.
            relevance: `(n,)` cosine of query and each node.
            reason: Why the nodes that were never refused were left out.
            final: Redundancy and marginal value of such a node when the selection ended.
        """
        picked = {pick.node.ordinal for pick in self.picks}
        values = relevance.tolist()
        skipped = []
        for ordinal, node in enumerate(self.nodes):
            if ordinal not in picked:
                verdict = self.refused.get(ordinal) or (reason, *final(ordinal))
                skipped.append(Skip(node, verdict[0], values[ordinal], verdict[1], verdict[2]))
        return Selection(strategy, query, tuple(self.picks), tuple(skipped), self.budget)

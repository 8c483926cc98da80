"""What every strategy that picks by score shares: admission under the budget, and the record of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress, starmap

import numpy as np

from skillpager.types import Budget, FloatArray, Node, Pick, Selection, Skip, SkipReason, TokenMeter

# float32 dot products differ in the last bits from machine to machine; in whole millionths ties stay ties
COSINE_STEPS = np.float32(1_000_000)


def cosines(rows: FloatArray, row: FloatArray) -> FloatArray:
    """Return `(n,)` float32: the cosine of each unit row of `(n, dim)` with one unit row, to a millionth."""
    products: FloatArray = rows @ row
    products *= COSINE_STEPS
    np.rint(products, out=products)
    products /= COSINE_STEPS
    return products


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
        *,
        relevance: FloatArray,
        redundancy: FloatArray,
        marginal: FloatArray,
        reason: SkipReason,
    ) -> Selection:
        """Return the finished selection.

        Args:
            strategy: Name of the strategy.
            query: Text of the query.
            relevance: `(n,)` cosine of query and each node.
            redundancy: `(n,)` largest cosine of each node with a pick, when the selection ended.
            marginal: `(n,)` marginal value of each node, when the selection ended.
            reason: Why the nodes that were never refused were left out.
        """
        columns = [relevance.tolist(), redundancy.tolist(), marginal.tolist()]
        reasons = [reason] * len(self.nodes)
        for ordinal, refusal in self.refused.items():
            reasons[ordinal], columns[1][ordinal], columns[2][ordinal] = refusal
        left_out = [True] * len(self.nodes)
        for pick in self.picks:
            left_out[pick.node.ordinal] = False
        skipped = starmap(Skip, compress(zip(self.nodes, reasons, *columns, strict=True), left_out))
        return Selection(strategy, query, tuple(self.picks), tuple(skipped), self.budget)

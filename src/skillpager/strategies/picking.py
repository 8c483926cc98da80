"""What every strategy that picks by score shares: admission under the budget, and the record of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from numpy.typing import NDArray

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
        picks: What is picked, in order.
        completions: Ordinals of the picks that others depend on; `max_nodes` does not count them.
        refused: Reason, redundancy and marginal value of nodes that were refused, by ordinal.
        total_tokens: Tokens of the page.
    """

    nodes: Sequence[Node]
    budget: Budget
    meter: TokenMeter
    picks: list[Pick] = field(default_factory=list)
    completions: set[int] = field(default_factory=set)
    refused: dict[int, tuple[SkipReason, float, float]] = field(default_factory=dict)
    total_tokens: int = 0
    _picked: set[int] = field(default_factory=set)

    @property
    def full(self) -> bool:
        """Whether `max_nodes` are picked, completions not counted."""
        return len(self.picks) - len(self.completions) >= (self.budget.max_nodes or 0)

    def admit(
        self,
        ordinal: int,
        *,
        relevance: float,
        redundancy: float,
        marginal: float,
        sufficiency: float | None = None,
    ) -> bool:
        """Pick a node, or refuse it because the page would exceed `max_tokens`; tell which.

        A completion stays the pick that it is, and counts from now on.
        """
        if ordinal in self.completions:
            self.completions.remove(ordinal)
            return True
        limit = self.budget.max_tokens
        total = self.meter.cost(ordinal)
        if limit is not None and total > limit:
            self.refused[ordinal] = (SkipReason.MAX_TOKENS, redundancy, marginal)
            return False
        self.meter.add(ordinal)
        rank, added = len(self.picks), total - self.total_tokens
        node = self.nodes[ordinal]
        self.picks.append(Pick(node, rank, relevance, redundancy, marginal, added, total, sufficiency))
        self.total_tokens = total
        self._picked.add(ordinal)
        return True

    def complete(self, ordinal: int, *, relevance: float, redundancy: float, marginal: float) -> None:
        """Pick a node that a pick depends on, beyond `max_nodes`, unless it is picked or does not fit."""
        if ordinal in self._picked:
            return
        if self.admit(ordinal, relevance=relevance, redundancy=redundancy, marginal=marginal):
            self.completions.add(ordinal)

    def refuse(
        self, ordinals: Iterable[int], reason: SkipReason, *, redundancy: FloatArray, marginal: FloatArray
    ) -> None:
        """Record why nodes are left out, with their numbers from `(n,)` arrays."""
        for ordinal in ordinals:
            self.refused[ordinal] = (reason, float(redundancy[ordinal]), float(marginal[ordinal]))

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
        left_out = np.ones(len(self.nodes), dtype=bool)
        left_out[[pick.node.ordinal for pick in self.picks]] = False
        skipped = Skipped(
            nodes=self.nodes,
            ordinals=np.flatnonzero(left_out),
            numbers=(relevance, redundancy, marginal),
            reason=reason,
            refused=self.refused,
        )
        return Selection(strategy, query, tuple(self.picks), skipped, self.budget)


def select_in_order(
    strategy: str,
    query: str,
    order: Iterable[int],
    relevance: FloatArray,
    *,
    picker: Picker,
    completions: Mapping[int, Sequence[int]] | None = None,
) -> Selection:
    """Return the selection that admits nodes in a fixed order, redundancy ignored, until it is full.

    Args:
        strategy: Name of the strategy.
        query: Text of the query.
        order: Ordinals, the first to be admitted first.
        relevance: `(n,)` cosine of query and each node; also the marginal value that is recorded.
        picker: Admits them under the budget.
        completions: The nodes that a pick depends on, by its ordinal; they are picked right after it.
    """
    values = relevance.tolist()
    for ordinal in order:
        if picker.full:
            break
        picked = picker.admit(ordinal, relevance=values[ordinal], redundancy=0.0, marginal=values[ordinal])
        for other in completions.get(ordinal, ()) if picked and completions else ():
            picker.complete(other, relevance=values[other], redundancy=0.0, marginal=values[other])
    return picker.selection(
        strategy,
        query,
        relevance=relevance,
        redundancy=np.zeros_like(relevance),
        marginal=relevance,
        reason=SkipReason.MAX_NODES,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Skipped(Sequence[Skip]):
    """The nodes that were left out, in document order; each `Skip` is made when it is asked for.

    A page reads none of them, and making them all would take longer than the selection itself.

    Attributes:
        nodes: The pool.
        ordinals: Which nodes were left out.
        numbers: `(n,)` relevance, redundancy and marginal value of every node at the end.
        reason: Why the nodes that were never refused were left out.
        refused: Reason, redundancy and marginal value of those that were.
    """

    nodes: Sequence[Node]
    ordinals: NDArray[np.intp]
    numbers: tuple[FloatArray, FloatArray, FloatArray]
    reason: SkipReason
    refused: Mapping[int, tuple[SkipReason, float, float]]

    def __len__(self) -> int:
        return len(self.ordinals)

    @overload
    def __getitem__(self, place: int) -> Skip: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Skip, ...]: ...

    def __getitem__(self, place: int | slice) -> Skip | tuple[Skip, ...]:
        if isinstance(place, slice):
            return tuple(map(self._skip, self.ordinals[place].tolist()))
        return self._skip(int(self.ordinals[place]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def _skip(self, ordinal: int) -> Skip:
        relevance, redundancy, marginal = (float(values[ordinal]) for values in self.numbers)
        reason = self.reason
        if ordinal in self.refused:
            reason, redundancy, marginal = self.refused[ordinal]
        return Skip(self.nodes[ordinal], reason, relevance, redundancy, marginal)

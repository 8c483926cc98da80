"""Shared by all strategies: picking under a budget, its record, and a cache for each index.

Reference: paper §3.2, Dynamic Budget.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from skillpager.caches import LRUCache
from skillpager.types import (
    Budget,
    FloatArray,
    Node,
    Pick,
    Query,
    ScoreKind,
    Selection,
    SkillIndex,
    Skip,
    SkipReason,
    TokenMeter,
)

Made = TypeVar("Made")
Scores = NDArray[np.float32] | NDArray[np.float64]

# OpenBLAS multiplies matrices with no more multiplications in one thread; for more it starts threads, which
# cost milliseconds on a busy machine
ONE_THREAD_PRODUCTS = 262_144
BLOCK_ROWS = 16

# redundancy and marginal value of every node, each `(n,)`
Numbers = tuple[FloatArray, Scores]

# paper, equation (3)
SMALL_SKILL_NODES = 100
MAX_NODES_SMALL = 20
MAX_NODES_LARGE = 60
# float32 dot products differ in the last bits from machine to machine; in whole millionths ties stay ties
COSINE_STEPS = np.float32(1_000_000)
# the caches of one strategy are bounded by the nodes of their indexes, about 1 kB each
MAX_CACHED_NODES = 20_000
MIN_CACHED_NODES = 100  # a smaller index counts as this


def dynamic_max_nodes(n_nodes: int) -> int:
    """Return the paper's k for a skill of `n_nodes`: 20 up to 100 nodes, else 60."""
    return MAX_NODES_SMALL if n_nodes <= SMALL_SKILL_NODES else MAX_NODES_LARGE


def resolve(budget: Budget, n_nodes: int) -> Budget:
    """Return `budget` with `max_nodes` filled in and never above the number of nodes.

    Raises:
        ValueError: A limit is negative.
    """
    for name, value in (("max_nodes", budget.max_nodes), ("max_tokens", budget.max_tokens)):
        if value is not None and value < 0:
            raise ValueError(f"{name} must be 0 or more, not {value}")
    wanted = dynamic_max_nodes(n_nodes) if budget.max_nodes is None else budget.max_nodes
    return replace(budget, max_nodes=min(wanted, n_nodes))


def allows_all(budget: Budget, n_nodes: int, *, estimating: bool) -> bool:
    """Return whether the budget allows every node of a skill, its tokens aside.

    A strategy that estimates sufficiency (`estimating`) stops at its target or by itself unless it is to fill
    the page, and has no dynamic `max_nodes`.
    """
    if estimating and (budget.sufficiency is not None or not budget.fill):
        return False
    return (estimating and budget.max_nodes is None) or resolve(budget, n_nodes).max_nodes == n_nodes


def cosines(rows: FloatArray, row: FloatArray) -> FloatArray:
    """Return `(n,)` float32: the cosine of each unit row of `(n, dim)` with one unit row, to a millionth."""
    return _in_millionths(rows @ row)


def _in_millionths(products: FloatArray) -> FloatArray:
    """Round cosines in place, and return them."""
    products *= COSINE_STEPS
    np.rint(products, out=products)
    products /= COSINE_STEPS
    return products


def nearest(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Return `(n,)` float32: the largest cosine of each unit row with other unit rows, to a millionth."""
    return _in_millionths(_products(others, rows).max(axis=0))


def _products(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Return `(len(rows), len(others))` float32: `rows @ others.T`, as blocks that take one thread each."""
    made = np.empty((len(rows), len(others)), np.float32)
    width = max(1, ONE_THREAD_PRODUCTS // (BLOCK_ROWS * rows.shape[1]))
    for left in range(0, len(others), width):
        block = others[left : left + width].T
        for top in range(0, len(rows), BLOCK_ROWS):
            np.matmul(
                rows[top : top + BLOCK_ROWS], block, out=made[top : top + BLOCK_ROWS, left : left + width]
            )
    return made


def falling(scores: Scores) -> list[int]:
    """Return the positions of `scores`, the largest first, the earlier of equals first."""
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


class KeptCosines:
    """Cosines of the rows of an index with single ones, computed when first asked for.

    Args:
        rows: `(n, dim)`, of unit length.
        most: How many rows' cosines are kept; those of others are computed each time.
    """

    def __init__(self, rows: FloatArray, most: int) -> None:
        self._rows, self._most = rows, most
        self._kept: dict[int, FloatArray] = {}

    def with_row(self, ordinal: int) -> FloatArray:
        """Return `(n,)` float32: the cosines with one row; callers must not change the array."""
        found = self._kept.get(ordinal)
        if found is None:
            found = cosines(self._rows, self._rows[ordinal])
            if len(self._kept) < self._most:
                self._kept[ordinal] = found
        return found


class PerIndex(Generic[Made]):
    """A cache of what a strategy computes once for an index; bounded, safe for many threads.

    Args:
        capacity: The sum of the sizes of all entries at most.
        size_of: The size of an index's entry; the number of its nodes by default.
    """

    def __init__(
        self, capacity: int = MAX_CACHED_NODES, *, size_of: Callable[[SkillIndex], int] | None = None
    ) -> None:
        self._entries = LRUCache[SkillIndex, tuple[int, Made]](capacity, size_of=itemgetter(0))
        self._size_of = size_of or _counted_nodes

    def of(self, index: SkillIndex, make: Callable[[SkillIndex], Made]) -> Made:
        """Return the cached value of an index, made by `make` if there is none."""
        return self._entries.get_or_make(index, lambda: (self._size_of(index), make(index)))[1]


def _counted_nodes(index: SkillIndex) -> int:
    return max(MIN_CACHED_NODES, len(index.nodes))


class Picker:
    """Admits nodes one by one under a budget and records the numbers that decided each.

    A pick is recorded with the numbers at its time, a node that is left out with those at the end. A strategy
    may replace `redundancy` and `marginal` between picks.

    Attributes:
        budget: The budget of the caller, with `max_nodes` filled in.
        meter: Prices the growing page.
        picks: The picks, in order.
        completions: Ordinals of the picks that others depend on; `max_nodes` does not count them.
        relevance: `(n,)` float32, cosine of the query and each node.
        redundancy: `(n,)` float32, largest cosine of each node with a pick; zeros unless compared.
        marginal: `(n,)` marginal value of each node: the strategy's own `scores`, or the relevance.
        score_kind: What `marginal` is.
    """

    def __init__(
        self,
        index: SkillIndex,
        query: Query,
        *,
        budget: Budget,
        meter: TokenMeter,
        scores: Scores | None = None,
        score_kind: ScoreKind = ScoreKind.COSINE,
    ) -> None:
        self.budget = resolve(budget, len(index.nodes))
        self.meter = meter
        self.picks: list[Pick] = []
        self.completions: set[int] = set()
        self.relevance = cosines(index.embeddings, query.embedding)
        self.redundancy: FloatArray = np.zeros_like(self.relevance)
        self.marginal: Scores = self.relevance if scores is None else scores.astype(np.float32)
        self.score_kind = score_kind
        self._index, self._query = index, query.text
        self._picked: set[int] = set()
        self._refused: dict[int, tuple[SkipReason, float, float]] = {}
        self._compared = False

    @property
    def room(self) -> int:
        """How many more nodes `max_nodes` allows, completions not counted."""
        return (self.budget.max_nodes or 0) - len(self.picks) + len(self.completions)

    def admit(
        self,
        ordinal: int,
        *,
        numbers: tuple[float, float] | None = None,
        sufficiency: float | None = None,
    ) -> bool:
        """Pick a node and return True; refuse it and return False if the page would exceed `max_tokens`.

        A node that was picked as a completion keeps its place, and `max_nodes` counts it from now on.

        Args:
            ordinal: The node.
            numbers: Its redundancy and marginal value, if the arrays do not have them yet.
            sufficiency: Estimated chance that the picks up to this one suffice.
        """
        if ordinal in self.completions:
            self.completions.remove(ordinal)
            return True
        redundancy, marginal = numbers or (self.redundancy.item(ordinal), self.marginal.item(ordinal))
        total = self.meter.cost(ordinal)
        if self.budget.max_tokens is not None and total > self.budget.max_tokens:
            self._refused[ordinal] = (SkipReason.MAX_TOKENS, redundancy, marginal)
            return False
        self.meter.add(ordinal)
        before = self.picks[-1].total_tokens if self.picks else 0
        # by position: names take longer than all else here
        pick = Pick(
            self._index.nodes[ordinal],
            len(self.picks),  # rank
            self.relevance.item(ordinal),
            redundancy,
            marginal,
            total - before,  # tokens
            total,
            sufficiency,
        )
        self.picks.append(pick)
        self._picked.add(ordinal)
        return True

    def complete(self, ordinals: Iterable[int]) -> None:
        """Pick the nodes that a pick depends on, beyond `max_nodes`, unless picked already or too long."""
        for ordinal in ordinals:
            if ordinal not in self._picked and self.admit(ordinal):
                self.completions.add(ordinal)

    def compare(self, ordinal: int) -> None:
        """Raise `redundancy` to the cosines with a pick; the first one sets it, even below zero."""
        cosine = cosines(self._index.embeddings, self._index.embeddings[ordinal])
        self.redundancy = np.maximum(self.redundancy, cosine) if self._compared else cosine
        self._compared = True

    def fill(
        self,
        order: Iterable[int],
        *,
        compare: bool = True,
        completions: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Admit the nodes that fit, in a fixed order, until `max_nodes` are picked.

        Args:
            order: Ordinals, the first to be admitted first.
            compare: Whether to record the redundancy of each pick, which decides nothing here.
            completions: The nodes that a pick depends on, by its ordinal; they are picked right after it.
        """
        for ordinal in order:
            if self.room <= 0:
                break
            if self.admit(ordinal):
                if compare:
                    self.compare(ordinal)
                if completions:
                    self.complete(completions.get(ordinal, ()))

    def refuse(self, ordinals: Iterable[int], reason: SkipReason) -> None:
        """Record why nodes are left out, with their current numbers."""
        for ordinal in ordinals:
            self._refused[ordinal] = (reason, float(self.redundancy[ordinal]), float(self.marginal[ordinal]))

    def selection(
        self,
        strategy: str,
        *,
        reason: SkipReason = SkipReason.MAX_NODES,
        numbers: Callable[[], Numbers] | None = None,
        covered: float | None = None,
    ) -> Selection:
        """Return the finished selection.

        Args:
            strategy: Name of the strategy.
            reason: Why the nodes were left out that were neither picked nor refused.
            numbers: Computes redundancy and marginal value of all nodes when they are read; without it they
                are those of the picker.
            covered: Estimated chance that the skill answers the query at all.
        """
        left_out = np.ones(len(self._index.nodes), dtype=bool)
        left_out[list(self._picked)] = False
        # no closure: selections are pickled
        make = numbers or partial(_both, self.redundancy, self.marginal)
        places = np.flatnonzero(left_out)
        skipped = Skipped(self._index.nodes, places, self.relevance, make, reason, self._refused)
        picks = tuple(self.picks)
        return Selection(strategy, self._query, picks, skipped, self.budget, self.score_kind, covered)


def _both(redundancy: FloatArray, marginal: Scores) -> Numbers:
    return redundancy, marginal


def select_by_score(
    strategy: str,
    index: SkillIndex,
    query: Query,
    scores: Scores,
    *,
    budget: Budget,
    meter: TokenMeter,
    score_kind: ScoreKind,
) -> Selection:
    """Return the selection that admits nodes by falling score until it is full.

    Args:
        strategy: Name of the strategy.
        index: The skill's index.
        query: The query.
        scores: `(n,)` the strategy's own score of each node.
        budget: How much the page may hold.
        meter: Prices the growing page.
        score_kind: What the scores are.
    """
    picker = Picker(index, query, budget=budget, meter=meter, scores=scores, score_kind=score_kind)
    picker.fill(falling(scores))
    return picker.selection(strategy)


class Skipped(Sequence[Skip]):
    """The nodes that were left out, in document order; each `Skip` is made when it is read.

    A page reads none of them, and making them all would take longer than the selection itself.

    Args:
        nodes: All nodes of the index.
        ordinals: The nodes that were left out.
        relevance: `(n,)` relevance of every node.
        numbers: Returns redundancy and marginal value of every node at the end, each `(n,)`.
        reason: Why the nodes that were never refused were left out.
        refused: Reason, redundancy and marginal value of the nodes that were refused, by ordinal.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        ordinals: NDArray[np.intp],
        relevance: FloatArray,
        numbers: Callable[[], Numbers],
        reason: SkipReason,
        refused: Mapping[int, tuple[SkipReason, float, float]],
    ) -> None:
        self._nodes, self._ordinals, self._relevance = nodes, ordinals, relevance
        self._make_numbers, self._reason, self._refused = numbers, reason, refused

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Copy and pickle as a tuple, without the embeddings that the numbers are made of."""
        return tuple, (tuple(self),)

    def __len__(self) -> int:
        return len(self._ordinals)

    @overload
    def __getitem__(self, place: int) -> Skip: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Skip, ...]: ...

    def __getitem__(self, place: int | slice) -> Skip | tuple[Skip, ...]:
        if isinstance(place, slice):
            return tuple(self[number] for number in range(*place.indices(len(self))))
        ordinal = int(self._ordinals[place])
        redundancies, marginals = self._numbers
        numbers = self._reason, float(redundancies[ordinal]), float(marginals[ordinal])
        reason, redundancy, marginal = self._refused.get(ordinal, numbers)
        return Skip(self._nodes[ordinal], reason, float(self._relevance[ordinal]), redundancy, marginal)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"

    @cached_property
    def _numbers(self) -> Numbers:
        return self._make_numbers()

"""Shared by all strategies: picking under a budget (paper §3.2), its record, and a cache for each index."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from skillpager.caches import LRUCache
from skillpager.types import (
    Budget,
    FloatArray,
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

# paper §3.2, Dynamic Budget, equation (3)
SMALL_SKILL_NODES = 100
MAX_NODES_SMALL = 20
MAX_NODES_LARGE = 60
# float32 dot products differ in the last bits from machine to machine; in whole millionths ties stay ties
COSINE_STEPS = np.float32(1_000_000)
COMPARED_PICKS = 256  # that are compared with all nodes at once
# the caches of one strategy are bounded by the nodes of their indexes, about 1 kB each
MAX_CACHED_NODES = 20_000
MIN_CACHED_NODES = 100  # a smaller index counts as this


def dynamic_max_nodes(n_nodes: int) -> int:
    """Return the paper's k for a skill of `n_nodes`: 20 up to 100 nodes, else 60."""
    return MAX_NODES_SMALL if n_nodes <= SMALL_SKILL_NODES else MAX_NODES_LARGE


def resolve(budget: Budget, n_nodes: int) -> Budget:
    """Return `budget` with `max_nodes` filled in and never above the number of nodes."""
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
    return to_millionths(rows @ row)


def to_millionths(products: FloatArray) -> FloatArray:
    """Return products of unit rows rounded so far that machines agree on them."""
    rounded: FloatArray = np.rint(products * COSINE_STEPS) / COSINE_STEPS
    return rounded


def falling(scores: Scores) -> list[int]:
    """Return the positions of `scores`, the largest first, the earlier of equals first."""
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


class PerIndex(Generic[Made]):
    """A cache of what a strategy computes once for an index; bounded, safe for many threads."""

    def __init__(self, capacity: int = MAX_CACHED_NODES) -> None:
        self._entries = LRUCache[SkillIndex, tuple[int, Made]](capacity, size_of=itemgetter(0))

    def of(self, index: SkillIndex, make: Callable[[SkillIndex], Made]) -> Made:
        """Return the cached value of an index, made by `make` if there is none."""
        size = max(MIN_CACHED_NODES, len(index.nodes))
        return self._entries.get_or_make(index, lambda: (size, make(index)))[1]


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

    def admit(self, ordinal: int, *, sufficiency: float | None = None) -> bool:
        """Pick a node and return True; refuse it and return False if the page would exceed `max_tokens`.

        A node that was picked as a completion keeps its place, and `max_nodes` counts it from now on.
        `sufficiency` is the estimated chance that the picks up to this one suffice.
        """
        if ordinal in self.completions:
            self.completions.remove(ordinal)
            return True
        redundancy, marginal = self.redundancy.item(ordinal), self.marginal.item(ordinal)
        total = self.meter.cost(ordinal)
        if self.budget.max_tokens is not None and total > self.budget.max_tokens:
            self._refused[ordinal] = (SkipReason.MAX_TOKENS, redundancy, marginal)
            return False
        self.meter.add(ordinal)
        before = self.picks[-1].total_tokens if self.picks else 0
        self.picks.append(
            Pick(
                node=self._index.nodes[ordinal],
                rank=len(self.picks),
                relevance=self.relevance.item(ordinal),
                redundancy=redundancy,
                marginal=marginal,
                tokens=total - before,
                total_tokens=total,
                sufficiency=sufficiency,
            )
        )
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

    def compare_picks(self) -> None:
        """Record the redundancy of every node at once: for a strategy that does not read it."""
        rows = self._index.embeddings
        for start in range(0, len(self.picks), COMPARED_PICKS):
            picks = self.picks[start : start + COMPARED_PICKS]
            cosine = cosines(rows, rows[[pick.node.ordinal for pick in picks]].T)
            for place, pick in enumerate(picks):
                before = self.redundancy[pick.node.ordinal]
                redundancy = cosine[pick.node.ordinal, :place].max(initial=before).item()
                self.picks[start + place] = replace(pick, redundancy=redundancy)
            np.maximum(self.redundancy, cosine.max(1), out=self.redundancy)
        for ordinal, (reason, _, marginal) in self._refused.items():
            self._refused[ordinal] = reason, self.redundancy.item(ordinal), marginal

    def fill(
        self,
        order: Iterable[int],
        *,
        compare: bool = True,
        completions: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Admit the nodes that fit, in a fixed order, until `max_nodes` are picked.

        `compare` records the redundancy of each pick, which decides nothing here. `completions` are the nodes
        that a pick depends on, by its ordinal; they are picked right after it.
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
        self, strategy: str, *, reason: SkipReason = SkipReason.MAX_NODES, covered: float | None = None
    ) -> Selection:
        """Return the finished selection.

        `reason` is that of nodes that were neither picked nor refused; `covered` the estimated chance that
        the skill answers the query at all.
        """
        numbers = zip(self.redundancy.tolist(), self.marginal.tolist(), self.relevance.tolist(), strict=True)
        skipped = []
        for ordinal, (node, (*now, relevance)) in enumerate(zip(self._index.nodes, numbers, strict=True)):
            if ordinal not in self._picked:
                why, redundancy, marginal = self._refused.get(ordinal, (reason, *now))
                skipped.append(Skip(node, why, relevance, redundancy, marginal))
        picks = tuple(self.picks)
        return Selection(strategy, self._query, picks, tuple(skipped), self.budget, self.score_kind, covered)


def select_by_score(
    strategy: str,
    index: SkillIndex,
    query: Query,
    scores: Scores,
    *,
    budget: Budget,
    meter: TokenMeter,
    score_kind: ScoreKind = ScoreKind.COSINE,
) -> Selection:
    """Return the selection of `strategy` that admits nodes by falling score until it is full.

    `scores` are `(n,)`, the strategy's own score of each node; the other arguments are those of a `Picker`.
    """
    picker = Picker(index, query, budget=budget, meter=meter, scores=scores, score_kind=score_kind)
    picker.fill(falling(scores))
    return picker.selection(strategy)

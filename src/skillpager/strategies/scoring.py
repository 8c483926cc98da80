"""Picking by a score of the strategy's own, with the redundancy of each pick on record."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import Picker, cosines
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, TokenMeter

Scores = NDArray[np.float32] | NDArray[np.float64]


def falling(scores: Scores) -> list[int]:
    """Return the places of `scores`, the largest first, the earlier of equals first."""
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return order


class ScoredPicker:
    """Admits nodes one by one and records relevance, redundancy and score of each.

    Redundancy is recorded, not weighed: what it costs a node is for the strategy to decide.

    Args:
        index: The skill's index.
        query: The query.
        scores: `(n,)` the strategy's own score of each node, recorded as its marginal value.
        budget: As the caller gave it.
        meter: Prices the growing page.
    """

    def __init__(
        self, index: SkillIndex, query: Query, scores: Scores, *, budget: Budget, meter: TokenMeter
    ) -> None:
        self._picker = Picker(index.nodes, resolve(budget, len(index.nodes)), meter)
        self._query = query.text
        self._rows = index.embeddings
        self._marginal: FloatArray = scores.astype(np.float32)
        self._relevance = cosines(index.embeddings, query.embedding)
        self._redundancy: FloatArray = np.zeros_like(self._relevance)

    @property
    def picked(self) -> int:
        """How many nodes are picked."""
        return len(self._picker.picks)

    @property
    def room(self) -> int:
        """How many more nodes `max_nodes` allows."""
        return (self._picker.budget.max_nodes or 0) - self.picked

    def fits(self, ordinal: int, *, further: int = 0) -> bool:
        """Tell whether the page with a node, and `further` tokens, is within `max_tokens`."""
        limit = self._picker.budget.max_tokens
        return limit is None or self._picker.meter.cost(ordinal) + further <= limit

    def admit(self, ordinal: int) -> bool:
        """Pick a node, or refuse it because the page would exceed `max_tokens`; tell which."""
        values = (self._relevance[ordinal], self._redundancy[ordinal], self._marginal[ordinal])
        relevance, redundancy, marginal = map(float, values)
        first = not self.picked
        if not self._picker.admit(ordinal, relevance=relevance, redundancy=redundancy, marginal=marginal):
            return False
        cosine = cosines(self._rows, self._rows[ordinal])
        self._redundancy = cosine if first else np.maximum(self._redundancy, cosine)
        return True

    def admit_in_order(self, order: Iterable[int]) -> None:
        """Pick, in the order given, whatever still fits, until `max_nodes` are picked."""
        for ordinal in order:
            if not self.room:
                break
            self.admit(ordinal)

    def refuse(self, ordinals: Iterable[int], reason: SkipReason) -> None:
        """Record why nodes are left out."""
        self._picker.refuse(ordinals, reason, redundancy=self._redundancy, marginal=self._marginal)

    def selection(self, strategy: str, *, reason: SkipReason = SkipReason.MAX_NODES) -> Selection:
        """Return the finished selection; `reason` is that of the nodes that were never refused."""
        return self._picker.selection(
            strategy,
            self._query,
            relevance=self._relevance,
            redundancy=self._redundancy,
            marginal=self._marginal,
            reason=reason,
        )


def select_by_score(
    strategy: str, index: SkillIndex, query: Query, scores: Scores, *, budget: Budget, meter: TokenMeter
) -> Selection:
    """Return the selection that admits nodes by falling score until it is full.

    Args:
        strategy: Name of the strategy.
        index: The skill's index.
        query: The query.
        scores: `(n,)` the strategy's own score of each node.
        budget: How much the page may hold.
        meter: Prices the growing page.
    """
    picker = ScoredPicker(index, query, scores, budget=budget, meter=meter)
    picker.admit_in_order(falling(scores))
    return picker.selection(strategy)

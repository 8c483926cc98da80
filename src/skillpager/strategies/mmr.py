"""Maximal Marginal Relevance over the whole node pool: the paper's selection.

    marginal(n) = mmr_lambda · relevance(n) − (1 − mmr_lambda) · redundancy(n)

relevance is the cosine of query and node, redundancy the largest cosine of the node with any pick, zero
before the first. Picking stops at `max_nodes`, when no node fits `max_tokens`, or when the best marginal is
below zero. All node types are in the pool; ties go to the earlier node.

Reference: paper §3.2, equations (2) and (3); Carbonell and Goldstein 1998.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.picking import PerIndex, Picker, cosines
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, TokenMeter

BoolArray = NDArray[np.bool_]

DEFAULT_MMR_LAMBDA = 0.7  # paper §3.2
MAX_CACHED_COLUMNS = 200  # for one index: 800 bytes a node
# one product for all columns of so many nodes costs as much as fifteen columns one by one
MAX_JOINT_NODES = 128


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal Marginal Relevance under a budget (paper §3.2).

    Attributes:
        mmr_lambda: Weight of relevance, 0 to 1; 1 picks by relevance alone.
        columns: For each index, cosines of all nodes with earlier picks, by the pick's ordinal.
    """

    mmr_lambda: float = DEFAULT_MMR_LAMBDA
    name: str = "mmr"
    columns: PerIndex[dict[int, FloatArray]] = field(default_factory=PerIndex, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the weight.

        Raises:
            ValueError: `mmr_lambda` is outside 0 to 1.
        """
        if not 0.0 <= self.mmr_lambda <= 1.0:
            raise ValueError(f"mmr_lambda must be between 0 and 1, not {self.mmr_lambda}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks in the order MMR makes them; O(n·d) for each pick."""
        return self.select_among(index, query, budget=budget, meter=meter)

    def select_among(
        self,
        index: SkillIndex,
        query: Query,
        *,
        budget: Budget,
        meter: TokenMeter,
        candidates: BoolArray | None = None,
        completions: Mapping[int, Sequence[int]] | None = None,
    ) -> Selection:
        """Return what `select` returns, from some of the nodes, or with what the picks depend on.

        Args:
            index: The skill's index.
            query: The query.
            budget: The budget; the dynamic `max_nodes` follows the number of all nodes.
            meter: Prices the growing page.
            candidates: `(n,)` bool, the nodes that may be picked; None for all.
            completions: The nodes that a pick depends on, by its ordinal. They are picked right after it,
                `max_nodes` does not count them, and the redundancy of later picks ignores them.
        """
        picker = Picker(index, query, budget=budget, meter=meter)
        columns = self.columns.of(index, _columns)
        gain = np.float32(self.mmr_lambda) * picker.relevance
        penalty = np.float32(1) - np.float32(self.mmr_lambda)
        picker.marginal = gain
        # -inf for nodes that were tried, or are not candidates
        open_gain = gain.copy() if candidates is None else np.where(candidates, gain, np.float32(-np.inf))
        value, reason = open_gain, SkipReason.MAX_NODES
        left = len(gain) if candidates is None else int(candidates.sum())
        loss = np.empty_like(gain)
        while left and picker.room > 0:
            best = int(value.argmax())
            if value[best] < 0:
                reason = SkipReason.NEGATIVE_MARGINAL
                break
            left -= 1
            open_gain[best] = value[best] = -np.inf
            if not picker.admit(best):
                continue
            column = columns.get(best)
            if column is None:
                column = cosines(index.embeddings, index.embeddings[best])
                if len(columns) < MAX_CACHED_COLUMNS:
                    columns[best] = column
            picker.compare(best, column)
            np.multiply(penalty, picker.redundancy, out=loss)
            if value is open_gain:
                value, picker.marginal = np.empty_like(gain), np.empty_like(gain)
            np.subtract(gain, loss, out=picker.marginal)
            np.subtract(open_gain, loss, out=value)
            if completions:
                picker.complete(completions.get(best, ()))
        if candidates is not None:
            picker.refuse(np.flatnonzero(~candidates).tolist(), SkipReason.NOT_IN_POOL)
        return picker.selection(self.name, reason=reason)


def _columns(index: SkillIndex) -> dict[int, FloatArray]:
    """Return the cosines of all nodes with each node of a small index, by its ordinal; else nothing."""
    rows = index.embeddings
    return dict(enumerate(cosines(rows, rows.T))) if len(rows) <= MAX_JOINT_NODES else {}

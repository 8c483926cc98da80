"""Maximal Marginal Relevance over the whole node pool: the paper's selection.

    marginal(n) = mmr_lambda · relevance(n) − (1 − mmr_lambda) · redundancy(n)

relevance is the cosine of query and node, redundancy the largest cosine of the node with any pick, zero
before the first. Picking stops at `max_nodes`, when no node fits `max_tokens`, or when the best marginal is
below zero. All node types are in the pool; ties go to the earlier node.

Reference: paper §3.2, equations (2) and (3); Carbonell and Goldstein 1998.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.picking import Picker
from skillpager.types import Budget, Query, ScoreKind, Selection, SkillIndex, SkipReason, TokenMeter

BoolArray = NDArray[np.bool_]

DEFAULT_MMR_LAMBDA = 0.7  # paper §3.2


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal Marginal Relevance under a budget (paper §3.2).

    Attributes:
        mmr_lambda: Weight of relevance, 0 to 1; 1 picks by relevance alone.
    """

    mmr_lambda: float = DEFAULT_MMR_LAMBDA
    name: str = "mmr"

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
        picker = Picker(index, query, budget=budget, meter=meter, score_kind=ScoreKind.MMR_MARGIN)
        pool = np.ones(len(index.nodes), bool) if candidates is None else candidates
        gain = np.float32(self.mmr_lambda) * picker.relevance
        penalty = np.float32(1) - np.float32(self.mmr_lambda)
        open_ = pool.copy()
        picker.marginal = gain
        reason = SkipReason.MAX_NODES
        while picker.room > 0 and open_.any():
            best = int(np.where(open_, picker.marginal, -np.inf).argmax())  # the first of equals
            if picker.marginal[best] < 0:
                reason = SkipReason.NEGATIVE_MARGINAL
                break
            open_[best] = False
            if picker.admit(best):
                picker.compare(best)
                picker.marginal = gain - penalty * picker.redundancy
                picker.complete((completions or {}).get(best, ()))
        picker.refuse(np.flatnonzero(~pool).tolist(), SkipReason.NOT_IN_POOL)
        return picker.selection(self.name, reason=reason)

"""Maximal Marginal Relevance: the paper's selection, and its ablations by node type.

    marginal(n) = mmr_lambda · relevance(n) − (1 − mmr_lambda) · redundancy(n)

relevance is the cosine of query and node, redundancy the largest cosine of the node with any pick, zero
before the first. Picking stops at `max_nodes`, when no node fits `max_tokens`, or when the best marginal is
below zero. All node types are in the pool; ties go to the earlier node.

The ablations leave concepts out, nodes of all other types, or concepts where there are too many. Concepts are
the one type that is not executable (paper §3.1). The dynamic `max_nodes` counts all nodes.

Reference: paper §3.2, equations (2) and (3); Carbonell and Goldstein 1998; paper §5.2.2, Concept Candidate
Pool Design, table 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.picking import Picker
from skillpager.types import (
    Budget,
    FloatArray,
    NodeType,
    Query,
    ScoreKind,
    Selection,
    SkillIndex,
    SkipReason,
    TokenMeter,
)

DEFAULT_MMR_LAMBDA = 0.7  # paper §3.2
DEFAULT_CONCEPT_RATIO = 0.4  # the middle one of the paper's 0.3, 0.4 and 0.5


@dataclass(frozen=True, slots=True)
class Mmr:
    """Maximal Marginal Relevance under a budget (paper §3.2)."""

    mmr_lambda: float = DEFAULT_MMR_LAMBDA  # weight of relevance, 0 to 1; 1 picks by relevance alone
    name: str = "mmr"

    def __post_init__(self) -> None:
        if not 0.0 <= self.mmr_lambda <= 1.0:
            raise ValueError(f"mmr_lambda must be between 0 and 1, not {self.mmr_lambda}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks in the order MMR makes them; O(n·d) for each pick."""
        picker = Picker(index, query, budget=budget, meter=meter, score_kind=ScoreKind.MMR_MARGIN)
        pool = self.pool(index)
        completions = self.completions(index, picker.relevance)
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
                picker.complete(completions.get(best, ()))
        picker.refuse(np.flatnonzero(~pool).tolist(), SkipReason.NOT_IN_POOL)
        return picker.selection(self.name, reason=reason)

    def pool(self, index: SkillIndex) -> NDArray[np.bool_]:
        """Return `(n,)`: which nodes may be picked."""
        return np.ones(len(index.nodes), bool)

    def completions(self, index: SkillIndex, relevance: FloatArray) -> Mapping[int, Sequence[int]]:
        """Return the nodes that a pick depends on, by its ordinal; `relevance` is `(n,)`.

        They are picked right after it, `max_nodes` does not count them, and the redundancy of later picks
        ignores them.
        """
        del index, relevance
        return {}


@dataclass(frozen=True, slots=True)
class ConceptOnly(Mmr):
    """MMR over the concepts; executable nodes are left out."""

    name: str = "concept_only"

    def pool(self, index: SkillIndex) -> NDArray[np.bool_]:
        """Return `(n,)`: which nodes are concepts."""
        return np.array([node.type is NodeType.CONCEPT for node in index.nodes], bool)


@dataclass(frozen=True, slots=True)
class Density(Mmr):
    """MMR over all nodes, or the executable ones if more than a share of the nodes are concepts.

    That share is `threshold`, 0 to 1: the paper's τ.
    """

    threshold: float = DEFAULT_CONCEPT_RATIO
    name: str = "density"

    def __post_init__(self) -> None:
        Mmr.__post_init__(self)  # `slots=True` makes a second class, which `super()` does not know
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold must be between 0 and 1, not {self.threshold}")

    def pool(self, index: SkillIndex) -> NDArray[np.bool_]:
        """Return `(n,)`: which nodes are not concepts; all if there are few concepts."""
        concepts = np.array([node.type is NodeType.CONCEPT for node in index.nodes], bool)
        few = int(concepts.sum()) <= self.threshold * len(concepts)
        return np.ones_like(concepts) if few else ~concepts


@dataclass(frozen=True, slots=True)
class ExecOnly(Density):
    """MMR over steps, examples, params, preconditions and error handling: one concept is too many."""

    threshold: float = 0.0
    name: str = "exec_only"

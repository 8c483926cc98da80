"""The concept ablation: MMR without concepts, over concepts only, or without too many concepts.

Concepts are the one node type that is not executable (paper §3.1). The dynamic `max_nodes` counts all nodes.

Reference: paper §5.2.2, Concept Candidate Pool Design, table 5.
"""

from dataclasses import dataclass

import numpy as np

from skillpager.strategies.mmr import BoolArray, Mmr
from skillpager.types import Budget, NodeType, Query, Selection, SkillIndex, TokenMeter

DEFAULT_CONCEPT_RATIO = 0.4  # the middle one of the paper's 0.3, 0.4 and 0.5


def concepts(index: SkillIndex) -> BoolArray:
    """Return `(n,)` bool: which nodes are concepts."""
    return np.array([node.type is NodeType.CONCEPT for node in index.nodes], dtype=bool)


@dataclass(frozen=True, slots=True)
class ConceptOnly(Mmr):
    """MMR over the concepts; executable nodes are left out."""

    name: str = "concept_only"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` concepts."""
        return self.select_among(index, query, budget=budget, meter=meter, candidates=concepts(index))


@dataclass(frozen=True, slots=True)
class ExecOnly(Mmr):
    """MMR over steps, examples, params, preconditions and error handling; concepts are left out."""

    name: str = "exec_only"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` executable nodes."""
        return self.select_among(index, query, budget=budget, meter=meter, candidates=~concepts(index))


@dataclass(frozen=True, slots=True)
class Density(Mmr):
    """MMR over all nodes, or the executable ones if more than a share of the nodes are concepts.

    That share is `threshold`, 0 to 1: the paper's τ.
    """

    threshold: float = DEFAULT_CONCEPT_RATIO
    name: str = "density"

    def __post_init__(self) -> None:
        """Check the weight and the threshold.

        Raises:
            ValueError: `mmr_lambda` or `threshold` is outside 0 to 1.
        """
        Mmr.__post_init__(self)  # `slots=True` makes a second class, which `super()` does not know
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold must be between 0 and 1, not {self.threshold}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` nodes."""
        found = concepts(index)
        candidates = ~found if int(found.sum()) > self.threshold * len(found) else None
        return self.select_among(index, query, budget=budget, meter=meter, candidates=candidates)

"""The paper's baselines and ablations, as strategies.

- Concepts: MMR without them, over them only, or without too many of them. Concepts are the one node type
  that is not executable (paper §3.1). The dynamic `max_nodes` counts all nodes.
- Dependencies: picks with the sources of the edges into them. `max_nodes` counts what is picked for the
  query; one-hop predecessors come on top, as in the paper, where 17.9 picks became 28.1 nodes. `max_tokens`
  bounds both.
- A greedy walk over the graph from the entry node. The frontier holds every node that an edge of any kind
  enters from a visited node, and the walk visits the most relevant one next, until its relevance is below a
  threshold. A node that no path of relevant nodes leads to is not found.

Reference: paper §5.2.2, Concept Candidate Pool Design, table 5; §3.3, Graph Augmentation at Query Time and
From Graph Traversal to Global Retrieval; §4.3, Top-k + dependency completion and Greedy graph traversal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Self

import numpy as np

from skillpager.settings import Settings
from skillpager.strategies.baselines.fitted import FittedBaselines, fits_of, seeds_for, threshold_for
from skillpager.strategies.mmr import BoolArray, Mmr
from skillpager.strategies.picking import Picker, cosines, falling
from skillpager.types import (
    Budget,
    FloatArray,
    NodeType,
    Query,
    Selection,
    SkillIndex,
    SkipReason,
    TokenMeter,
)

DEFAULT_CONCEPT_RATIO = 0.4  # the middle one of the paper's 0.3, 0.4 and 0.5
ENTRY = 0


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


def predecessors(index: SkillIndex, relevance: FloatArray) -> dict[int, list[int]]:
    """Return the sources of the edges, of all four kinds, into each node that has any.

    The most relevant is first, the earlier of equals first. `relevance` is `(n,)`, the cosine of the query
    and each node.
    """
    sources: dict[int, set[int]] = {}
    for edge in index.edges:
        sources.setdefault(edge.target, set()).add(edge.source)
    values = relevance.tolist()
    return {
        target: sorted(found, key=lambda ordinal: (-values[ordinal], ordinal))
        for target, found in sources.items()
    }


@dataclass(frozen=True, slots=True)
class MmrGraph(Mmr):
    """The picks of MMR, each followed by its predecessors.

    MMR does not see the predecessors: without `max_tokens` its picks are those of `mmr`.
    """

    name: str = "mmr_graph"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks of MMR, each with its predecessors."""
        sources = predecessors(index, cosines(index.embeddings, query.embedding))
        return self.select_among(index, query, budget=budget, meter=meter, completions=sources)


@dataclass(frozen=True, slots=True)
class TopKDependency:
    """The top k nodes by relevance, each followed by its predecessors.

    `max_nodes` is k for skills of any size, else `seeds`; None for the number that was fitted for the encoder
    of the index, of `fits` or of those that ship.
    """

    seeds: int | None = None
    fits: Sequence[FittedBaselines] | None = None
    name: str = "topk_dependency"

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the strategy with the fits of the settings.

        Raises:
            SettingsError: The file of fits cannot be read.
        """
        return cls(fits=fits_of(settings))

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` nodes by falling relevance, each with its predecessors."""
        seeds = budget.max_nodes
        if seeds is None:
            seeds = seeds_for(index.recipe, self.fits) if self.seeds is None else self.seeds
        picker = Picker(index, query, budget=Budget(seeds, budget.max_tokens), meter=meter)
        sources = predecessors(index, picker.relevance)
        picker.fill(falling(picker.relevance), compare=False, completions=sources)
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class GreedyGraph:
    """The nodes that a greedy walk from the first node of the skill picks.

    The walk ends when no frontier node has a gain of at least `threshold`, -1 to 1; None for the one that was
    fitted for the encoder of the index, of `fits` or of those that ship. It also visits a node that does not
    fit `max_tokens`, so that one large node at the entry does not hide the rest.
    """

    threshold: float | None = None
    fits: Sequence[FittedBaselines] | None = None
    name: str = "greedy_graph"

    @classmethod
    def from_settings(cls, settings: Settings, *, threshold: float | None = None) -> Self:
        """Return the strategy with the fits of the settings.

        Raises:
            SettingsError: The file of fits cannot be read.
        """
        return cls(threshold, fits_of(settings))

    def __post_init__(self) -> None:
        """Check the threshold.

        Raises:
            ValueError: `threshold` is not a cosine.
        """
        if self.threshold is not None and not -1.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold must be between -1 and 1, not {self.threshold}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks in the order of the walk; the entry node needs no gain."""
        threshold = threshold_for(index.recipe, self.fits) if self.threshold is None else self.threshold
        successors: dict[int, list[int]] = {}
        for edge in index.edges:
            successors.setdefault(edge.source, []).append(edge.target)
        picker = Picker(index, query, budget=budget, meter=meter)
        gains: list[float] = picker.relevance.tolist()
        frontier = [(-gains[ENTRY], ENTRY)] if gains else []
        reached = {ENTRY}
        while frontier and picker.room > 0:
            if frontier[0][1] != ENTRY and -frontier[0][0] < threshold:
                picker.refuse((ordinal for _, ordinal in frontier), SkipReason.BELOW_THRESHOLD)
                break
            _, best = heappop(frontier)
            picker.admit(best)
            for target in successors.get(best, ()):
                if target not in reached:
                    reached.add(target)
                    heappush(frontier, (-gains[target], target))
        ended = SkipReason.NOT_REACHED if picker.room > 0 else SkipReason.MAX_NODES
        return picker.selection(self.name, reason=ended)

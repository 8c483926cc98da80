"""Picks with what they depend on in the graph: the sources of the edges into them.

`max_nodes` counts what is picked for the query; one-hop predecessors come on top, as in the paper, where 17.9
picks became 28.1 nodes. `max_tokens` bounds both.

Reference: paper §3.3, Graph Augmentation at Query Time, table 1; §4.3, Top-k + dependency completion.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from skillpager.settings import Settings
from skillpager.strategies.baselines.fitted import FittedBaselines, fits_of, seeds_for
from skillpager.strategies.mmr import Mmr
from skillpager.strategies.picking import Picker, cosines, falling
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, TokenMeter


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

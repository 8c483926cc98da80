"""Picks with what they depend on in the graph: the sources of the edges into them.

`max_nodes` counts what is picked for the query; one-hop predecessors come on top, as in the paper, where 17.9
picks became 28.1 nodes. `max_tokens` bounds both.

Reference: paper §3.3, Graph Augmentation at Query Time, table 1; §4.3, Top-k + dependency completion.
"""

from dataclasses import dataclass

from skillpager.strategies.mmr import Mmr
from skillpager.strategies.picking import Picker, cosines, falling
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, TokenMeter

# the paper gives no k; chosen on 155 skills with the built-in encoder to match the paper's 14.80 nodes of
# 57.43, seeds and predecessors together: 15.3 of 53.6 nodes
DEFAULT_SEEDS = 9


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

    `max_nodes` is k, `DEFAULT_SEEDS` unless given, for skills of any size.
    """

    name: str = "topk_dependency"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` nodes by falling relevance, each with its predecessors."""
        seeds = DEFAULT_SEEDS if budget.max_nodes is None else budget.max_nodes
        picker = Picker(index, query, budget=Budget(seeds, budget.max_tokens), meter=meter)
        sources = predecessors(index, picker.relevance)
        picker.fill(falling(picker.relevance), compare=False, completions=sources)
        return picker.selection(self.name)

"""The paper's baselines on the graph: picks with the nodes they depend on, and a greedy walk.

- Dependencies: picks with the sources of the edges into them. `max_nodes` counts what is picked for the
  query; one-hop predecessors come on top, as in the paper, where 17.9 picks became 28.1 nodes. `max_tokens`
  bounds both.
- A greedy walk over the graph from the entry node. The frontier holds every node that an edge of any kind
  enters from a visited node, and the walk visits the most relevant one next, until its relevance is below a
  threshold. A node that no path of relevant nodes leads to is not found.

The paper gives neither the threshold of the walk nor the k of top-k with dependency completion, only how many
nodes they select. Runs with several values on training data show which select as many with an encoder.

Reference: paper §3.3, Graph Augmentation at Query Time and From Graph Traversal to Global Retrieval; §4.3,
Top-k + dependency completion and Greedy graph traversal; table tab:main-results.
"""

import logging
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush

from skillpager.strategies.mmr import Mmr
from skillpager.strategies.picking import Picker, falling
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, SkipReason, TokenMeter

logger = logging.getLogger(__name__)

# least gain of `greedy_graph` by encoder, text form and splitter profile: with it the walk selects 21.6 nodes
# on average, as in the paper, on 155 training skills (the encoder that ships: as many as with the one before
# it); for bge-small-en-v1.5 on 49 and 62 of them that have the paper's number of nodes a skill (57.7)
FITTED_THRESHOLDS = {
    ("builtin:79d23b7cbf9ccbe1", "bare", ""): -0.024,
    ("builtin:skills-MiniLM-L6-int8-3", "context", ""): -0.151,
    ("onnx:aa1e17f6c1685921", "bare", ""): 0.437,
    ("onnx:aa1e17f6c1685921", "bare", "paper"): 0.465,
}
# for other encoders there is no threshold: the walk ends at max_nodes, or where no edge leads on
NO_THRESHOLD = -1.0
# the k of `topk_dependency`; it depends on the graph more than on the encoder: fitted, it is 9 for both
DEFAULT_SEEDS = 9
ENTRY = 0  # the node from which the walk begins


@cache
def _warn_of_no_fit(encoder: str, embedded_text: str, splitter: str) -> None:
    """Log once in a process that greedy traversal has no threshold for an encoder."""
    logger.warning(
        "greedy_graph has no threshold for the encoder %s (text %s) and ends at max_nodes alone: try some "
        "with `skillpager bench run` on training data, and write greedy_graph:GAIN.",
        encoder,
        f"{embedded_text}, splitter {splitter}" if splitter else embedded_text,
    )


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

    def completions(self, index: SkillIndex, relevance: FloatArray) -> dict[int, list[int]]:
        """Return the predecessors of each node."""
        return predecessors(index, relevance)


@dataclass(frozen=True, slots=True)
class TopKDependency:
    """The top k nodes by relevance, each followed by its predecessors.

    `max_nodes` is k for skills of any size, by default `seeds`.
    """

    seeds: int = DEFAULT_SEEDS
    name: str = "topk_dependency"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` nodes by falling relevance, each with its predecessors."""
        seeds = self.seeds if budget.max_nodes is None else budget.max_nodes
        picker = Picker(index, query, budget=Budget(seeds, budget.max_tokens), meter=meter)
        sources = predecessors(index, picker.relevance)
        picker.fill(falling(picker.relevance), compare=False, completions=sources)
        return picker.selection(self.name)


@dataclass(frozen=True, slots=True)
class GreedyGraph:
    """The nodes that a greedy walk from the first node of the skill picks.

    The walk ends when no frontier node has a gain of at least `threshold`, -1 to 1; None for the one that was
    fitted for the encoder of the index. It also visits a node that does not fit `max_tokens`, so that one
    large node at the entry does not hide the rest.
    """

    threshold: float | None = None
    name: str = "greedy_graph"

    def __post_init__(self) -> None:
        if self.threshold is not None and not -1.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold must be between -1 and 1, not {self.threshold}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks in the order of the walk; the entry node needs no gain."""
        threshold = self.threshold
        if threshold is None:
            profile = index.recipe.splitter.partition("-")[2]
            recipe = index.recipe.encoder, index.recipe.embedded_text, profile
            if recipe not in FITTED_THRESHOLDS:
                _warn_of_no_fit(*recipe)
            threshold = FITTED_THRESHOLDS.get(recipe, NO_THRESHOLD)
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

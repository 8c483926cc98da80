"""A greedy walk over the graph from the entry node: the paper's topology-guided baseline.

The frontier holds every node that a directed edge of any kind enters from a visited node. The gain of a
frontier node is its relevance. The walk visits the node of the largest gain next, until that gain is below a
threshold. Nothing is done against the entry bias: a node that no path of relevant nodes leads to is not
found.

Reference: paper §4.3, Greedy graph traversal; §3.3, From Graph Traversal to Global Retrieval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Self

from skillpager.settings import Settings
from skillpager.strategies.baselines.fitted import FittedBaselines, fits_of, threshold_for
from skillpager.strategies.picking import Picker
from skillpager.types import Budget, Query, Selection, SkillIndex, SkipReason, TokenMeter

ENTRY = 0


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
            ValueError: `threshold` is not a cosine.
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

"""MMR without the concepts of skills that have many of them: density-adaptive pools.

Reference: paper §5.2.2, table 5.
"""

from dataclasses import dataclass

from skillpager.strategies.baselines.pools import concepts
from skillpager.strategies.mmr import Mmr
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter

DEFAULT_CONCEPT_RATIO = 0.4  # the middle one of the paper's 0.3, 0.4 and 0.5


@dataclass(frozen=True, slots=True)
class Density(Mmr):
    """MMR over all nodes, or over the executable ones where concepts are more than a share of the nodes.

    Attributes:
        threshold: That share, 0 to 1: the paper's τ.
        name: `density`.
    """

    threshold: float = DEFAULT_CONCEPT_RATIO
    name: str = "density"

    def __post_init__(self) -> None:
        """Check the weight and the threshold.

        Raises:
            ValueError: `mmr_lambda` or `threshold` is outside 0 to 1.
        """
        Mmr.__post_init__(self)  # a slotted dataclass is made anew, which `super()` does not see
        if not 0.0 <= self.threshold <= 1.0:
            raise ValueError(f"threshold must be between 0 and 1, not {self.threshold}")

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` nodes; all nodes count for the dynamic `max_nodes`."""
        dense = concepts(index)
        crowded = int(dense.sum()) > self.threshold * len(dense)
        candidates = ~dense if crowded else None
        return self.select_among(index, query, budget=budget, meter=meter, candidates=candidates)

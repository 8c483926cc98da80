"""MMR over the concept nodes alone.

Reference: paper §5.2.2, Concept Candidate Pool Design.
"""

from dataclasses import dataclass

from skillpager.strategies.baselines.pools import concepts
from skillpager.strategies.mmr import Mmr
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter


@dataclass(frozen=True, slots=True)
class ConceptOnly(Mmr):
    """MMR over the concepts; executable nodes are left out.

    Attributes:
        name: `concept_only`.
    """

    name: str = "concept_only"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` concepts; all nodes count for the dynamic `max_nodes`."""
        return self.select_among(index, query, budget=budget, meter=meter, candidates=concepts(index))

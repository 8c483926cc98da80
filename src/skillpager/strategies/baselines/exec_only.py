"""MMR over the executable nodes alone.

Reference: paper §5.2.2, Concept Candidate Pool Design.
"""

from dataclasses import dataclass

from skillpager.strategies.baselines.pools import concepts
from skillpager.strategies.mmr import Mmr
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter


@dataclass(frozen=True, slots=True)
class ExecOnly(Mmr):
    """MMR over steps, examples, params, preconditions and error handling; concepts are left out.

    Attributes:
        name: `exec_only`.
    """

    name: str = "exec_only"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` executable nodes; concepts count for the dynamic `max_nodes`."""
        return self.select_among(index, query, budget=budget, meter=meter, candidates=~concepts(index))

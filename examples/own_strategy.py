"""A strategy of your own: skillpager bench run --data DATA --out RUN --methods own_strategy:SharedWords."""

import numpy as np

from skillpager.strategies.picking import Picker, falling
from skillpager.types import Budget, Query, ScoreKind, Selection, SkillIndex, TokenMeter


class SharedWords:
    """Nodes by the number of words that they share with the query."""

    name = "shared_words"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return the nodes that hold the most words of the query, the earlier of equals first."""
        asked = set(query.text.lower().split())
        scores = np.array([len(asked & set(node.text.lower().split())) for node in index.nodes], float)
        picker = Picker(index, query, budget=budget, meter=meter, scores=scores, score_kind=ScoreKind.OWN)
        picker.fill(falling(scores))
        return picker.selection(self.name)

"""The most relevant nodes, and the nodes that these depend on.

Reference: paper §4.3, Top-k + dependency completion.
"""

from dataclasses import dataclass

import numpy as np

from skillpager.strategies.baselines.dependencies import predecessors
from skillpager.strategies.budget import resolve
from skillpager.strategies.picking import Picker, cosines, select_in_order
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter

# the paper gives no k; chosen on 155 skills with the built-in encoder for its 14.80 nodes of 57.43, seeds
# and predecessors together: 15.3 of 53.6 nodes
DEFAULT_SEEDS = 9


@dataclass(frozen=True, slots=True)
class TopKDependency:
    """The top k nodes by relevance, each followed by its one-hop predecessors in the graph.

    `max_nodes` is k, `DEFAULT_SEEDS` unless given, whatever the size of the skill; predecessors come on
    top. `max_tokens` bounds both.

    Attributes:
        name: `topk_dependency`.
    """

    name: str = "topk_dependency"

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` nodes by falling relevance, each with its predecessors."""
        seeds = DEFAULT_SEEDS if budget.max_nodes is None else budget.max_nodes
        relevance = cosines(index.embeddings, query.embedding)
        picker = Picker(index.nodes, resolve(Budget(seeds, budget.max_tokens), len(index.nodes)), meter)
        return select_in_order(
            self.name,
            query.text,
            np.argsort(-relevance, kind="stable").tolist(),
            relevance,
            picker=picker,
            completions=predecessors(index, relevance),
        )

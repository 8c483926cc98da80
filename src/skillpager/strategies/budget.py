"""The budget as every strategy reads it, and the meter of those that need no rendering.

Reference: paper §3.2, Dynamic Budget.
"""

from collections.abc import Sequence
from dataclasses import replace

from skillpager.types import Budget, Node

# paper, equation (3)
SMALL_SKILL_NODES = 100
MAX_NODES_SMALL = 20
MAX_NODES_LARGE = 60


def dynamic_max_nodes(n_nodes: int) -> int:
    """Return the paper's k for a skill of `n_nodes`: 20 up to 100 nodes, else 60."""
    return MAX_NODES_SMALL if n_nodes <= SMALL_SKILL_NODES else MAX_NODES_LARGE


def resolve(budget: Budget, n_nodes: int) -> Budget:
    """Return `budget` with `max_nodes` filled in and never above the number of nodes.

    Raises:
        ValueError: A limit is negative.
    """
    for name, value in (("max_nodes", budget.max_nodes), ("max_tokens", budget.max_tokens)):
        if value is not None and value < 0:
            raise ValueError(f"{name} must be 0 or more, not {value}")
    wanted = dynamic_max_nodes(n_nodes) if budget.max_nodes is None else budget.max_nodes
    return replace(budget, max_nodes=min(wanted, n_nodes))


class NodeMeter:
    """A `TokenMeter` for bare nodes: their own tokens and nothing between them.

    Args:
        nodes: All nodes, in document order.
        gap_tokens: What a gap takes where the page is rendered; it is told, not counted.
    """

    def __init__(self, nodes: Sequence[Node], *, gap_tokens: int = 0) -> None:
        """Start with an empty page."""
        self.gap_tokens = gap_tokens
        self._nodes = nodes
        self.tokens = 0

    def cost(self, ordinal: int) -> int:
        """Return the tokens of the page if node `ordinal` were added."""
        return self.tokens + self._nodes[ordinal].tokens

    def add(self, ordinal: int) -> None:
        """Add node `ordinal` to the page."""
        self.tokens = self.cost(ordinal)

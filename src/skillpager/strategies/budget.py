"""The budget as every strategy reads it.

Reference: paper §3.2, Dynamic Budget.
"""

from dataclasses import replace

from skillpager.types import Budget

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


def allows_all(budget: Budget, n_nodes: int, *, estimating: bool) -> bool:
    """Return whether the budget allows every node of a skill, its tokens aside.

    Args:
        budget: The budget.
        n_nodes: How many nodes the skill has.
        estimating: Whether the strategy estimates sufficiency: it stops at its target or, without any limit,
            by itself, and has no dynamic `max_nodes`.
    """
    if estimating and (budget.sufficiency is not None or budget == Budget()):
        return False
    if estimating and budget.max_nodes is None:
        return True
    return resolve(budget, n_nodes).max_nodes == n_nodes

"""Parts of the nodes that the concept ablation picks from."""

import numpy as np

from skillpager.strategies.mmr import BoolArray
from skillpager.types import NodeType, SkillIndex


def concepts(index: SkillIndex) -> BoolArray:
    """Return `(n,)` bool: which nodes are concepts, the one type that is not executable (paper §3.1)."""
    return np.array([node.type is NodeType.CONCEPT for node in index.nodes], dtype=bool)

"""A determinantal point process: relevant nodes whose rows span the largest volume.

Each pick is the node with the most left of it once its projection on the earlier picks is taken off,
scaled by a weight that grows exponentially with relevance. When the rows have run out of directions, that
weight alone decides.

Reference: Chen, Zhang and Zhou 2018, fast greedy MAP inference; pyversity.
"""

from dataclasses import dataclass
from typing import ClassVar

from skillpager.strategies.baselines.versity import Diverse

# pyversity's own; on training data all from 0.1 to 0.5 are within 1 point of each other, at half of the
# tokens 0.5 is ahead by 2
DEFAULT_DIVERSITY = 0.5
# on the diagonal of the kernel: far above the rounding errors of float32, which would decide without it (or
# overflow) once the rows have run out of directions, and far below the cosines
JITTER = 1e-3


@dataclass(frozen=True, slots=True)
class Dpp(Diverse):
    """Greedy MAP inference in a determinantal point process; O(n·k·(d + k)).

    At diversity 1 relevance has no say.

    Attributes:
        diversity: Weight of diversity, 0 to 1; 0 picks by relevance alone.
        name: `dpp`.
    """

    diversity: float = DEFAULT_DIVERSITY
    name: str = "dpp"
    jitter: ClassVar[float] = JITTER

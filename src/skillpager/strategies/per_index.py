"""What a strategy computes once for an index and keeps for the next query."""

from collections.abc import Callable
from typing import Generic, TypeVar

from skillpager.types import Node, SkillIndex

Made = TypeVar("Made")

# a server pages many skills in turn; looking one up among so many takes a hundredth of a millisecond
MAX_KEPT_INDEXES = 128
# a node takes about 1 kB of what is kept
MAX_KEPT_NODES = 20_000


class PerIndex(Generic[Made]):
    """Keeps one value for each of the last indexes, within a bound. Safe for many threads.

    Two threads that miss at the same time compute the same value twice.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._kept: list[tuple[tuple[Node, ...], Made]] = []

    def of(self, index: SkillIndex, make: Callable[[SkillIndex], Made]) -> Made:
        """Return what `make` returns for `index`, computed when it is not kept; the newest always is."""
        found = next((kept for kept in self._kept if kept[0] is index.nodes), None)
        entry = found or (index.nodes, make(index))
        others = [kept for kept in self._kept if kept[0] is not index.nodes]
        self._kept = [entry, *_within_bounds(others, MAX_KEPT_NODES - len(index.nodes))]
        return entry[1]


def _within_bounds(
    kept: list[tuple[tuple[Node, ...], Made]], nodes: int
) -> list[tuple[tuple[Node, ...], Made]]:
    """Return the first entries that have at most `nodes` nodes together."""
    within: list[tuple[tuple[Node, ...], Made]] = []
    for entry in kept[: MAX_KEPT_INDEXES - 1]:
        nodes -= len(entry[0])
        if nodes < 0:
            break
        within.append(entry)
    return within

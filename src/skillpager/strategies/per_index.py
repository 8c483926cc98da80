"""A bounded cache of what a strategy computes once for an index."""

from collections.abc import Callable
from typing import Generic, TypeVar

from skillpager.types import SkillIndex

Made = TypeVar("Made")

# a server pages many skills in turn; looking one up among so many takes a hundredth of a millisecond
MAX_KEPT_INDEXES = 128
# a node takes about 1 kB of what is kept
MAX_KEPT_NODES = 20_000


class PerIndex(Generic[Made]):
    """One value for each of the last indexes, within a bound; the newest always stays. Safe for many threads.

    Two threads that miss at the same time compute the same value twice.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._entries: list[tuple[SkillIndex, Made]] = []

    def of(self, index: SkillIndex, make: Callable[[SkillIndex], Made]) -> Made:
        """Return the value of `index`; computed by `make` unless it is cached."""
        found = next((entry for entry in self._entries if entry[0] is index), None) or (index, make(index))
        others = [entry for entry in self._entries if entry[0] is not index]
        entries, nodes = [found], len(index.nodes)
        for entry in others[: MAX_KEPT_INDEXES - 1]:
            nodes += len(entry[0].nodes)
            if nodes > MAX_KEPT_NODES:
                break
            entries.append(entry)
        self._entries = entries
        return found[1]

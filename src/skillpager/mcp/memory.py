"""Remembers what each session of an MCP client was sent, and which skills its user started."""

import threading
from collections.abc import Collection, Iterable

from skillpager.memory import LRUCache

# sessions that are remembered, and versions of skills in each; the least recently used are dropped
MAX_SESSIONS = 1_000
MAX_SKILLS = 256


class Memory:
    """Thread-safe record of the nodes that one session was sent, by index key, and of the skills started.

    A changed skill has another key, so its nodes count as not sent.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent = LRUCache[str, frozenset[str]](MAX_SKILLS)
        self._started = LRUCache[str, bool](MAX_SKILLS)

    def sent(self, key: str) -> Collection[str]:
        """Return the ids of the nodes of this index that were sent."""
        return self._sent.get(key) or frozenset()

    def add(self, key: str, nodes: Iterable[str]) -> None:
        """Record that these nodes were sent."""
        with self._lock:
            self._sent.put(key, frozenset(self.sent(key)).union(nodes))

    def start(self, skill: str) -> None:
        """Record that the user started this skill."""
        self._started.put(skill, True)

    def is_started(self, skill: str) -> bool:
        """Return True if the user started this skill."""
        return self._started.get(skill) is not None


class Sessions:
    """The memories of a server's HTTP sessions, and `own`, that of its client on stdin. Thread-safe."""

    def __init__(self) -> None:
        self.own = Memory()
        self._memories = LRUCache[str, Memory](MAX_SESSIONS)

    def named(self, session: str) -> Memory:
        """Return the memory of the HTTP session with this id."""
        return self._memories.get_or_make(session, Memory)

"""What a session of an MCP client was sent, so that it need not be sent again."""

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable

# sessions and, in each, versions of skills that are remembered; the least recently used go first
MAX_SESSIONS = 1_000
MAX_SKILLS = 256


class Memory:
    """The nodes whose text one session was sent, by the key of their index.

    A changed skill has another key, so that its nodes count as not sent. Thread-safe.
    """

    def __init__(self) -> None:
        """Start with nothing sent."""
        self._lock = threading.Lock()
        self._sent: OrderedDict[str, set[str]] = OrderedDict()

    def sent(self, key: str) -> Collection[str]:
        """Return the ids of the nodes that were sent of the index with this key."""
        with self._lock:
            return frozenset(self._sent.get(key, ()))

    def add(self, key: str, nodes: Iterable[str]) -> None:
        """Remember that these nodes were sent."""
        with self._lock:
            self._sent.setdefault(key, set()).update(nodes)
            self._sent.move_to_end(key)
            if len(self._sent) > MAX_SKILLS:
                self._sent.popitem(last=False)


class Sessions:
    """The memories of a server's sessions. Thread-safe."""

    def __init__(self) -> None:
        """Start without sessions."""
        self._lock = threading.Lock()
        self._own = Memory()
        self._memories: OrderedDict[str, Memory] = OrderedDict()

    @property
    def own(self) -> Memory:
        """The memory of the only client that a pipe has."""
        return self._own

    def named(self, session: str) -> Memory:
        """Return the memory of the HTTP session of this id."""
        with self._lock:
            memory = self._memories.setdefault(session, Memory())
            self._memories.move_to_end(session)
            if len(self._memories) > MAX_SESSIONS:
                self._memories.popitem(last=False)
            return memory

"""Options of the MCP server, the ceiling on a reply for each host, and what each session was sent."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from threading import Lock

from skillpager.caches import LRUCache
from skillpager.errors import SettingsError
from skillpager.parsing.skill import SCOPES

# tokens of a reply for a host that is not known; with `MOST_CHARS` it is below what any known host cuts off
DEFAULT_CEILING = 12_000
# Claude Code before `RAISES_CEILING` puts a result of more than 50,000 characters into a file, and shows 2 kB
MOST_CHARS = 45_000
# Claude Code cuts a result off at 25,000 tokens (claude-code#10456); its tokenizer may count more than ours
CLAUDE_CODE_CEILING = 20_000
# the key of a tool's `_meta` that tells Claude Code to show results of more characters, since this version
SHOWN_CHARS = "anthropic/maxResultSizeChars"
RAISES_CEILING = (2, 1, 91)
# characters that a token has at most, but for rare texts, and most that Claude Code accepts under the key
TOKEN_CHARS = 8
MOST_SHOWN_CHARS = 500_000
# the marks alone of a page with many gaps take some hundred tokens
LEAST_CEILING = 1_000
# sessions that are remembered, and versions of skills in each; the least recently used are dropped
MAX_SESSIONS = 1_000
MAX_SKILLS = 256


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Most tokens, and most characters if they count too, of a reply, its JSON form included."""

    tokens: int
    chars: int | None = None

    def excess(self, tokens: int, chars: int) -> float:
        """Return the size of a reply as a multiple of the ceiling: it fits if that is at most 1."""
        return max(tokens / self.tokens, chars / self.chars if self.chars else 0.0)


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options of the server.

    Attributes:
        ceiling: Most tokens of a reply, its JSON form included; None for what the host shows.
        structured: Whether the JSON form is sent with the text.
        resend: Whether to send again the nodes that a session was sent.
        scope: `skill` or `body`; None for that of the settings.

    Raises:
        SettingsError: The ceiling is too low for a page, or the scope is unknown.
    """

    ceiling: int | None = None
    structured: bool = True
    resend: bool = False
    scope: str | None = None

    def __post_init__(self) -> None:
        if self.ceiling is not None and self.ceiling < LEAST_CEILING:
            raise SettingsError(f"The ceiling is {self.ceiling} tokens: it must be {LEAST_CEILING} or more.")
        if self.scope not in (None, *SCOPES):
            raise SettingsError(f"Unknown scope {self.scope!r}: choose one of {', '.join(SCOPES)}.")

    def ceiling_for(self, client: str = "", version: str = "") -> Ceiling:
        """Return the ceiling for a client, by the name and version that it gives."""
        if self.ceiling is not None:
            return Ceiling(self.ceiling)
        numbers = tuple(map(int, re.findall(r"\d+", version)[: len(RAISES_CEILING)]))
        if client == "claude-code" and numbers >= RAISES_CEILING:
            return Ceiling(CLAUDE_CODE_CEILING)
        return Ceiling(DEFAULT_CEILING, MOST_CHARS)

    @property
    def meta(self) -> dict[str, object]:
        """The `_meta` of every tool: the characters that a host should show of a result."""
        most = CLAUDE_CODE_CEILING if self.ceiling is None else self.ceiling
        return {SHOWN_CHARS: min(most * TOKEN_CHARS, MOST_SHOWN_CHARS)}


class Memory:
    """Thread-safe record of the nodes that one session was sent, by index key, and of the skills started.

    A changed skill has another key, so its nodes count as not sent.
    """

    def __init__(self) -> None:
        self._lock = Lock()
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

"""Options of the MCP server, and the ceiling on a reply that follows the host."""

import re
from dataclasses import dataclass

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

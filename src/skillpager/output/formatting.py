"""Short texts for people: snippets, shares, line ranges."""

from skillpager.display_text import one_line
from skillpager.types import Node

# characters of a node's text in a line of output
SNIPPET_CHARS = 72


def snippet(text: str, width: int = SNIPPET_CHARS) -> str:
    """Return the beginning of `text` on one line, cut to `width` characters."""
    return one_line(text, width)


def percent(share: float, *, digits: int = 0) -> str:
    """Return a share as text, such as `64 %`."""
    return f"{100 * share:.{digits}f} %"


def line_range(node: Node) -> str:
    """Return the lines of a node, such as `L12` or `L12-18`."""
    return lines_between(node.span.start_line, node.span.end_line)


def lines_between(first: int, last: int) -> str:
    """Return a range of lines, such as `L12` or `L12-18`."""
    return f"L{first}" if first == last else f"L{first}-{last}"

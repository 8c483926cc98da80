"""Short texts for people: snippets, shares, line ranges."""

from skillpager.display_text import one_line
from skillpager.types import Page

# an estimate is never shown as certain, nor as impossible
LEAST_CHANCE = 0.01
LARGEST_CHANCE = 0.99
# characters of a node's text in a line of output
SNIPPET_CHARS = 72


def snippet(text: str, width: int = SNIPPET_CHARS) -> str:
    """Return the beginning of `text` on one line, cut to `width` characters."""
    return one_line(text, width)


def percent(share: float, *, digits: int = 0) -> str:
    """Return a share as text, such as `64 %`."""
    return f"{100 * share:.{digits}f} %"


def chance_words(chance: float) -> str:
    """Return an estimated chance as text, such as `87 %`."""
    if chance < LEAST_CHANCE:
        return f"under {percent(LEAST_CHANCE)}"
    return f"over {percent(LARGEST_CHANCE)}" if chance > LARGEST_CHANCE else percent(chance)


def nothing_fits(page: Page, limit: str = "max_tokens") -> str:
    """Return a sentence for a page that holds nothing: what a page with content takes; else an empty text.

    Args:
        page: The page.
        limit: What the front end calls the limit.
    """
    return "" if page.least_tokens is None else too_few_tokens(page.least_tokens, limit)


def too_few_tokens(least: int, limit: str = "max_tokens") -> str:
    """Return a sentence that says how many tokens a page with any content takes."""
    return f"Nothing fits: the smallest page with any content has {least} tokens. Raise {limit} to {least}."

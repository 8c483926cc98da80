"""A fragment's text as a model reads it."""

from skillpager.types import Fragment


def text_under_headings(fragment: Fragment) -> str:
    """Return the heading path of a fragment, a line break and its text; the text alone without headings."""
    path = " > ".join(fragment.heading_path)
    return f"{path}\n{fragment.text}" if path else fragment.text

"""A fragment's text as a model reads it."""

from skillpager.types import Fragment


def text_under_headings(fragment: Fragment) -> str:
    """Return the heading path of a fragment, a line break and its text; the text alone without headings."""
    path = " > ".join(fragment.heading_path)
    return f"{path}\n{fragment.text}" if path else fragment.text


def text_in_context(fragment: Fragment) -> str:
    """Return heading path, lead-in and text of a fragment, a line each; what there is none of is left out.

    A lead-in that the text has itself is not repeated.
    """
    path = " > ".join(fragment.heading_path)
    lead_in = fragment.list_context.lead_in.strip() if fragment.list_context else ""
    parts = (path, "" if lead_in in fragment.text else lead_in, fragment.text)
    return "\n".join(part for part in parts if part)

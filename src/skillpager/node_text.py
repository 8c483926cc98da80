"""The text of a node that models read: bare, with its headings, or with headings and lead-in."""

from skillpager.types import Fragment

TEXT_FORMS = ("context", "heading", "bare")


def text_under_headings(fragment: Fragment) -> str:
    """Return the heading path of a fragment, a line break and its text; without headings, its text."""
    return "\n".join(filter(None, (" > ".join(fragment.heading_path), fragment.text)))


def embedded_text(fragment: Fragment, form: str) -> str:
    """Return the text that an encoder embeds for a fragment.

    Args:
        fragment: The fragment.
        form: `bare` for its text; `heading` for its heading path, a line break and its text; `context`
            for the same with the lead-in of its list or table in between, unless the text contains it.
            Encoders that read a document as a whole (`encode_in_context`) do not need this text.

    Raises:
        ValueError: `form` is unknown.
    """
    if form not in TEXT_FORMS:
        raise ValueError(f"form must be one of {', '.join(TEXT_FORMS)}, not {form!r}")
    if form == "bare":
        return fragment.text
    lead_in = fragment.list_context.lead_in.strip() if fragment.list_context else ""
    if form == "heading" or lead_in in fragment.text:
        return text_under_headings(fragment)
    return "\n".join(filter(None, (" > ".join(fragment.heading_path), lead_in, fragment.text)))

"""What text of a fragment is embedded."""

from skillpager.node_text import text_in_context, text_under_headings
from skillpager.types import Fragment

TEXT_FORMS = ("context", "heading", "bare")


def embedded_text(fragment: Fragment, form: str) -> str:
    """Return the text of `fragment` to embed.

    Args:
        fragment: The fragment.
        form: `bare` for its text, `heading` for its heading path, a line break and its text, `context`
            for that with the lead-in of its list or table between the two.

    Raises:
        ValueError: `form` is unknown.
    """
    if form not in TEXT_FORMS:
        raise ValueError(f"form must be one of {', '.join(TEXT_FORMS)}, not {form!r}")
    if form == "bare":
        return fragment.text
    return text_in_context(fragment) if form == "context" else text_under_headings(fragment)

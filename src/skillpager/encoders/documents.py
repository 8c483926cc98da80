"""What text of a fragment is embedded."""

from skillpager.texts import text_under_headings
from skillpager.types import Fragment

TEXT_FORMS = ("heading", "bare")


def embedded_text(fragment: Fragment, form: str) -> str:
    """Return the text of `fragment` to embed.

    Args:
        fragment: The fragment.
        form: `bare` for its text, `heading` for its heading path, a line break and its text.

    Raises:
        ValueError: `form` is unknown.
    """
    if form not in TEXT_FORMS:
        raise ValueError(f"form must be one of {', '.join(TEXT_FORMS)}, not {form!r}")
    return fragment.text if form == "bare" else text_under_headings(fragment)

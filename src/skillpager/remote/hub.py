"""Models of the Hugging Face hub that run in this process: quiet loading, and reasons of failures."""

from collections.abc import Iterator
from contextlib import contextmanager

from skillpager.errors import require_extra


@contextmanager
def no_progress_bars(purpose: str) -> Iterator[None]:
    """Hide the progress bars of transformers, which `purpose` needs: a `MissingExtraError` without it."""
    bars = require_extra("transformers.utils.logging", extra="st", purpose=purpose)
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def reason_of(error: Exception) -> str:
    """Return the first line of an error, or its type if it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__

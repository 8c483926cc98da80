"""Models of the Hugging Face libraries, loaded in the way of a quiet library."""

from collections.abc import Iterator
from contextlib import contextmanager

from skillpager.errors import require_extra


@contextmanager
def no_progress_bars(purpose: str) -> Iterator[None]:
    """Keep transformers from drawing progress bars for a while.

    Args:
        purpose: What needs transformers, as the subject of a sentence.

    Raises:
        MissingExtraError: transformers is not installed.
    """
    logging = require_extra("transformers.utils.logging", extra="st", purpose=purpose)
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()

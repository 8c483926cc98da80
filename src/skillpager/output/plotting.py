"""Matplotlib under settings of our own: whatever else the process draws, pictures have the same bytes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from skillpager.errors import require_extra

_settings = Lock()  # Matplotlib's settings belong to the process


@contextmanager
def own_settings(changes: Mapping[str, object], *, extra: str, purpose: str) -> Iterator[None]:
    """Draw with Matplotlib's defaults and some changes, and leave its settings as they were.

    Args:
        changes: Settings besides those that all our pictures have.
        extra: Extra that installs Matplotlib, for the message.
        purpose: What draws, as the subject of a sentence.

    Raises:
        MissingExtraError: Matplotlib is not installed.
    """
    matplotlib = require_extra("matplotlib", extra=extra, purpose=purpose)
    with _settings, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "skillpager", "text.hinting": "no_hinting", **changes})
        yield

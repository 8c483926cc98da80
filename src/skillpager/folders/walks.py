"""Walks over folders: the entries of a folder, its identity, and a warning if there are too many."""

import logging
import os
from collections.abc import Hashable
from functools import lru_cache
from pathlib import Path

logger = logging.getLogger(__name__)

# folders that programs make beside what an author wrote
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})


def identity_of(folder: Path) -> Hashable:
    """Return what tells a folder from others on the disk, whatever links lead to it."""
    status = folder.stat()
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(folder)


def entries_of(folder: Path) -> dict[str, bool]:
    """Return the names in a folder, and whether each is a folder."""
    with os.scandir(folder) as entries:
        return {entry.name: _is_folder(entry) for entry in entries}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


@lru_cache
def warn_of_size(folder: Path, most: int) -> None:
    """Log once that a folder is not searched completely."""
    logger.warning(
        "%s has more than %d folders without a skill, and some are not searched: name folders nearer to "
        "the skills.",
        *(folder, most),
    )

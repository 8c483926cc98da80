"""Indexes of skills that were read: kept in memory, else stored, else built and stored."""

import logging
import threading

from skillpager.errors import StoreError
from skillpager.factories import index_key
from skillpager.indexing import Builder
from skillpager.memory import Kept
from skillpager.types import Skill, SkillIndex, Store

logger = logging.getLogger(__name__)


class Shelf:
    """Gives the index of a skill; for many threads at once, of which one builds and the others wait."""

    def __init__(self, kept: Kept) -> None:
        """Use what this process keeps."""
        self._kept = kept
        self._lock = threading.Lock()
        self._builds: dict[str, threading.Lock] = {}

    def index(self, skill: Skill, builder: Builder, store: Store) -> SkillIndex:
        """Return the index of `skill` as `builder` makes it: kept, else from `store`, else built.

        Raises:
            EncoderError: The encoder fails.
            ClassifierError: The classifier fails.
            StoreError: The store cannot be opened.
        """
        key = index_key(skill, builder.recipe)
        if kept := self._kept.index(key):
            return kept
        with self._lock:
            build = self._builds.setdefault(key, threading.Lock())
        try:
            with build:
                return self._kept.index(key) or self._kept.keep(_load_or_build(skill, key, builder, store))
        finally:
            with self._lock:
                self._builds.pop(key, None)


def _load_or_build(skill: Skill, key: str, builder: Builder, store: Store) -> SkillIndex:
    stored = store.load(key, skill)
    if stored is not None:
        return stored
    index = builder.build(skill, key)
    try:
        store.save(index)
    except StoreError as error:  # the page can still be made
        logger.warning("the index of %s is not kept: %s", skill.name, error)
    return index

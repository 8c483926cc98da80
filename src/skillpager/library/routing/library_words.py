"""Keeps the words of a library's skills in step with them: only new skills cost work."""

import hashlib
import json
import logging
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillpager.errors import SkillError
from skillpager.library.discovery import FoundSkill, Progress, no_progress, skill_faults
from skillpager.library.routing.word_index import Terms, WordIndex, WordIndexError, WordSearch, field_terms

logger = logging.getLogger(__name__)


class LibraryWords:
    """The words of the skills that a library has at the moment. Thread-safe.

    Args:
        index: Where they are.
    """

    def __init__(self, index: WordIndex) -> None:
        self._index = index
        self._lock = threading.Lock()
        self._skills: Sequence[FoundSkill] = ()
        self._search: WordSearch | None = None

    @property
    def folder(self) -> Path | None:
        """The folder of the index; None if it is in memory."""
        return self._index.folder

    def search(self, skills: Sequence[FoundSkill], progress: Progress = no_progress) -> WordSearch:
        """Return the words of all skills.

        An index that cannot be used is deleted, and the words stay in memory.

        Args:
            skills: The skills.
            progress: Called with the number of skills that were read and of all.

        Raises:
            StoreError: The texts of published skills cannot be read, or another process writes for too long.
        """
        with self._lock:
            if self._search is None or skills != self._skills:
                try:
                    self._search = self._updated(skills, progress)
                except WordIndexError as error:
                    logger.warning("%s They are read again, and stay in memory.", error)
                    self._index.delete()
                    self._index = WordIndex(None)
                    self._search = self._updated(skills, progress)
                self._skills = skills
            progress(len(skills), len(skills))
            return self._search

    def _updated(self, skills: Sequence[FoundSkill], progress: Progress) -> WordSearch:
        by_key = {key_of(skill): skill for skill in skills}

        def read(keys: Sequence[int]) -> Iterator[tuple[int, Terms]]:
            for done, key in enumerate(keys, len(skills) - len(keys)):
                progress(done, len(skills))
                found = by_key[key]
                try:
                    with skill_faults(found.path):
                        file = found.read(scope="body").files[0]
                except SkillError as error:
                    logger.warning("routing does not find %r: %s", found.name, error)
                    continue
                if file.digest == found.digest:  # else the next search finds what it is now
                    yield key, field_terms(found.name, found.description, file.text[file.body_start :])

        self._index.update(by_key.keys(), read)
        return self._index.search(by_key)


def key_of(skill: FoundSkill) -> int:
    """Return the key of a skill: 64 bits of a hash of its name and of the digest of its SKILL.md."""
    content = json.dumps([skill.name, skill.digest]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")

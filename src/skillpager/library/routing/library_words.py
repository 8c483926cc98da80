"""Keeps the words of a library's skills in step with them: only new skills cost work."""

import hashlib
import json
import logging
import math
import threading
import time
from collections.abc import Iterator, Sequence

from skillpager.errors import SkillPagerError, StoreError
from skillpager.library.discovery import FoundSkill, Progress, skill_faults
from skillpager.library.routing.word_index import (
    DamagedIndexError,
    Terms,
    WordIndex,
    WordSearch,
    field_terms,
)
from skillpager.parsing.skill import read_skill

logger = logging.getLogger(__name__)

# seconds until published skills that their store did not give are asked for again
RETRY_SECONDS = 10.0


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
        self._retry_at = math.inf
        self._failure: StoreError | None = None

    def search(self, skills: Sequence[FoundSkill], progress: Progress | None = None) -> WordSearch:
        """Return the words of all skills.

        Args:
            skills: The skills; the same object until one changes.
            progress: Called with the number of skills that were read and of all.

        Raises:
            StoreError: The texts of published skills cannot be read, and those of no other skill are known.
        """
        with self._lock:
            if self._search is None or skills is not self._skills or time.monotonic() >= self._retry_at:
                self._search, self._skills = self._follow(skills, progress), skills
                if self._failure is not None:
                    self._retry_at = time.monotonic() + RETRY_SECONDS
                    if not self._search.is_any:
                        self._search, failure = None, self._failure
                        raise failure
                    logger.warning("the words of published skills cannot be read: %s", self._failure)
            if progress is not None:
                progress(len(skills), len(skills))
            return self._search

    def _follow(self, skills: Sequence[FoundSkill], progress: Progress | None) -> WordSearch:
        """Bring the index in step with the skills; one that is damaged is made again."""
        for _ in range(2):
            try:
                return self._update(skills, progress)
            except DamagedIndexError as error:
                logger.warning("%s It is made again.", error)
                self._index.delete()
            except StoreError as error:
                logger.warning("%s They stay in memory, and each process reads them again.", error)
                break
        self._index = WordIndex(None)
        return self._update(skills, progress)

    def _update(self, skills: Sequence[FoundSkill], progress: Progress | None) -> WordSearch:
        by_key = {key_of(skill.name, skill.digest): skill for skill in skills}
        self._failure, self._retry_at = None, math.inf

        def read(keys: Sequence[int]) -> Iterator[tuple[int, Terms]]:
            for found, body in self._bodies([by_key[key] for key in keys]):
                yield key_of(found.name, found.digest), field_terms(found.name, found.description, body)

        def report(done: int) -> None:
            if progress is not None:
                progress(done, len(skills))

        self._index.update(by_key.keys(), read, report)
        return self._index.search(by_key)

    def _bodies(self, skills: Sequence[FoundSkill]) -> Iterator[tuple[FoundSkill, str]]:
        """Yield skills with the bodies of their SKILL.md, of those that are still what discovery read."""
        published = [skill for skill in skills if skill.published is not None]
        for found in skills:
            if found.published is None and (body := _body_of(found)) is not None:
                yield found, body
        if published and published[0].published is not None:
            try:
                yield from published[0].published.texts.bodies(published)
            except StoreError as error:
                self._failure = error


def _body_of(found: FoundSkill) -> str | None:
    try:
        with skill_faults(found.path):
            file = read_skill(found.path, scope="body").files[0]
            return file.text[file.body_start :] if file.digest == found.digest else None
    except SkillPagerError as error:
        logger.debug("routing does not find %r: %s", found.name, error)
        return None


def key_of(name: str, digest: str) -> int:
    """Return the key of a skill: 64 bits of a hash of its name and of the digest of its SKILL.md."""
    content = json.dumps([name, digest]).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")

"""Keeps what routing searches in step with the skills of a library: only new skills cost work."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import SkillPagerError, StoreError
from skillpager.library.discovery import FoundSkill, Progress, skill_faults
from skillpager.library.routing.catalog import Catalog, key_of
from skillpager.library.routing.features import Searched
from skillpager.library.routing.fields import FIELDS, FieldIndex, field_terms
from skillpager.library.routing.segments import KeyArray, Segment, make_terms
from skillpager.library.routing.shelf import Shelf
from skillpager.library.routing.vectors import SkillVectors, load_vectors
from skillpager.parsing.skill import read_skill

logger = logging.getLogger(__name__)

# skills that are read and stored together; what is done is not lost when the process ends. Their words take a
# quarter of a megabyte each as text
BATCH = 500
# seconds until words that a shared store did not give are asked for again
RETRY_SECONDS = 10.0


class Upkeep:
    """What routing searches, for the skills that a library has at the moment. Thread-safe.

    Args:
        catalog: Where words are stored; None keeps them in memory.
    """

    def __init__(self, catalog: Catalog | None) -> None:
        self._words = Shelf(catalog)
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, str], int] = {}  # by name and digest, in the order of the skills
        self._skills: Sequence[FoundSkill] = ()
        self._searched: Searched | None = None
        self._retry_at = math.inf

    def searched(self, skills: Sequence[FoundSkill], progress: Progress | None = None) -> Searched:
        """Return what routing searches: the words of all skills.

        Args:
            skills: The skills.
            progress: Called with the number of skills that were read and of all.
        """
        with self._lock:
            report = progress or (lambda *_: None)
            self._follow(skills, lambda done: report(done, len(skills)))
            if not self._words.load():  # what another process has merged, or what cannot be read any more
                self._skills = ()
                self._follow(skills, lambda done: report(done, len(skills)))
                self._words.load()
            report(len(skills), len(skills))
            if self._searched is None:
                self._searched = self._assemble()
            return self._searched

    def _follow(self, skills: Sequence[FoundSkill], report: Callable[[int], None]) -> None:
        """Bring the words in step with the skills."""
        if skills is self._skills and time.monotonic() < self._retry_at:
            return
        self._retry_at = math.inf
        known = self._keys
        identities = [(skill.name, skill.digest) for skill in skills]
        self._keys = {each: known.get(each) or key_of(*each) for each in identities}
        self._skills, self._searched = skills, None
        keys = self._key_array()
        missing = self._words.places(keys) < 0
        if missing.any():
            self._words.refresh()
            missing = self._words.places(keys) < 0
        todo = np.flatnonzero(missing)
        living = set(self._keys.values()) if len(todo) else set()
        done = len(skills) - len(todo)
        for batch in _batches(skills, todo):
            report(done)
            if done > len(skills) - len(todo):  # another process may be at the same work
                self._words.refresh()
            done += len(batch)
            batch = batch[self._words.places(keys[batch]) < 0]
            segment = self._read([skills[place] for place in batch], keys[batch])
            if segment is not None:
                self._words.add(segment, living)

    def _read(self, skills: Sequence[FoundSkill], keys: KeyArray) -> Segment | None:
        """Return the segment of skills that lie in folders, or of published ones; None if there are none."""
        if not skills:
            return None
        by_identity = {(skill.name, skill.digest): int(key) for skill, key in zip(skills, keys, strict=True)}
        try:
            read = [
                (by_identity[skill.name, skill.digest], field_terms(skill.name, skill.description, body))
                for skill, body in _bodies(skills)
            ]
        except StoreError as error:
            if self._words.parts:  # what is known of the others still answers
                logger.warning("the words of published skills cannot be read: %s", error)
                self._retry_at = time.monotonic() + RETRY_SECONDS
                return None
            self._skills = ()
            raise
        return make_terms([key for key, _ in read], [terms for _, terms in read]) if read else None

    def _key_array(self) -> KeyArray:
        return np.fromiter(self._keys.values(), np.uint64, len(self._keys))

    def _assemble(self) -> Searched:
        keys, size = self._key_array(), len(self._skills)
        words = self._words.parts
        ordinals = np.full(sum(len(part.keys) for part in words), -1, np.int32)
        places = self._words.places(keys)
        ordinals[places[places >= 0]] = np.flatnonzero(places >= 0)
        fields = {
            name: FieldIndex([part.fields[number] for part in words], ordinals, size)
            for number, name in enumerate(FIELDS)
        }
        vectors = SkillVectors(load_vectors(), [part.vectors for part in words], ordinals, size)
        return Searched(self._skills, fields, vectors, size)


def _batches(skills: Sequence[FoundSkill], places: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    """Yield the places of skills to read together, those in folders first."""
    published = np.array([skills[place].published is not None for place in places], bool)
    for some in (places[~published], places[published]):
        for start in range(0, len(some), BATCH):
            yield some[start : start + BATCH]


def _bodies(skills: Sequence[FoundSkill]) -> Iterable[tuple[FoundSkill, str]]:
    """Return skills with the bodies of their SKILL.md, of those that are still what discovery read."""
    if skills[0].published is not None:
        return skills[0].published.texts.bodies(skills)
    return ((found, body) for found in skills if (body := _body_of(found)) is not None)


def _body_of(found: FoundSkill) -> str | None:
    try:
        with skill_faults(found.path):
            file = read_skill(found.path, scope="body").files[0]
            return file.text[file.body_start :] if file.digest == found.digest else None
    except SkillPagerError:
        return None

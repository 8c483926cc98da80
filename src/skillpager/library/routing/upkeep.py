"""Keeps what routing searches in step with the skills of a library: only new skills cost work."""

import threading
from collections.abc import Callable, Sequence

import numpy as np

from skillpager.errors import SkillPagerError
from skillpager.library.discovery import FoundSkill, Progress, skill_faults
from skillpager.library.routing.catalog import Catalog, key_of
from skillpager.library.routing.features import Searched
from skillpager.library.routing.fields import FIELDS, FieldIndex, field_terms
from skillpager.library.routing.segments import KeyArray, make_terms
from skillpager.library.routing.shelf import Shelf
from skillpager.parsing.skill import read_skill

# skills that are read and stored together; what is done is not lost when the process ends
BATCH = 1_000


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

    def searched(self, skills: Sequence[FoundSkill], progress: Progress | None = None) -> Searched:
        """Return what routing searches: the words of all skills.

        Args:
            skills: The skills.
            progress: Called with the number of skills that were read and of all.
        """
        with self._lock:
            report = progress or (lambda *_: None)
            self._follow(skills, lambda done: report(done, len(skills)))
            report(len(skills), len(skills))
            if self._searched is None:
                self._searched = self._assemble()
            return self._searched

    def _follow(self, skills: Sequence[FoundSkill], report: Callable[[int], None]) -> None:
        """Bring the words in step with the skills."""
        if skills is self._skills:
            return
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
        for start in range(0, len(todo), BATCH):
            report(len(skills) - len(todo) + start)
            if start:  # another process may be at the same work
                self._words.refresh()
            batch = todo[start : start + BATCH]
            batch = batch[self._words.places(keys[batch]) < 0]
            read = [(int(keys[place]), terms) for place in batch if (terms := _read_terms(skills[place]))]
            if read:
                self._words.add(make_terms([key for key, _ in read], [terms for _, terms in read]), living)

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
        return Searched(self._skills, fields)


def _read_terms(found: FoundSkill) -> tuple[list[str], ...] | None:
    """Return the terms of each field of a skill; None if it is not any more what discovery read."""
    try:
        with skill_faults(found.path):
            file = read_skill(found.path, scope="body").files[0]
            if file.digest != found.digest:
                return None
            return field_terms(found.name, found.description, file.text[file.body_start :])
    except SkillPagerError:
        return None

"""Keeps what routing searches in step with the skills of a library: only new skills cost work."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import SkillPagerError
from skillpager.library.catalog import Catalog, Kind, key_of
from skillpager.library.discovery import FoundSkill, skill_faults
from skillpager.library.fields import FIELDS, FieldIndex, field_texts, routing_terms
from skillpager.library.routing import Searched, best_by_words
from skillpager.library.segments import KeyArray, RowSegment, TermSegment, make_terms
from skillpager.library.shelf import Shelf
from skillpager.library.vectors import VectorIndex, embed_skills
from skillpager.parsing.skill import read_skill
from skillpager.types import Encoder

WORDS = Kind("terms", TermSegment)
# skills that are read or embedded and stored together; what is done is not lost when the process ends
BATCH = 1_000
# new skills that a route embeds, a few seconds of work; if there are more it embeds so many of those that
# the words of the query find, and `prepare` all
MOST_EMBEDDED = 64

Progress = Callable[[int, int], None]


class Upkeep:
    """What routing searches, for the skills that a library has at the moment. Thread-safe.

    Args:
        catalog: Where words and embeddings are stored; None keeps them in memory.
        encoder: Embeds the skills.
    """

    def __init__(self, catalog: Catalog | None, encoder: Encoder) -> None:
        self._encoder = encoder
        self._words = Shelf(catalog, WORDS)
        self._rows = Shelf(catalog, Kind(f"rows:{encoder.id}", RowSegment))
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, str], int] = {}  # by name and digest, in the order of the skills
        self._skills: Sequence[FoundSkill] = ()
        self._searched: Searched | None = None

    def prepare(self, skills: Sequence[FoundSkill], progress: Progress | None = None) -> Searched:
        """Return what routing searches, with the words and embeddings of all skills.

        Args:
            skills: The skills.
            progress: Called with the number of finished steps and of all, of which a skill takes two.

        Raises:
            EncoderError: The encoder fails.
        """
        with self._lock:
            report = progress or (lambda *_: None)
            count = len(skills)
            self._follow(skills, lambda done: report(done, 2 * count))
            missing = np.flatnonzero(self._rows.places(self._key_array()) < 0)
            for start in range(0, len(missing), BATCH):
                report(2 * count - len(missing) + start, 2 * count)
                self._embed(missing[start : start + BATCH])
            report(2 * count, 2 * count)
            return self._current()

    def searched(
        self,
        skills: Sequence[FoundSkill],
        query: str,
        most_terms: int,
        progress: Progress | None = None,
    ) -> Searched:
        """Return what routing searches, with the words of all skills and the embeddings that a query needs.

        Args:
            skills: The skills.
            query: The query.
            most_terms: So many of its terms are searched, the rarest.
            progress: Called with the number of skills that were read and of all.

        Raises:
            EncoderError: The encoder fails.
        """
        with self._lock:
            report = progress or (lambda *_: None)
            self._follow(skills, lambda done: report(done, len(skills)))
            searched = self._current()
            known = np.zeros(len(skills), bool) if searched.vectors is None else searched.vectors.known
            missing = np.flatnonzero(~known)
            if len(missing) > MOST_EMBEDDED:
                best = best_by_words(searched, query, most_terms=most_terms, most=MOST_EMBEDDED)
                missing = best[~known[best]]
            if len(missing):
                self._embed(missing)
            return self._current()

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
            self._rows.refresh()
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

    def _embed(self, places: NDArray[np.intp]) -> None:
        """Embed the skills in the given places."""
        skills = [self._skills[place] for place in places]
        rows = embed_skills(self._encoder, [(skill.name, skill.description) for skill in skills])
        self._rows.add(RowSegment(self._key_array()[places], rows), set(self._keys.values()))
        self._searched = None

    def _current(self) -> Searched:
        if self._searched is None:
            self._searched = self._assemble()
        return self._searched

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
        parts = self._rows.parts
        vectors = VectorIndex(
            [part.rows for part in parts], [part.codes for part in parts], self._rows.places(keys)
        )
        return Searched(self._skills, fields, vectors)


def _read_terms(found: FoundSkill) -> list[list[str]] | None:
    """Return the terms of each field of a skill; None if it is not any more what discovery read."""
    try:
        with skill_faults(found.path):
            file = read_skill(found.path, scope="body").files[0]
            if file.digest != found.digest:
                return None
            texts = field_texts(found.name, found.description, file.text[file.body_start :])
            return [routing_terms(text) for text in texts]
    except SkillPagerError:
        return None

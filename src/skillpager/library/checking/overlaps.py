"""Overlaps: skills whose descriptions are so alike that a query for one may lead to another."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import FloatArray

# Cosine of two descriptions from which they overlap if their words do not tell them apart: 36 of 38 such
# pairs of public skills take each other's queries (docs/library-check.md)
OVERLAP = 0.80
# rows that are compared with all others at a time: 1,024 by 20,000 cosines take 80 MB
ROWS_AT_A_TIME = 1_024

# "Not for testing": what a description excludes is not what the skill is about
_EXCLUDED = re.compile(r"\b(?:not|never|don['’]t)\b[^.;!?\n]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two skills, by position, that take each other's queries.

    Attributes:
        place: Position of a skill.
        other: Position of the skill whose description is most like its own.
        similarity: Cosine of their descriptions.
        more: Number of further skills whose descriptions are as like as the threshold asks.
    """

    place: int
    other: int
    similarity: float
    more: int


def find_overlaps(
    texts: Sequence[tuple[str, str]],
    rows: FloatArray,
    *,
    threshold: float = OVERLAP,
    known: Collection[tuple[int, int]] = (),
) -> list[Overlap]:
    """Return the skills that take each other's queries: each with the most similar other, each pair once.

    Args:
        texts: Name and description of each skill.
        rows: `(n, dim)` float32, unit length: their embeddings.
        threshold: Least cosine of two that overlap.
        known: Pairs of positions, the lower first, that are left out.
    """
    words = [_Words.of(name, description) for name, description in texts]
    found: dict[tuple[int, int], Overlap] = {}
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        cosines = rows[start : start + ROWS_AT_A_TIME] @ rows.T
        for at, similar in enumerate(cosines):
            place = start + at
            others = [
                int(other)
                for other in np.flatnonzero(similar >= threshold)
                if other != place
                and (min(place, other), max(place, other)) not in known
                and not words[place].differ(words[other])
            ]
            if others:
                nearest = max(others, key=lambda other: (similar[other], -other))
                pair = (min(place, nearest), max(place, nearest))
                similarity = min(1.0, float(similar[nearest]))
                found.setdefault(pair, Overlap(place, nearest, similarity, len(others) - 1))
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Words:
    """The terms by which two skills are told apart, whatever the cosine.

    Attributes:
        held: Those of name and description.
        subject: Those of the name that the description has, too; the name if it has none of them, as one in
            another script.
        repeated: Those that stand there twice.
    """

    held: frozenset[str]
    subject: frozenset[str]
    repeated: frozenset[str]

    @classmethod
    def of(cls, name: str, description: str) -> "_Words":
        """Return the words of a skill, without what its description excludes."""
        named, said = terms_of(name), terms_of(_EXCLUDED.sub(" ", description))
        counts = Counter([*named, *said])
        return cls(
            held=frozenset(counts),
            subject=frozenset(named).intersection(said) or frozenset(named),
            repeated=frozenset(term for term, count in counts.items() if count > 1),
        )

    def differ(self, other: "_Words") -> bool:
        """Return whether one has a subject, or each a repeated word, that the other lacks.

        Many descriptions differ in a product's name, and so do the queries.
        """
        if self.subject - other.held or other.subject - self.held:
            return True
        return bool(self.repeated - other.held and other.repeated - self.held)

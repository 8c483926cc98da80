"""Overlaps: skills whose descriptions are so alike that a query for one may lead to another."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import FloatArray

# Cosine of two descriptions from which they overlap: most pairs of public skills below it are neighbours
# in one field, most above it two skills for one task
OVERLAP = 0.85
# rows that are compared with all others at a time: 1,024 by 20,000 cosines take 80 MB
ROWS_AT_A_TIME = 1_024


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

    Two skills do not overlap if one has a word in its name and description that the other has in neither:
    many descriptions differ in a product's name, and so do the queries.

    Args:
        texts: Name and description of each skill.
        rows: `(n, dim)` float32, unit length: their embeddings.
        threshold: Least cosine of two that overlap.
        known: Pairs of positions, the lower first, that are left out.
    """
    names = [set(terms_of(name)) for name, _ in texts]
    held = [own | set(terms_of(text)) for own, (_, text) in zip(names, texts, strict=True)]
    subjects = [own & set(terms_of(text)) for own, (_, text) in zip(names, texts, strict=True)]
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
                and not (subjects[place] - held[other] or subjects[other] - held[place])
            ]
            if others:
                nearest = max(others, key=lambda other: (similar[other], -other))
                pair = (min(place, nearest), max(place, nearest))
                similarity = min(1.0, float(similar[nearest]))
                found.setdefault(pair, Overlap(place, nearest, similarity, len(others) - 1))
    return list(found.values())

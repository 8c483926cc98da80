"""Vectors of terms, skills and queries."""

from pathlib import Path

import numpy as np
import pytest

from skillpager.errors import StrategyError
from skillpager.library.routing.fields import FIELDS, field_terms, hash_terms, make_postings
from skillpager.library.routing.segments import make_terms
from skillpager.library.routing.vectors import (
    DESCRIBED,
    LARGEST,
    LEAST_COSINE,
    OPENING,
    RESCORED,
    SkillVectors,
    TermVectors,
    load_vectors,
)

SKILLS = (
    (
        "restore-dump",
        "Restore one table of a PostgreSQL dump. Restore it again.",
        "Restore the table with pg_restore.",
    ),
    ("git-bisect", "Find the commit that broke the tests.", "Run git bisect, and mark good and bad commits."),
    ("zzzqqq", "", ""),
)


def of_texts(vectors: TermVectors, *skills: tuple[str, str, str]) -> np.ndarray:
    terms = [field_terms(*skill) for skill in skills]
    return vectors.of_skills([make_postings([of[number] for of in terms]) for number in range(len(FIELDS))])


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(np.linalg.norm(vector), 1e-9)


def test_the_vector_of_a_skill_is_the_weighted_sum_of_those_of_its_terms() -> None:
    vectors = load_vectors()
    places = {int(term): place for place, term in enumerate(vectors.hashes)}
    name, description, _, _, opening, _ = field_terms(*SKILLS[0])
    found = of_texts(vectors, *SKILLS)
    for number, fields in ((DESCRIBED, (name, description)), (OPENING, (opening,))):
        summed = np.zeros(vectors.dim)
        for terms in fields:
            for term in set(terms):
                place = places.get(int(hash_terms([term])[0]))
                if place is not None:
                    often = 1 + np.log(terms.count(term))
                    summed += vectors.in_skill[place] * often * vectors.rows[place].astype(float)
        assert unit(found[0, number].astype(float)) @ unit(summed) > 0.999
        assert np.abs(found[0, number]).max() == LARGEST
    assert not found[2].any()  # no term is known


def test_vectors_do_not_depend_on_the_skills_beside_them() -> None:
    vectors = load_vectors()
    together = of_texts(vectors, *SKILLS * 40)
    for place, skill in enumerate(SKILLS):
        np.testing.assert_array_equal(together[place::3], np.repeat(of_texts(vectors, skill), 40, axis=0))


def test_a_query_is_nearest_to_the_skill_that_is_about_it_in_other_words() -> None:
    vectors = load_vectors()
    skills = SkillVectors(vectors, [of_texts(vectors, *SKILLS)], np.arange(3, dtype=np.int32), 3)
    query = vectors.of_query(hash_terms(["database", "backup", "recovery", "sql"]))
    assert np.linalg.norm(query) == pytest.approx(1)
    assert skills.nearest(query, 1).tolist() == [0]
    described = skills.cosines(query[None], np.arange(3))[DESCRIBED][:, 0]
    assert described[0] > max(described[1], 0)
    assert described[2] == 0


def test_nothing_is_near_a_query_without_a_known_term() -> None:
    vectors = load_vectors()
    skills = SkillVectors(vectors, [of_texts(vectors, *SKILLS)], np.arange(3, dtype=np.int32), 3)
    query = vectors.of_query(hash_terms(["zzzqqq"]))
    assert not query.any()
    assert not len(skills.nearest(query, 5))


def test_the_nearest_of_many_are_found_by_their_signs_and_rescored() -> None:
    vectors, random = load_vectors(), np.random.default_rng(0)
    size = 5 * RESCORED
    parts = [
        random.integers(-LARGEST, LARGEST, (count, 2, vectors.dim)).astype(np.int8)
        for count in (300, size - 300)
    ]
    ordinals = np.arange(size, dtype=np.int32)[::-1].copy()  # parts in another order than the library
    ordinals[:4] = -1  # rows of skills that are gone
    skills = SkillVectors(vectors, parts, ordinals, size)
    rows = np.concatenate(parts)[::-1][:, DESCRIBED].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[-4:] = 0
    for place in range(0, size - 4, 50):
        query = unit(rows[place] + random.normal(size=vectors.dim) / vectors.dim**0.5).astype(np.float32)
        exact = rows @ query
        cosines = skills.cosines(query[None], np.arange(size))[DESCRIBED][:, 0]
        np.testing.assert_allclose(cosines, exact, atol=1e-5)
        near = skills.nearest(query, 10)
        assert near.tolist() == sorted(near.tolist())
        assert near.max() < size - 4
        assert exact.argmax() in near
        assert (exact[near] >= LEAST_COSINE - 1e-5).all()


def test_segments_keep_vectors_when_they_are_merged() -> None:
    parts = [make_terms([number], [field_terms(*skill)]) for number, skill in enumerate(SKILLS)]
    merged = type(parts[0]).merge(parts, [0, 2])
    assert merged.keys.tolist() == [0, 2]
    np.testing.assert_array_equal(merged.vectors, np.concatenate([parts[0].vectors, parts[2].vectors]))


@pytest.mark.parametrize("damage", ["cut", "other arrays", "missing"])
def test_a_damaged_file_is_named_with_the_remedy(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.npz"
    if damage == "cut":
        path.write_bytes(b"PK\x03\x04 cut off")
    elif damage == "other arrays":
        np.savez(path, hashes=np.zeros(2, np.uint64))
    with pytest.raises(StrategyError, match=r"vectors\.npz cannot be used .* damaged, so run"):
        load_vectors(path)

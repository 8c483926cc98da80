"""Binary codes: the scan is exact, and cosines are those of the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plain_parts import DigestEncoder
from skillpager.encoders.hashing import HashingEncoder
from skillpager.library.vectors import VectorIndex, codes_of, embed_skills


def index_of(rows: np.ndarray, places: np.ndarray, cut: int) -> VectorIndex:
    parts = [part.astype(np.float16) for part in (rows[:cut], rows[cut:])]
    return VectorIndex(parts, [codes_of(part) for part in parts], places)


@given(st.integers(0, 2**32 - 1), st.sampled_from([8, 64, 100, 384]), st.integers(0, 30), st.integers(1, 12))
def test_the_nearest_codes_are_found(seed: int, dim: int, cut: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, dim)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    places = np.where(rng.random(30) < 0.8, rng.permutation(30), -1)
    index = index_of(rows, places, cut)
    query = rows[3]
    found = index.nearest(query, most)
    known = np.flatnonzero(places >= 0)
    differences = ((rows[places[known]] > 0) != (query > 0)).sum(1)
    assert len(found) == min(most, len(known))
    assert sorted(((rows[places[found]] > 0) != (query > 0)).sum(1)) == sorted(differences)[: len(found)]
    skills = np.arange(30)
    expected = np.where(places >= 0, rows[places] @ query, 0)
    assert index.cosines(query, skills) == pytest.approx(expected, abs=2e-3)


def test_a_library_without_embeddings_has_none_near() -> None:
    index = VectorIndex([], [], np.full(4, -1))
    assert index.nearest(np.ones(8, np.float32), 3).tolist() == []
    assert index.cosines(np.ones(8, np.float32), np.arange(4)).tolist() == [0, 0, 0, 0]


def test_names_and_descriptions_are_embedded() -> None:
    encoder = HashingEncoder()
    rows = embed_skills(encoder, [("git-bisect", "Find a commit."), ("pdf", "Fill in forms.")])
    query = encoder.encode_query("git bisect")
    assert rows.dtype == np.float16
    assert rows[0] @ query > rows[1] @ query
    assert embed_skills(encoder, []).shape == (0, encoder.dim)


def test_an_encoder_that_returns_too_few_rows_is_refused() -> None:
    class Short(DigestEncoder):
        def encode_documents(self, texts):  # type: ignore[no-untyped-def]
            return super().encode_documents(texts[1:])

    with pytest.raises(ValueError, match=r"digest-8 returned \(1, 8\), expected \(2, 8\)"):
        embed_skills(Short(), [("a", ""), ("b", "")])

"""The features of the navigator: names, shapes, terms, segments, and no odd number for any document."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from golden import check, features_text
from skillpager import SkillPager
from skillpager.strategies.navigator.features import (
    GROUPS,
    NAMES,
    IndexFeatures,
    Segments,
    features_of,
    shifted,
)
from skillpager.strategies.navigator.lexical import BM25_B, BM25_K1, TermIndex, stems_of
from skillpager.types import FloatArray, Query, SkillIndex
from strategy_cases import index_with, near


def signals(index: SkillIndex, text: str = "what to do", row: FloatArray | None = None) -> FloatArray:
    """Return the signals of an index for a query."""
    return features_of(IndexFeatures(index), Query(text, index.embeddings[0] if row is None else row))


def column(values: FloatArray, name: str) -> list[float]:
    """Return the values of one signal."""
    return [round(value, 5) for value in values[:, NAMES.index(name)].tolist()]


def test_every_signal_has_one_name_and_one_column() -> None:
    assert len(set(NAMES)) == len(NAMES) == sum(map(len, GROUPS.values()))
    assert signals(index_with(count=20)).shape == (20, len(NAMES))


@given(
    texts=st.lists(st.text(max_size=60), min_size=1, max_size=12),
    query=st.text(min_size=1, max_size=40),
)
@settings(max_examples=60, deadline=None)
def test_they_are_numbers_for_any_text(texts: list[str], query: str) -> None:
    assert np.isfinite(signals(index_with(texts=texts), query)).all()


def test_equal_rows_and_no_shared_word_are_fine() -> None:
    rows = np.tile(np.eye(1, 8, dtype=np.float32), (5, 1))
    found = signals(index_with(rows, texts=["alpha"] * 5), "beta")
    assert np.isfinite(found).all()
    assert column(found, "coverage") == [0] * 5
    assert column(found, "twin") == [0, 1, 1, 1, 1]


def test_meaning_ranks_by_cosine() -> None:
    rows, query = near(0.2, 0.9, 0.5)
    found = signals(index_with(rows), row=query)
    assert column(found, "cosine") == [0.2, 0.9, 0.5]
    assert column(found, "below_best") == [-0.7, 0, -0.4]
    assert column(found, "rank") == [1, 0, round(math.log1p(1) / math.log1p(2), 5)]
    assert column(found, "before") == [0, 0.2, 0.9]
    assert column(found, "after") == [0.9, 0.5, 0]
    assert column(found, "around_best") == [0.9, 0.5, 0.9]


def test_a_section_tells_its_nodes_of_its_best() -> None:
    rows, query = near(*([0.1] * 8 + [0.3, 0.8] + [0.2] * 6))
    found = signals(index_with(rows), row=query)
    assert column(found, "section_best") == [0.1] * 8 + [0.8] * 8
    assert column(found, "first_of_section") == ([1] + [0] * 7) * 2
    assert column(found, "last_of_section") == ([0] * 7 + [1]) * 2


def test_words_are_bm25() -> None:
    texts = [["restore", "table", "table"], ["dump", "table"], ["restore"], ["other"] * 6]
    scores, coverage = TermIndex(texts).score(["table", "restore", "unheard"])

    def rarity(frequency: int) -> float:
        return math.log1p((4 - frequency + 0.5) / (frequency + 0.5))

    def weight(times: int, length: int, frequency: int) -> float:
        norm = BM25_K1 * (1 - BM25_B + BM25_B * length / 3)
        return rarity(frequency) * times * (BM25_K1 + 1) / (times + norm) if times else 0.0

    expected = [
        weight(text.count("table"), len(text), 2) + weight(text.count("restore"), len(text), 2)
        for text in texts
    ]
    assert scores == pytest.approx(expected, rel=1e-5)
    total = 2 * rarity(2) + math.log1p(4.5)
    assert coverage == pytest.approx(
        [2 * rarity(2) / total, rarity(2) / total, rarity(2) / total, 0], rel=1e-5
    )


def test_stems_bring_forms_of_a_word_together() -> None:
    assert stems_of(["deploying"]) == stems_of(["deployment"])


def test_runs_are_equal_neighbours() -> None:
    segments = Segments(["a", "a", "b", "a"])
    assert segments.member.tolist() == [0, 0, 1, 2]
    values = np.array([1, 5, 2, 3], np.float32)
    assert segments.best(values).tolist() == [5, 2, 3]
    assert segments.mean(values, np.array([3, 1, 1, 1], np.float32)).tolist() == [2, 2, 3]


@pytest.mark.parametrize(
    ("by", "expected"), [(1, [0, 1, 2]), (-2, [3, 0, 0]), (3, [0, 0, 0]), (-4, [0, 0, 0])]
)
def test_a_neighbour_beyond_the_ends_is_nothing(by: int, expected: list[int]) -> None:
    assert shifted(np.array([1, 2, 3], np.float32), by).tolist() == expected


def test_real_words_reach_real_nodes(pager: SkillPager) -> None:
    index = pager.index(SAMPLES / "postgres-backup")
    query = "restore table"
    found = signals(index, query, pager.embed_query(query))
    best = index.nodes[int(found[:, NAMES.index("bm25")].argmax())]
    assert "restore" in best.text.lower()
    assert "table" in best.text.lower()


def test_the_features_of_the_samples_are_what_they_were(hashing_pager: SkillPager) -> None:
    pytest.importorskip("rs_bpe")  # the golden file has exact token counts
    check("features.txt", features_text(hashing_pager))

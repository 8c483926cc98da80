"""The features of the navigator: names, shapes, terms, segments, and no odd number for any document."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from golden import check, features_text
from skillpager import SkillPager
from skillpager.strategies.navigator import features
from skillpager.strategies.navigator.features import (
    GROUPS,
    NAMES,
    IndexFeatures,
    Segments,
    features_of,
    ranks,
    shifted,
    standard,
)
from skillpager.strategies.navigator.lexical import BM25_B, BM25_K1, TermIndex, stems_of
from skillpager.types import FloatArray, IndexNotes, ListContext, Query, SkillIndex, TileKind
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


@given(texts=st.lists(st.text(max_size=60), min_size=1, max_size=12), query=st.text(min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_they_are_numbers_for_any_text(texts: list[str], query: str) -> None:
    assert np.isfinite(signals(index_with(texts=texts), query)).all()


def test_equal_rows_and_no_shared_word_are_fine() -> None:
    rows = np.tile(np.eye(1, 8, dtype=np.float32), (5, 1))
    found = signals(index_with(rows, texts=["alpha"] * 5), "beta")
    assert np.isfinite(found).all()
    assert column(found, "coverage") == [0] * 5
    assert column(found, "twin") == [0, 1, 1, 1, 1]


def test_rows_of_no_length_are_unlike_all_others() -> None:
    found = signals(index_with(np.zeros((3, 4), np.float32)))
    for name in ("cosine", "cosine_z", "feedback_z", "section_cosine_z", "centrality", "twin"):
        assert column(found, name) == [0] * 3


@pytest.mark.parametrize(("count", "places"), [(1, [0]), (2, [0, 1]), (3, [0, 0.5, 1])])
def test_places_run_from_the_beginning_to_the_end(count: int, places: list[float]) -> None:
    index = index_with(texts=[""] * count, tokens=[0] * count)
    assert column(signals(index), "place") == places
    # a node without tokens weighs as much as one token
    assert column(signals(index), "token_share") == [round(1 / count, 5)] * count


def test_nodes_weigh_their_tokens_but_at_least_one() -> None:
    assert column(signals(index_with(tokens=[0, 1, 3])), "token_share") == [0.2, 0.2, 0.6]


def test_of_two_nodes_one_is_first_and_one_is_last() -> None:
    rows, query = near(0.3, 0.6)
    found = signals(index_with(rows, texts=["alpha beta", "alpha"]), "alpha", query)
    assert column(found, "rank") == [1, 0]
    # what all texts have in common is nearly worth nothing, but the best share is 1
    assert max(column(found, "bm25")) < 0.2
    share, _ = column(found, "bm25_share")
    assert (column(found, "bm25_before"), column(found, "bm25_after")) == ([0, share], [1, 0])
    assert column(found, "known_terms") == [1, 1]


def test_the_likeness_to_earlier_nodes_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_with(count=11)
    expected = [0.0, *(max(0.0, *index.embeddings[:n] @ index.embeddings[n], 0.0) for n in range(1, 11))]
    for size in (1, 3, 1024):
        monkeypatch.setattr(features, "BLOCK_ROWS", size)
        assert column(signals(index), "twin") == pytest.approx(expected, abs=1e-5)


def test_items_of_one_lead_in_or_of_one_size_are_a_list() -> None:
    cosines = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.15, 0.25]
    rows, query = near(*cosines)
    index = index_with(rows)
    one, other = (replace(index.headings[0].span, start=start) for start in (1, 2))
    leads = [None, (None, 1), (one, 2), (one, 2), (other, 2), (other, 2), (None, 2), (None, 2)]
    lists = [ListContext("", led[0], at % led[1], led[1]) if led else None for at, led in enumerate(leads)]
    nodes = tuple(replace(node, list_context=of) for node, of in zip(index.nodes, lists, strict=True))
    found = signals(replace(index, nodes=nodes), row=query)
    assert column(found, "list_best") == [0.1, 0.2, 0.4, 0.4, 0.6, 0.6, 0.25, 0.25]
    assert column(found, "list_mean") == [0.1, 0.2, 0.35, 0.35, 0.55, 0.55, 0.2, 0.2]
    assert column(found, "list_size") == [round(math.log1p(size), 5) for size in (0, 1, 2, 2, 2, 2, 2, 2)]
    assert column(found, "list_place") == [0, 0, 0, 0.5, 0, 0.5, 0, 0.5]


def test_a_chapter_is_what_stands_under_two_headings() -> None:
    rows, query = near(0.1, 0.2, 0.3, 0.4)
    index = index_with(rows)
    paths = [("A", "B", "C"), ("A", "B", "D"), ("A", "E"), ("F",)]
    nodes = [replace(node, heading_path=path) for node, path in zip(index.nodes, paths, strict=True)]
    nodes[1] = replace(nodes[1], kind=TileKind.CODE)
    found = signals(replace(index, nodes=tuple(nodes)), row=query)
    assert (column(found, "code_before"), column(found, "code_after")) == ([0, 0, 1, 0], [1, 0, 0, 0])
    assert column(found, "chapter_best") == [0.2, 0.2, 0.3, 0.4]
    assert column(found, "depth") == [3, 3, 2, 1]


def test_the_subject_of_a_query_is_that_of_its_three_nearest_nodes_the_earlier_of_equals() -> None:
    # nodes 5, 7, 9 to 43 are equally near to the query, each in a direction of its own
    rows = np.zeros((45, 46), np.float32)
    rows[:, 0] = [0.1] * 5 + [0.6, 0.5] * 20
    rows[np.arange(45), np.arange(1, 46)] = np.sqrt(1 - rows[:, 0] ** 2)
    subject = rows[[5, 7, 9]].mean(0)
    likeness = rows @ (subject / np.linalg.norm(subject))
    expected = (likeness - likeness.mean()) / likeness.std()
    found = signals(index_with(rows), row=np.eye(1, 46, dtype=np.float32)[0])
    falling = sorted(range(45), key=lambda node: -rows[node, 0])
    assert sorted(range(45), key=column(found, "rank").__getitem__) == falling
    assert column(found, "feedback_z") == pytest.approx(expected.tolist(), abs=1e-4)


def test_headings_count_with_and_without_those_above_them() -> None:
    index = index_with(count=16)
    paths = [("Backup tools", "restoring")] * 8 + [("Backup tools", "Tables")] * 8
    nodes = (replace(node, heading_path=path) for node, path in zip(index.nodes, paths, strict=True))
    found = signals(replace(index, nodes=tuple(nodes)), "restored backup")
    rare, common = math.log1p(1.5 / 1.5), math.log1p(0.5 / 2.5)
    unheard = math.log1p(2.5)
    assert column(found, "heading_coverage") == [round(rare / (rare + unheard), 5)] * 8 + [0] * 8
    shares = [1, common / (rare + common)]
    assert column(found, "path_coverage") == [round(share, 5) for share in shares for _ in range(8)]


def test_meaning_ranks_by_cosine() -> None:
    rows, query = near(0.2, 0.9, 0.5)
    found = signals(index_with(rows), row=query)
    assert column(found, "cosine") == [0.2, 0.9, 0.5]
    assert column(found, "below_best") == [-0.7, 0, -0.4]
    assert column(found, "rank") == [1, 0, round(math.log1p(1) / math.log1p(2), 5)]
    assert column(found, "before") == [0, 0.2, 0.9]
    assert column(found, "after") == [0.9, 0.5, 0]
    assert column(found, "around_best") == [0.9, 0.5, 0.9]
    assert column(found, "smooth") == [0.31, 0.5, 0.4]


def test_a_section_tells_its_nodes_of_its_best() -> None:
    rows, query = near(*([0.1] * 8 + [0.3, 0.8] + [0.2] * 6))
    found = signals(index_with(rows), row=query)
    assert column(found, "section_best") == [0.1] * 8 + [0.8] * 8
    assert column(found, "first_of_section") == ([1] + [0] * 7) * 2
    assert column(found, "last_of_section") == ([0] * 7 + [1]) * 2


@pytest.mark.parametrize(
    "texts",
    [
        [["restore", "table", "table"], ["dump", "table"], ["restore"], ["other"] * 6],
        *([["restore"], ["table"]], [[], ["table"], []], []),
    ],
)
def test_words_are_bm25(texts: list[list[str]]) -> None:
    terms = ["table", "restore", "unheard"]
    # no text is measured against a mean of less than one word
    mean = max(1, sum(map(len, texts)) / max(1, len(texts)))

    def rarity(term: str) -> float:
        frequency = sum(term in text for text in texts)
        return math.log1p((len(texts) - frequency + 0.5) / (frequency + 0.5)) if frequency else unknown

    def weight(term: str, text: list[str]) -> float:
        norm = BM25_K1 * (1 - BM25_B + BM25_B * len(text) / mean)
        times = text.count(term)
        return rarity(term) * times * (BM25_K1 + 1) / (times + norm) if times else 0.0

    unknown = math.log1p(len(texts) + 0.5)
    total = sum(map(rarity, terms))
    assert [TermIndex(texts).rarity_of(term) for term in terms] == pytest.approx([*map(rarity, terms)])
    scores, coverage = TermIndex(texts).score(terms)
    assert scores == pytest.approx([sum(weight(term, text) for term in terms) for text in texts], rel=1e-5)
    held = [sum(rarity(term) for term in terms if term in text) / total for text in texts]
    assert coverage == pytest.approx(held, rel=1e-5)
    rarest = [max((rarity(term) for term in terms if term in text), default=0) for text in texts]
    # as shares of the rarity of a term in one text
    greatest = math.log1p((len(texts) - 0.5) / 1.5)
    assert TermIndex(texts).rarest(terms) == pytest.approx([each / greatest for each in rarest], rel=1e-5)
    for found in TermIndex(texts).score([]):
        assert found.tolist() == [0] * len(texts)


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


def test_notes_tell_how_what_a_node_is_asked_for_is_like_the_query() -> None:
    # two asks of node 0 and one of node 1; node 2 is asked for nothing, of node 4 nothing is known
    rows = np.array([[0.8, 0.6], [0.2, 0.96**0.5], [0.5, 0.75**0.5]], np.float32)
    along = np.array([[0, 3], [1, 0]])  # node 3 must come with node 0, and node 0 with node 1
    index = index_with(np.eye(5, 2, dtype=np.float32), texts=[*"abcde"])
    noted = replace(index, notes=IndexNotes(np.arange(4), rows, np.array([0, 0, 1]), along))
    whole, clause = np.array([0.6, 0.8], np.float32), np.array([1, 0], np.float32)
    found = features_of(IndexFeatures(noted), Query("q", whole, (Query("c", clause),)))
    of_query = (rows @ whole).tolist()
    nearest = [max(one, two) for one, two in zip(of_query, rows[:, 0].tolist(), strict=True)]
    least = min(*of_query, *rows[:, 0].tolist())
    first_best, best, far = nearest[0], nearest[2], least
    known = [first_best, best, far, far]
    expected = np.array([*known, sum(known) / 4], np.float32)
    assert column(found, "ask") == pytest.approx(expected, abs=1e-4)
    assert column(found, "ask_z") == pytest.approx(standard(expected), abs=1e-4)
    assert column(found, "ask_rank") == pytest.approx(ranks(expected), abs=1e-4)
    assert column(found, "ask_below_best") == pytest.approx(expected - best, abs=1e-4)
    first, second, third = of_query
    own = [max(first, second), third, far, far]
    expected = np.array([*own, sum(own) / 4], np.float32)
    assert column(found, "ask_of_query") == pytest.approx(expected, abs=1e-4)
    assert column(found, "ask_of_query_z") == pytest.approx(standard(expected), abs=1e-4)
    assert column(found, "ask_of_query_rank") == pytest.approx(ranks(expected), abs=1e-4)
    means = [(first + second) / 2, third, *expected[2:].tolist()]
    assert column(found, "ask_mean") == pytest.approx(means, abs=1e-4)
    below = [0, far - best, far - best, first_best - best, far - best]
    assert column(found, "along_below_best") == pytest.approx(below, abs=1e-4)
    assert (column(found, "noted"), column(found, "asked")) == ([1, 1, 1, 1, 0], [1, 1, 0, 0, 0])
    without = features_of(IndexFeatures(index), Query("q", whole))
    assert not any(any(column(without, name)) for name in GROUPS["notes"])


def test_the_features_of_the_samples_are_what_they_were(sample_pager: SkillPager) -> None:
    pytest.importorskip("rs_bpe")  # the golden file has exact token counts
    check("features.txt", features_text(sample_pager))

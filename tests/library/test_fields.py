"""Words by field: BM25 over parts equals BM25 over one, and an independent implementation."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpager.library.routing.fields import (
    FIELDS,
    FieldIndex,
    Postings,
    field_terms,
    hash_terms,
    make_postings,
    merge_postings,
    pick_terms,
    routing_terms,
)

WORDS = "abcdefgh"
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), min_size=1, max_size=12)


def naive_scores(texts: Sequence[Sequence[str]], query: Sequence[str]) -> list[float]:
    """Return BM25 as its formula reads (Robertson and Zaragoza 2009, §3.4)."""
    mean = max(1.0, sum(map(len, texts)) / len(texts))
    scores = []
    for text in texts:
        score = 0.0
        for term in query:
            holders = sum(term in other for other in texts)
            rarity = math.log1p((len(texts) - holders + 0.5) / (holders + 0.5))
            times = Counter(text)[term]
            score += rarity * 2.2 * times / (times + 1.2 * (0.25 + 0.75 * len(text) / mean))
        scores.append(score)
    return scores


def scores_of(index: FieldIndex, query: Sequence[str], size: int) -> np.ndarray:
    hits = index.hits(hash_terms(query))
    return np.bincount(hits.skills, hits.weights, size)


def same(one: Postings, other: Postings) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in Postings.__annotations__)


@given(TEXTS, st.sets(st.sampled_from([*WORDS, "unknown"]), min_size=1))
def test_scores_are_bm25(texts: list[list[str]], asked: set[str]) -> None:
    query = sorted(asked)
    index = FieldIndex([make_postings(texts)], np.arange(len(texts), dtype=np.int32), len(texts))
    assert scores_of(index, query, len(texts)) == pytest.approx(naive_scores(texts, query), rel=1e-5)
    assert index.holders(hash_terms(query)).tolist() == [
        sum(term in text for text in texts) for term in query
    ]


@given(st.lists(TEXTS, min_size=1, max_size=4), st.data())
def test_skills_of_other_libraries_do_not_count(parts: list[list[list[str]]], data: st.DataObject) -> None:
    rows = [text for part in parts for text in part]
    mine = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True, min_size=1))
    ordinals = np.full(len(rows), -1, np.int32)
    ordinals[mine] = np.arange(len(mine))
    index = FieldIndex([make_postings(part) for part in parts], ordinals, len(mine))
    query = list(WORDS)
    expected = naive_scores([rows[row] for row in mine], query)
    assert scores_of(index, query, len(mine)) == pytest.approx(expected, rel=1e-5)
    assert index.holders(hash_terms(query)).tolist() == [
        sum(term in rows[row] for row in mine) for term in query
    ]


@given(st.lists(TEXTS, min_size=1, max_size=4), st.data())
def test_merged_parts_are_those_that_are_made_at_once(
    parts: list[list[list[str]]], data: st.DataObject
) -> None:
    places, kept, free = [], [], 0
    for part in parts:
        keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(part), max_size=len(part))))
        places.append(np.where(keep, free + np.cumsum(keep) - 1, -1))
        free += int(keep.sum())
        kept += [text for text, stays in zip(part, keep, strict=True) if stays]
    merged = merge_postings([make_postings(part) for part in parts], places)
    assert same(merged, make_postings(kept))


def test_large_parts_are_merged_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [[WORDS[(row * step) % 8] for step in range(9)] for row in range(30)]
    monkeypatch.setattr("skillpager.library.routing.fields.MERGED_POSTINGS", 7)
    merged = merge_postings(
        [make_postings(texts[:11]), make_postings(texts[11:])], [np.arange(11), np.arange(11, 30)]
    )
    assert same(merged, make_postings(texts))


def test_a_count_beyond_a_byte_is_the_greatest() -> None:
    assert make_postings([["a"] * 1000, ["a"]]).counts.tolist() == [255, 1]


def test_the_rarest_terms_of_a_query_are_searched() -> None:
    texts = [["deploy", "kubernete"], ["deploy"], ["deploy", "helm"], ["deploy", "helm"]]
    index = FieldIndex([make_postings(texts)], np.arange(4, dtype=np.int32), 4)
    query = routing_terms("deploy something with helm to kubernetes, deploy")
    assert pick_terms(query, [index, index], 2) == ["kubernete", "helm"]
    assert pick_terms(query, [index], 9) == ["kubernete", "helm", "deploy"]


@pytest.mark.parametrize(
    ("description", "kept", "negated"),
    [
        ("Makes charts. Not for tables.", "Makes charts.", "Not for tables."),
        (
            "Makes charts. Do not use for tables! Use it often.",
            "Makes charts. Use it often.",
            "Do not use for tables!",
        ),
        (
            "Charts; don't use when v1.2 is asked for. More.",
            "Charts; More.",
            "don't use when v1.2 is asked for.",
        ),
        ("Use for charts, not for maps", "Use for charts,", "not for maps"),
        ("Not only for charts, also for maps.", "Not only for charts, also for maps.", ""),
        ("Use when tests do not pass.", "Use when tests do not pass.", ""),
        ("Should NOT be used for\nlarge files", "large files", "Should NOT be used for"),
    ],
)
def test_what_a_skill_is_not_for_is_a_field_of_its_own(description: str, kept: str, negated: str) -> None:
    fields = dict(zip(FIELDS, field_terms("charts", description, ""), strict=True))
    assert fields["negated"] == routing_terms(negated)
    assert fields["description"] == routing_terms(kept)


def test_the_opening_of_a_body_is_prose_and_phrases_are_pairs() -> None:
    body = (
        "# Merge ranges\n\nWorks on sorted lists.\n\n```sh\nrun --fast\n```\n\n## Time zones\n"
        + "word " * 999
    )
    fields = dict(zip(FIELDS, field_terms("dates", "Joins date ranges.", body), strict=True))
    assert fields["opening"][:6] == ["merge", "range", "work", "sorted", "list", "time"]
    assert len(fields["opening"]) == 250
    assert "fast" in fields["body"]
    assert fields["phrases"][:4] == ["join date", "date range", "merge range", "range time"]
    assert "sorted list" in fields["phrases"]
    assert not {"list run", "range merge"} & set(fields["phrases"])

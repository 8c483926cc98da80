"""Clauses of a query: where they end, that no word is lost, and that the navigator finds each by itself."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor_time import assert_within
from skillpager import SkillPager
from skillpager.classifiers.local import LocalClassifier
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.indexing import Builder
from skillpager.strategies.navigator.features import NAMES, IndexFeatures, features_of
from skillpager.strategies.navigator.lexical import MOST_CLAUSES, clauses_of, terms_of
from skillpager.tokens import default_counter
from skillpager.types import FloatArray, Query
from strategy_cases import index_with


@pytest.mark.parametrize(
    ("query", "clauses"),
    [
        ("restore one table from a dump", ()),
        ("What is it?", ()),
        (
            "Review the calls, and tell me which queue to use.",
            ("Review the calls", "tell me which queue to use"),
        ),
        ("Set up port forwarding; then rotate the keys", ("Set up port forwarding", "rotate the keys")),
        # a part that says too little joins the next, the last one the one before
        ("Stop, roll back the release, mend it, please", ("Stop, roll back the release", "mend it, please")),
        ("How do I, on a Mac, install the linter? And hooks", ()),
        ("Reset the admin password. Why does v1.2.3 of tool.py fail?", ("Reset the admin password", "Why does v1.2.3 of tool.py fail")),
        ("数据库连接失败", ()),
    ],
)  # fmt: skip
def test_clauses_end_where_another_thing_is_asked(query: str, clauses: tuple[str, ...]) -> None:
    assert clauses_of(query) == clauses


def test_of_many_clauses_the_shortest_neighbours_are_joined() -> None:
    clauses = clauses_of("; ".join(f"install package number{n}" for n in range(20)))
    assert len(clauses) == MOST_CLAUSES
    assert " ".join(clauses).count("install package") == 20


@given(st.text(max_size=200))
def test_no_term_is_lost(text: str) -> None:
    clauses = clauses_of(text)
    assert len(clauses) != 1
    if clauses:
        terms = [term for clause in clauses for term in terms_of(clause)]
        assert set(terms) >= set(terms_of(text)) - {"then", "plus", "also"}


@given(st.text(max_size=200))
def test_clauses_are_slices_of_the_query_in_order(text: str) -> None:
    end = 0
    for clause in clauses_of(text):
        start = text.find(clause, end)
        assert start >= end
        end = start + len(clause)


def test_a_node_that_answers_one_clause_alone_is_best_of_it() -> None:
    rows = np.eye(3, dtype=np.float32)
    index = index_with(rows, texts=["alpha", "beta", "gamma"])
    whole = Query("q", (rows[0] * 0.96 + rows[1] * 0.28).astype(np.float32))
    asked = Query(whole.text, whole.embedding, (Query("alpha", rows[0]), Query("beta", rows[1])))
    known = IndexFeatures(index)
    found = {"whole": features_of(known, whole), "clauses": features_of(known, asked)}

    def column(of: str, name: str) -> list[float]:
        return [round(value, 2) for value in found[of][:, NAMES.index(name)].tolist()]

    assert column("whole", "clause_cosine") == [0.96, 0.28, 0]
    assert column("clauses", "clause_cosine") == [1, 1, 0]
    assert column("clauses", "clause_z") == [1.41, 1.41, -0.71]
    assert column("clauses", "clause_rank") == [0, 0, 1]
    assert column("clauses", "clause_bm25") == [1, 1, 0]
    assert column("clauses", "clause_coverage") == [1, 1, 0]


def test_the_pager_embeds_clauses_for_who_reads_them(pager: SkillPager) -> None:
    query = "restore one table from a dump; rotate the encryption keys"
    parts = clauses_of(query)
    assert len(parts) == 2
    navigator, mmr = (pager.query(query, pager.strategy(name, None)) for name in ("navigator", "mmr"))
    assert mmr.clauses == ()
    assert [clause.text for clause in navigator.clauses] == list(parts)
    rows = BuiltinEncoder().encode_query_parts(query, parts)
    assert np.array_equal(navigator.embedding, rows[0])
    assert np.array_equal(np.stack([clause.embedding for clause in navigator.clauses]), rows[1:])


def test_an_encoder_of_one_query_at_a_time_is_enough() -> None:
    class Plain:
        id, dim = "plain", 2

        def encode_documents(self, texts: Sequence[str]) -> FloatArray:
            raise AssertionError(texts)

        def encode_query(self, text: str) -> FloatArray:
            return np.array([len(text), 0], np.float32)

    builder = Builder(Plain(), LocalClassifier(), default_counter(), "context")
    rows = builder.embed_query("whole query", ["whole", "query"])
    assert [int(row[0]) for row in rows] == [11, 5, 5]


@pytest.mark.parametrize("part", ["?", " ", "the. ", "a, ", "and ", " - "])
def test_clauses_of_a_hostile_query_are_found_at_once(part: str) -> None:
    text = "Restore" + part * (60_000 // len(part)) + "now"
    assert_within(1, lambda: clauses_of(text))

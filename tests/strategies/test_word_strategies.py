"""BM25 and its fusion with dense ranks: terms, an independent formula, and what is kept between queries."""

import math

import numpy as np
import pytest
from bm25s.stopwords import STOPWORDS_EN
from hypothesis import given, settings
from hypothesis import strategies as st

from index_builder import build_index, unit_rows
from skillpager import SkillPager
from skillpager.sections import embedded_text
from skillpager.strategies import picking
from skillpager.strategies.baselines.bm25 import Bm25, Hybrid
from skillpager.strategies.navigator.lexical import STOP_WORDS, terms_of
from skillpager.strategies.picking import PerIndex
from skillpager.types import Query, SkillIndex
from strategy_cases import index_with, ordinals, run

# ---- terms


@pytest.mark.parametrize("written", ["max_nodes", "maxNodes", "MaxNodes", "--max-nodes", "MAX_NODES"])
def test_an_identifier_has_the_same_terms_however_it_is_written(written: str) -> None:
    assert terms_of(f"set `{written}` now") == ["set", "maxnodes", "max", "node", "now"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("parseJSON2Dict", ["parsejson2dict", "parse", "json", "2", "dict"]),
        ("10_000", ["10000", "10", "000"]),
        ("__init__", ["init"]),
        ("src/app.py", ["src", "app", "py"]),
        ("The tests of a class", ["test", "class"]),
        ("gas bus is", ["gas", "bus"]),
        ("Über naïve résumés", ["über", "naïve", "résumé"]),
        ("ﬁle Ｆｕｌｌ STRASSE straße", ["file", "full", "strasse", "strasse"]),
        ("数据库", ["数据", "据库"]),
        ("用git提交", ["用", "git", "提交"]),
        ("テスト 한국어", ["テス", "スト", "한국", "국어"]),
        ("-- _ … 🚀", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert terms_of(text) == terms


def test_the_stop_words_are_those_of_bm25s() -> None:
    assert frozenset(STOPWORDS_EN) == STOP_WORDS


@given(st.text(max_size=200))
def test_any_text_has_terms_without_blank_or_empty_ones(text: str) -> None:
    assert all(term and not any(letter.isspace() for letter in term) for term in terms_of(text))


# ---- bm25


def naive_bm25(documents: list[list[str]], query: list[str], k1: float = 1.5, b: float = 0.75) -> list[float]:
    """Lucene's BM25, one document and one query term at a time."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in query:
            holding = sum(term in other for other in documents)
            idf = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            count = document.count(term)
            score += idf * count / (count + k1 * (1 - b + b * len(document) / mean))
        scores.append(score)
    return scores


@settings(max_examples=60, deadline=None)
@given(
    documents=st.lists(
        st.lists(st.sampled_from(["node", "edge", "page", "数据库", "max_nodes"]), max_size=8).map(" ".join),
        min_size=1,
        max_size=12,
    ),
    query=st.lists(st.sampled_from(["node", "page", "maxNodes", "数据", "absent"]), max_size=6).map(" ".join),
)
def test_scores_are_those_of_the_formula(documents: list[str], query: str) -> None:
    index = index_with(texts=documents)
    terms = [terms_of(embedded_text(node, "heading")) for node in index.nodes]
    scores = Bm25().scores(index, Query(query, index.embeddings[0]))
    assert scores == pytest.approx(naive_bm25(terms, terms_of(query)), abs=1e-5)
    assert ordinals(run(Bm25(), index, text=query)) == np.argsort(-scores, kind="stable").tolist()


def test_headings_count_as_words_of_the_node() -> None:
    index = index_with(texts=["the same words"] * 20)
    selection = run(Bm25(), index, text="What does section 1 say?", max_nodes=3)
    assert ordinals(selection) == [8, 9, 10]


def test_a_query_without_known_words_gives_the_beginning() -> None:
    for text in ("zzz", "the of", "…"):
        selection = run(Bm25(), index_with(count=30), text=text, max_nodes=3)
        assert ordinals(selection) == [0, 1, 2]
        assert selection.picks[0].marginal == 0


def test_a_skill_without_words_is_no_obstacle(pager: SkillPager) -> None:
    page = pager.page("……\n\n——\n", "…", strategy="bm25", style="plain")
    assert len(page.nodes) == len(pager.index("……\n\n——\n").nodes)


# ---- hybrid


def test_the_fused_score_is_the_sum_of_reciprocal_ranks() -> None:
    index = index_with(texts=["apple", "pear apple apple", "plum", "pear"])
    query = index.embeddings[2]
    dense = np.argsort(-(index.embeddings @ query), kind="stable").tolist()
    lexical = [1, 0]  # node 1 says it twice; 2 and 3 do not have the word and no rank
    orders = (dense, lexical)
    expected = {n: sum(1 / (60 + 1 + each.index(n)) for each in orders if n in each) for n in range(4)}
    selection = run(Hybrid(), index, query, text="apple")
    assert ordinals(selection) == sorted(expected, key=lambda node: -expected[node])
    for pick in selection.picks:
        assert pick.marginal == pytest.approx(expected[pick.node.ordinal], rel=1e-6)


def test_without_a_word_in_common_hybrid_is_dense() -> None:
    rows = unit_rows(31, 8, seed=5)
    index = index_with(rows[1:])
    dense = np.argsort(-(rows[1:] @ rows[0]), kind="stable").tolist()
    assert ordinals(run(Hybrid(), index, rows[0], text="zzz", max_nodes=30)) == dense


# ---- both


def test_a_strategy_that_is_kept_gives_what_a_fresh_one_gives() -> None:
    indexes = [build_index(size) for size in range(3, 15)]  # more than it keeps
    for kept, fresh in ((Bm25(), Bm25), (Hybrid(), Hybrid)):
        for text in ("line 3", "section 1 résumé"):
            for index in indexes:
                assert run(kept, index, text=text) == run(fresh(), index, text=text)


def test_what_is_cached_is_bounded_and_the_newest_stays() -> None:
    made: list[str] = []

    def make(index: SkillIndex) -> str:
        made.append(index.skill.name)
        return index.skill.name

    sizes = {"one": 200, "two": 200, "large": 999}
    one, two, large = (build_index(size, name=name) for name, size in sizes.items())
    cache: PerIndex[str] = PerIndex(500)
    for index in (one, two, one, two):
        assert cache.of(index, make) == index.skill.name
    assert made == ["one", "two"]
    for index in (large, large, one, one):
        cache.of(index, make)
    assert made == ["one", "two", "large", "one"]
    for size in range(3, 3 + 500 // picking.MIN_CACHED_NODES):  # small ones are bounded in number, too
        cache.of(build_index(size, name=str(size)), make)
    cache.of(one, make)
    assert made[-1] == "one"

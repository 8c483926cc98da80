"""The strategies that go by the document's own order: its beginning, and its sections."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from index_builder import unit_rows
from skillpager import SkillPager
from skillpager.sections import sections_of
from skillpager.strategies.baselines.bm25 import Bm25, Hybrid
from skillpager.strategies.baselines.simple import HEAD_TOKENS, Full, Head, Sections, section_scores
from skillpager.types import FloatArray, Query, SkillIndex, SkipReason, Strategy
from strategy_cases import assert_sound, index_with, near, ordinals, reasons, run

# ---- head


def test_head_is_the_beginning_whatever_the_query() -> None:
    rows, query = near(*np.linspace(0, 1, 150))
    selection = run(Head(), index_with(rows, tokens=[10] * 150), query, max_tokens=95)
    assert ordinals(selection) == list(range(9))
    expected = {9: SkipReason.MAX_TOKENS} | dict.fromkeys(range(10, 150), SkipReason.NOT_REACHED)
    assert reasons(selection) == expected


def test_head_stops_at_the_first_node_that_does_not_fit() -> None:
    selection = run(Head(), index_with(tokens=[10, 90, 10]), max_tokens=30)
    assert ordinals(selection) == [0]


def test_head_keeps_what_hosts_keep_when_nothing_is_said() -> None:
    selection = run(Head(), index_with(tokens=[1000] * 12))
    assert ordinals(selection) == [0, 1, 2, 3, 4]
    assert selection.budget.max_tokens == HEAD_TOKENS


@pytest.mark.parametrize("strategy", [Head(), Full()])
def test_a_given_number_of_nodes_is_for_all_but_the_dynamic_one_is_not(strategy: Strategy) -> None:
    index = index_with(tokens=[1] * 50)
    assert len(run(strategy, index).picks) == 50
    selection = run(strategy, index, max_nodes=3)
    assert ordinals(selection) == [0, 1, 2]
    assert set(reasons(selection).values()) == {SkipReason.MAX_NODES}
    assert any(pick.redundancy for pick in selection.picks) is isinstance(strategy, Head)


# ---- sections


def test_a_section_is_what_stands_between_two_headings_of_a_file(pager: SkillPager) -> None:
    text = "Intro.\n\n# A\n\nOne.\n\n## Same\n\nTwo.\n\n## Same\n\nThree.\n\n# B\n\n## C\n\n- four\n- five\n"
    index = pager.index(f"---\nname: s\ndescription: d\n---\n{text}")
    found = [[index.nodes[ordinal].text.strip() for ordinal in section] for section in sections_of(index)]
    assert found == [["Intro."], ["One."], ["Two."], ["Three."], ["- four\n- five"]]


def test_the_score_of_a_section_is_the_cosine_with_its_weighted_mean_row() -> None:
    index = index_with(unit_rows(20, 8, seed=3), tokens=list(range(1, 21)))
    query = unit_rows(1, 8, seed=4)[0]
    scores = section_scores(index, sections_of(index), Query("q", query))
    assert scores.dtype == np.float32
    for section, score in zip(sections_of(index), scores, strict=True):
        rows = index.embeddings.astype(float)
        mean = sum(index.nodes[ordinal].tokens * rows[ordinal] for ordinal in section)
        assert score == pytest.approx(mean @ query / np.linalg.norm(mean), abs=2e-6)


def test_rows_that_cancel_out_score_nothing_and_warn_of_nothing() -> None:
    index = index_with(np.array([[1, 0], [-1, 0]], dtype=np.float32), tokens=[5, 5])
    scores = section_scores(index, sections_of(index), Query("q", index.embeddings[0]))
    assert scores.tolist() == [0.0]


def sectioned(*cosines: float) -> tuple[SkillIndex, FloatArray]:
    """Return an index whose sections of eight nodes each have one of the cosines with the query."""
    rows, query = near(*[cosine for cosine in cosines for _ in range(8)])
    return index_with(rows, tokens=[10] * len(rows)), query


def test_the_best_sections_come_first_and_whole() -> None:
    index, query = sectioned(0.1, 0.9, 0.5, 0.7)
    assert ordinals(run(Sections(), index, query, max_nodes=16)) == [*range(8, 16), *range(24, 32)]


def test_sections_of_equal_score_keep_the_order_of_the_document() -> None:
    index, query = sectioned(0.5, 0.5, 0.5)
    assert ordinals(run(Sections(), index, query, max_nodes=16)) == list(range(16))


def test_a_section_with_too_many_nodes_gives_way_to_a_smaller_one() -> None:
    rows, query = near(*[0.9] * 8, *[0.8] * 8, *[0.7] * 2)
    index = index_with(rows, tokens=[10] * 18)
    assert ordinals(run(Sections(), index, query, max_nodes=11)) == [*range(8), 16, 17]


def test_the_best_section_is_cut_to_its_best_nodes_when_it_is_too_large_alone() -> None:
    rows, query = near(0.1, 0.9, 0.8, 0.9, 0.7, 0.1, 0.1, 0.1, -0.9, -0.9)
    index = index_with(rows, tokens=[10] * 10)
    assert ordinals(run(Sections(), index, query, max_nodes=3)) == [1, 3, 2]


def test_a_section_that_does_not_fit_the_tokens_is_left_out_whole() -> None:
    rows, query = near(*[0.9] * 8, *[0.5] * 2)
    selection = run(Sections(), index_with(rows, tokens=[10] * 10), query, max_tokens=60)
    assert ordinals(selection) == [8, 9]
    assert {reasons(selection)[ordinal] for ordinal in range(8)} == {SkipReason.MAX_TOKENS}


def test_a_section_is_priced_with_a_token_between_its_nodes() -> None:
    rows, query = near(*[0.9] * 8, *[0.5] * 2)
    index = index_with(rows, tokens=[10] * 10)
    assert ordinals(run(Sections(), index, query, max_tokens=8 * 10 + 7)) == list(range(8))
    assert ordinals(run(Sections(), index, query, max_tokens=8 * 10 + 6)) == [8, 9]


def test_when_no_section_fits_the_best_gives_its_best_nodes() -> None:
    rows, query = near(0.2, 0.9, 0.8, 0.9, 0.7, 0.1, 0.1, 0.1, *[-0.9] * 8)
    index = index_with(rows, tokens=[10] * 16)
    assert ordinals(run(Sections(), index, query, max_tokens=25)) == [1, 3]


def test_when_nothing_of_the_best_section_fits_the_next_is_asked() -> None:
    rows, query = near(*[0.9] * 8, *[0.5] * 8)
    index = index_with(rows, tokens=[100] * 8 + [10] * 8)
    assert ordinals(run(Sections(), index, query, max_tokens=25)) == [8, 9]


# ---- both, and those that go by words


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(0, 40),
    nodes=st.none() | st.integers(0, 45),
    tokens=st.none() | st.integers(0, 400),
    strategy=st.sampled_from([Head(), Sections(), Bm25(), Hybrid()]),
)
def test_the_budget_holds_and_every_number_is_true(
    seed: int, count: int, nodes: int | None, tokens: int | None, strategy: Strategy
) -> None:
    rows = unit_rows(count + 1, 8, seed=seed)
    index = index_with(rows[1:])
    asked = "line 4 of section 1"
    selection = run(strategy, index, rows[0], text=asked, max_nodes=nodes, max_tokens=tokens)
    assert_sound(selection, index, rows[0])
    if strategy.name == "sections" and tokens is None and nodes is None:
        picked = set(ordinals(selection))
        assert all(picked.issuperset(part) or picked.isdisjoint(part) for part in sections_of(index))


@pytest.mark.parametrize("style", ["plain", "marked", "xml"])
@pytest.mark.parametrize("name", ["head", "sections"])
def test_a_real_page_fills_its_budget_and_no_more(pager: SkillPager, name: str, style: str) -> None:
    skill: Path = SAMPLES / "postgres-backup"
    index = pager.index(skill)
    for share in (0.2, 0.5, 0.8):
        limit = int(share * index.full_tokens)
        page = pager.page(
            skill, "Restore one table.", strategy=name, style=style, max_nodes=10**9, max_tokens=limit
        )
        assert 0.7 * limit <= page.tokens <= limit

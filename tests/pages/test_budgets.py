"""Limits of a page: ceilings for a strategy that stops by itself, what filling adds, and what too little needs."""

from importlib.util import find_spec
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from golden import QUERIES
from skillpager import SkillPager
from skillpager.settings import PROJECT_STRATEGIES
from skillpager.types import ScoreKind, SkipReason, Style

NAMES = st.sampled_from(sorted(QUERIES))
STYLES = st.sampled_from(list(Style))
KINDS = {
    "navigator": ScoreKind.NEED,
    "lean": ScoreKind.NEED,
    **dict.fromkeys(("mmr", "mmr_graph", "exec_only", "concept_only", "density"), ScoreKind.MMR_MARGIN),
    **dict.fromkeys(("topk", "topk_dependency", "full", "head", "greedy_graph"), ScoreKind.COSINE),
    **dict.fromkeys(("dpp", "msd", "cover"), ScoreKind.DIVERSITY),
    "sections": ScoreKind.SECTION,
    "bm25": ScoreKind.BM25,
    "hybrid": ScoreKind.RANK_FUSION,
}
# those of the extra are tried where it is installed
OPTIONAL = dict.fromkeys(("dpp", "msd", "cover"), "pyversity")
INSTALLED = [name for name in PROJECT_STRATEGIES if name not in OPTIONAL or find_spec(OPTIONAL[name])]


@settings(max_examples=40)
@given(name=NAMES, style=STYLES, extra=st.integers(0, 50) | st.integers(0, 5000))
def test_a_page_within_its_ceiling_is_the_page_without_one(
    pager: SkillPager, name: str, style: Style, extra: int
) -> None:
    free = pager.page(SAMPLES / name, QUERIES[name], style=style)
    page = pager.page(SAMPLES / name, QUERIES[name], style=style, max_tokens=free.tokens + extra)
    assert (page.text, page.sufficiency, page.covered) == (free.text, free.sufficiency, free.covered)
    assert free.selection is not None
    assert page.selection is not None
    assert page.selection.picks == free.selection.picks
    assert page.selection.budget.max_tokens == free.tokens + extra
    many = pager.page(SAMPLES / name, QUERIES[name], style=style, max_nodes=len(free.selection.picks) + extra)
    assert many.text == free.text


@settings(max_examples=60)
@example(name="api-rate-limits", style=Style.PLAIN, limit=999, nodes=None)  # the sum of its parts is more
@given(name=NAMES, style=STYLES, limit=st.integers(0, 3000), nodes=st.none() | st.integers(0, 40))
def test_a_limit_takes_away_and_filling_adds(
    pager: SkillPager, name: str, style: Style, limit: int, nodes: int | None
) -> None:
    skill, query = SAMPLES / name, QUERIES[name]
    page = pager.page(skill, query, style=style, max_tokens=limit, max_nodes=nodes)
    full = pager.page(skill, query, style=style, max_tokens=limit, max_nodes=nodes, fill=True)
    free = pager.page(skill, query, style=style)
    assert page.tokens <= limit
    assert full.tokens <= limit
    assert page.sufficiency is not None
    assert full.sufficiency is not None
    assert page.selection is not None
    assert full.selection is not None
    if nodes is None:
        assert {node.id for node in page.nodes} <= {node.id for node in full.nodes}
    if free.tokens > limit:
        assert page.text != free.text
    left = {skip.reason for skip in full.selection.skipped}
    assert left <= {SkipReason.MAX_TOKENS, SkipReason.MAX_NODES}


def test_without_limits_a_filled_page_is_the_whole_skill_unless_it_suffices(pager: SkillPager) -> None:
    skill, query = SAMPLES / "postgres-backup", QUERIES["postgres-backup"]
    assert pager.page(skill, query, fill=True).complete
    plain = pager.page(skill, query, fill=True, style="plain")
    assert len(plain.nodes) == len(pager.index(skill).nodes)
    enough = pager.page(skill, query, fill=True, sufficiency=0.9)
    assert enough.text == pager.page(skill, query, sufficiency=0.9).text
    assert not enough.complete


@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize("strategy", INSTALLED)
def test_a_page_that_holds_nothing_says_what_a_smallest_one_needs(
    pager: SkillPager, strategy: str, style: Style
) -> None:
    skill, query = SAMPLES / "git-bisect", QUERIES["git-bisect"]
    page = pager.page(skill, query, strategy=strategy, style=style, max_tokens=0)
    assert (page.text, page.nodes) == ("", ())
    least = page.least_tokens
    assert least is not None
    enough = pager.page(skill, query, strategy=strategy, style=style, max_tokens=least)
    assert enough.nodes
    assert enough.least_tokens is None
    less = pager.page(skill, query, strategy=strategy, style=style, max_tokens=least - 1)
    assert (less.nodes, less.least_tokens) == ((), least)


def test_what_is_left_out_by_number_or_for_a_reader_is_not_too_little_room(pager: SkillPager) -> None:
    skill, query = SAMPLES / "git-bisect", QUERIES["git-bisect"]
    assert pager.page(skill, query, max_nodes=0, max_tokens=500).least_tokens is None
    known = [node.id for node in pager.index(skill).nodes]
    assert pager.page(skill, query, known=known, max_tokens=900).least_tokens is None
    assert pager.page("# Only a heading\n", query, max_tokens=0).least_tokens is None


def test_a_read_or_a_whole_skill_of_nothing_says_what_its_first_node_needs(pager: SkillPager) -> None:
    skill = SAMPLES / "git-bisect"
    for read in (
        lambda limit: pager.whole(skill, max_tokens=limit),
        lambda limit: pager.expand(skill, "n3-n9", max_tokens=limit),
    ):
        least = read(0).least_tokens
        assert least is not None
        assert read(least).nodes
        assert (read(least - 1).nodes, read(least - 1).least_tokens) == ((), least)


@pytest.mark.parametrize("strategy", INSTALLED)
def test_a_selection_says_what_its_scores_are(pager: SkillPager, strategy: str) -> None:
    skill, query = SAMPLES / "git-bisect", QUERIES["git-bisect"]
    selection = pager.page(skill, query, strategy=strategy, style="plain").selection
    assert selection is not None
    assert selection.score_kind == KINDS[strategy]
    entries = [*selection.picks, *selection.skipped]
    if selection.score_kind is ScoreKind.COSINE:
        assert all(entry.marginal == entry.relevance for entry in entries)
    elif selection.score_kind is ScoreKind.NEED:
        assert all(0 <= entry.marginal < 1 for entry in entries)
    elif selection.score_kind is ScoreKind.MMR_MARGIN:
        numbers = [0.7 * pick.relevance - 0.3 * pick.redundancy for pick in selection.picks]
        assert [pick.marginal for pick in selection.picks] == pytest.approx(numbers, abs=1e-5)
    elif selection.score_kind in (ScoreKind.BM25, ScoreKind.RANK_FUSION):
        assert all(before.marginal >= after.marginal >= 0 for before, after in pairwise(selection.picks))

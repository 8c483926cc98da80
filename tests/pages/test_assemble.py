"""What a budget allows of a selection, of a whole skill and of some nodes; tokens are words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from messages import raises
from skillpager.errors import SettingsError
from skillpager.pages.assemble import (
    NodeMeter,
    PageMeter,
    choose_budget,
    estimates,
    leave_out,
    longest,
    make_page,
    make_whole,
)
from skillpager.pages.render import PageRenderer
from skillpager.pages.short_answer import LEAST_FOR_PAGE, MAX_TOKENS
from skillpager.settings import Settings
from skillpager.strategies import Full
from skillpager.types import Budget, Page, PageOptions, Pick, Query, Selection, SkillIndex, Style, TokenMeter
from word_tokens import Words, index_of, words

QUERY = Query("what to do", np.eye(1, 8, dtype=np.float32)[0])
NAMES = ("Alpha", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot")
TEXT = "# Top\n\n" + "\n\n".join(words(name, 40) for name in NAMES) + "\n"


class Picks:
    """A strategy that picks given nodes, whatever they cost."""

    name = "picks"

    def __init__(self, *ordinals: int) -> None:
        self.ordinals = ordinals
        self.budgets: list[Budget] = []
        self.meters: list[TokenMeter] = []

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        self.budgets.append(budget)
        self.meters.append(meter)
        picks = tuple(
            Pick(index.nodes[ordinal], rank, 0.0, 0.0, 0.0, 0, 0, self.chance(rank))
            for rank, ordinal in enumerate(self.ordinals)
        )
        return Selection(self.name, query.text, picks, (), budget)

    def chance(self, rank: int) -> float | None:
        return None


class Estimates(Picks):
    """The same with an estimate after each pick, but for the first."""

    embedding = "digest-8/bare"

    def chance(self, rank: int) -> float | None:
        return rank / 10 if rank else None

    def clauses(self, query: str) -> Sequence[str]:
        return ()

    def reasons(self, index: SkillIndex, query: Query) -> Sequence[Mapping[str, float]]:
        return [{} for _ in index.nodes]


class Doubts(Estimates):
    """The same, of a skill that hardly covers the query and has variants."""

    covered, variants = 0.3, {"refs": ["x"]}

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        selection = super().select(index, query, budget=budget, meter=meter)
        return replace(selection, covered=self.covered, variants=self.variants)


class Tens(Words):
    """Counts tens of words: a page may have more of them than its parts."""

    def count(self, text: str) -> int:
        return super().count(text) // 10


@pytest.fixture(scope="module")
def index() -> SkillIndex:
    """A skill of six nodes with 40 tokens each."""
    return index_of(TEXT)


def renderer(index: SkillIndex, *, style: Style = Style.MARKED) -> PageRenderer:
    return PageRenderer(index, Words(), style=style)


def shown(page: Page) -> list[int]:
    return [node.ordinal for node in page.nodes]


# ---- the budget of a call


@pytest.mark.parametrize(
    ("options", "settings", "expected"),
    [
        ({}, {}, Budget()),
        ({}, {"max_nodes": 7, "max_tokens": 8, "sufficiency": 0.5}, Budget(7, 8, 0.5)),
        ({"max_nodes": 1, "max_tokens": 2, "sufficiency": 1.0}, {"max_nodes": 7, "max_tokens": 8, "sufficiency": 0.5}, Budget(1, 2, 1.0)),
        ({"max_nodes": 0, "max_tokens": 0}, {"max_nodes": 7, "max_tokens": 8}, Budget(0, 0)),
        ({"max_nodes": None, "max_tokens": None}, {"max_nodes": 0, "max_tokens": 0}, Budget(0, 0)),
        ({"sufficiency": 1e-9}, {}, Budget(sufficiency=1e-9)),
        ({"max_tokens": 5}, {"fill": True}, Budget(max_tokens=5, fill=True)),
        ({"max_tokens": 5, "fill": False}, {"fill": True}, Budget(max_tokens=5)),
        ({"fill": True}, {}, Budget(fill=True)),
    ],
)  # fmt: skip
def test_a_limit_is_that_of_the_call_else_that_of_the_settings(
    options: PageOptions, settings: dict[str, int], expected: Budget
) -> None:
    assert choose_budget(options, Settings(**settings), Estimates()) == expected  # type: ignore[arg-type]


def test_a_setting_for_sufficiency_is_for_strategies_that_estimate_it() -> None:
    plain, settings = Picks(), Settings(max_nodes=7, max_tokens=8, sufficiency=0.5)
    assert (estimates(plain), estimates(Estimates())) == (False, True)
    assert choose_budget({}, settings, plain) == Budget(7, 8)
    assert choose_budget({"fill": True}, settings, plain) == Budget(7, 8, fill=True)
    with raises(SettingsError):
        choose_budget({"sufficiency": 0.5}, settings, plain)


@pytest.mark.parametrize(
    "options",
    [
        *({"max_nodes": -1}, {"max_tokens": -1}, {"sufficiency": 0.0}, {"sufficiency": 1.01}),
        *({"max_nodes": True}, {"max_tokens": True}, {"sufficiency": True}),
    ],
)
def test_a_limit_out_of_range_is_an_error_wherever_it_stands(options: PageOptions) -> None:
    with raises(SettingsError):
        choose_budget(options, Settings(), Estimates())
    with raises(SettingsError):
        choose_budget({}, Settings(**options), Estimates())  # type: ignore[arg-type]


# ---- the page of a selection


def test_a_page_without_ceiling_is_what_was_picked(index: SkillIndex) -> None:
    page_renderer, strategy = renderer(index), Picks(5, 0)
    page = make_page(page_renderer, strategy, QUERY, Budget(2))
    assert page.text == page_renderer.render([0, 5]).text
    assert page.selection == strategy.select(index, QUERY, budget=Budget(2), meter=NodeMeter(index.nodes))
    assert page.sufficiency is None
    meter = strategy.meters[0]
    assert isinstance(meter, NodeMeter)
    assert meter.gap_tokens == page_renderer.gap_tokens > 0


@pytest.mark.parametrize(("kept", "chance"), [(4, 0.3), (3, 0.2), (2, 0.1), (1, 0.0), (0, 0.0)])
def test_the_last_picks_go_until_the_page_is_within_its_ceiling(
    index: SkillIndex, kept: int, chance: float
) -> None:
    order, page_renderer = (3, 0, 5, 1), renderer(index)
    strategy = Estimates(*order)
    limit = page_renderer.render(order[:kept]).tokens
    page = make_page(page_renderer, strategy, QUERY, Budget(4, limit, fill=True))
    assert (shown(page), page.tokens, page.sufficiency) == (sorted(order[:kept]), limit, chance)
    assert isinstance(strategy.meters[-1], PageMeter)
    assert page.selection is not None
    assert [pick.node.ordinal for pick in page.selection.picks] == list(order)
    less = make_page(page_renderer, strategy, QUERY, Budget(4, limit - 1, fill=True))
    assert shown(less) == sorted(order[: max(kept - 1, 0)])
    of_less = Selection("picks", "what to do", page.selection.picks, (), Budget(4, limit - 1, fill=True))
    assert less.selection == of_less
    assert (less.text == "") == (kept == 0)
    assert make_page(page_renderer, Picks(*order), QUERY, Budget(4, limit)).sufficiency is None


def test_what_a_page_says_of_a_skill_and_its_variants_counts() -> None:
    index = index_of(TEXT, words("Golf", 40))
    page_renderer, strategy, whole = renderer(index), Doubts(3), Picks(*range(7))
    assert "lines]\n\n[Variants: x; this" in make_page(page_renderer, Doubts(6), QUERY, Budget()).text
    notice, variants, alone = 10, 14, PageMeter(page_renderer).tokens
    few, most = make_page(page_renderer, strategy, QUERY, Budget(4, 50)), index.full_tokens + 2 + notice
    assert (shown(few), few.least_tokens) == ([], page_renderer.render([3]).tokens + notice + variants)
    assert strategy.meters[-1].tokens == alone + notice + variants
    tens = PageRenderer(index_of(TEXT, words("Golf", 45), counter=Tens()), Tens())
    least = make_page(tens, Doubts(6), QUERY, Budget(max_tokens=0)).least_tokens
    assert least == make_page(tens, Doubts(6), QUERY, Budget()).tokens
    page = make_page(page_renderer, strategy, QUERY, Budget(4, most, fill=True), whole=whole)
    assert (page.complete, page.tokens, page.covered) == (True, most, 0.3)
    assert whole.meters[-1].tokens == alone + notice
    less = make_page(page_renderer, strategy, QUERY, Budget(4, most - 1, fill=True), whole=whole)
    assert (shown(less), less.selection and less.selection.budget.max_tokens) == ([3], most - 1)
    every, room = Doubts(*range(7)), page_renderer.frame_tokens() + variants + most
    for limits in Budget(7, most), Budget(7, most, fill=True):
        selection = make_page(page_renderer, every, QUERY, limits).selection
        assert selection is not None
        assert selection.budget == limits
    assert every.budgets == [Budget(7), Budget(7), Budget(7, room, fill=True)]


def test_what_is_most_probably_not_covered_gets_a_short_answer() -> None:
    index = index_of(f"# Top\n\n## One\n\n{words('Alpha', 90)}\n\n## Two\n\n{words('Bravo', 90)}\n")
    page_renderer, strategy = PageRenderer(index, Words(), show="show x"), Doubts(1)
    strategy.covered = LEAST_FOR_PAGE
    page = make_page(page_renderer, strategy, QUERY, Budget(), hint="ask anew")
    assert page.text == page_renderer.render([1], selection=page.selection).text
    assert "[… L5: One]" in page.text
    assert make_page(page_renderer, strategy, QUERY, Budget(max_tokens=page.tokens)).text == page.text
    assert len(strategy.meters) == 2  # what fits is selected once
    strategy.covered = LEAST_FOR_PAGE - 0.001
    short = make_page(page_renderer, strategy, QUERY, Budget(), hint="ask anew")
    assert "to read lines: show x L5; ask anew]\n\nskill\nSections: One; Two\n" in short.text
    as_short = renderer(index_of("\n\n".join(words(name, MAX_TOKENS // 2) for name in NAMES[:2])))
    assert make_page(as_short, strategy, QUERY, Budget(), hint="ask anew").nodes


def test_a_short_answer_names_as_many_sections_as_fit() -> None:
    titles = ("One", "Two", "Three", 61 * "F")
    text = f"---\nname: {61 * 'n'}\n---\n" + "".join(f"# {title}\n\n{words(title, 60)}\n" for title in titles)
    page_renderer, strategy, head = renderer(index_of(text)), Doubts(1), f"\n\n{59 * 'n'}…\n"
    strategy.covered = LEAST_FOR_PAGE - 0.001
    least = make_page(page_renderer, strategy, QUERY, Budget(max_tokens=1), hint="ask").least_tokens or 0
    named = ["", "", "", "One; …", "One; Two; …", f"One; Two; Three; {59 * 'F'}…"]
    for more, sections in enumerate(named):
        short = make_page(page_renderer, strategy, QUERY, Budget(max_tokens=least + more), hint="ask")
        assert short.text.endswith(f"{head}Sections: {sections}\n" if sections else head)
    less = make_page(page_renderer, strategy, QUERY, Budget(max_tokens=least - 1), hint="ask")
    assert (less.text, less.least_tokens, less.covered) == ("", least, strategy.covered)
    # one that is longer by itself than others may be
    long = make_page(page_renderer, strategy, QUERY, Budget(), hint="ask " * 150)
    same = make_page(page_renderer, strategy, QUERY, Budget(max_tokens=long.tokens), hint="ask " * 150)
    assert same.text == long.text > ""


def test_a_page_that_shows_everything_suffices_and_one_without_picks_does_not(index: SkillIndex) -> None:
    every = range(len(index.nodes))
    assert make_page(renderer(index), Estimates(*every), QUERY, Budget()).sufficiency == 1.0
    assert make_page(renderer(index), Picks(*every), QUERY, Budget()).sufficiency is None
    assert make_page(renderer(index), Estimates(), QUERY, Budget()).sufficiency == 0.0
    assert make_page(renderer(index), Picks(), QUERY, Budget()).sufficiency is None


@pytest.mark.parametrize("limit", [None, 242, 243])
def test_a_skill_within_the_ceiling_is_whole(index: SkillIndex, limit: int | None) -> None:
    assert index.full_tokens == 242
    for strategy, chance in ((Picks(1), None), (Estimates(1), 1.0)):
        page = make_page(renderer(index), strategy, QUERY, Budget(1, limit, fill=True), whole=Full())
        assert (page.text, page.complete, page.sufficiency) == (TEXT, True, chance)
        assert page.selection is not None
        assert (page.selection.strategy, page.selection.budget) == ("full", Budget(6, limit, fill=True))
        assert len(page.selection.picks) == 6


@pytest.mark.parametrize(
    ("limit", "style", "whole"),
    [
        *((241, Style.MARKED, Full()), (242, Style.PLAIN, Full()), (None, Style.PLAIN, Full())),
        (242, Style.XML, Full()),  # the tags are words, too
        *((None, Style.MARKED, None), (1000, Style.MARKED, None)),
    ],
)
def test_otherwise_the_strategy_selects(
    index: SkillIndex, limit: int | None, style: Style, whole: Full | None
) -> None:
    page = make_page(renderer(index, style=style), Picks(1), QUERY, Budget(1, limit), whole=whole)
    assert (shown(page), page.complete) == ([1], False)
    assert page.selection is not None
    assert (page.selection.strategy, page.selection.budget) == ("picks", Budget(1, limit))


def test_the_legend_names_the_skill_unless_its_command_or_element_does() -> None:
    index = index_of(words("Alpha", 40), words("Bravo", 40))
    for style, part_tag, about in (
        (Style.MARKED, None, "a skill"),
        (Style.MARKED, "", 'skill "skill"'),
        (Style.XML, "", "a skill"),
    ):
        page_renderer = PageRenderer(index, Words(), style=style, show="show skill", part_tag=part_tag)
        legend = f"[Page of {about}. […] = omitted lines; read: show skill refs/b.md:L1]"
        assert legend in page_renderer.render([0]).text


# ---- a whole skill, and what the reader has of it


@pytest.mark.parametrize("style", list(Style))
def test_a_whole_skill_within_its_ceiling_is_all_of_it(index: SkillIndex, style: Style) -> None:
    page_renderer = renderer(index, style=style)
    whole = page_renderer.render(range(6))
    assert make_whole(page_renderer, (), None) == whole
    assert make_whole(page_renderer, (), whole.tokens) == whole
    less = make_whole(page_renderer, (), whole.tokens - 1)
    assert shown(less) == [0, 1, 2, 3, 4]
    assert less == page_renderer.render(range(5))


def test_the_rest_of_a_skill_is_its_beginning_without_what_the_reader_has(index: SkillIndex) -> None:
    page_renderer = renderer(index)
    rest = page_renderer.knowing(frozenset({0, 2})).render([1, 3, 4, 5])
    assert make_whole(page_renderer, ["n0", "n2", "n9"], None) == rest
    assert make_whole(page_renderer, ["n0", "n2"], rest.tokens) == rest
    less = make_whole(page_renderer, ["n0", "n2"], rest.tokens - 1)
    assert less == page_renderer.knowing(frozenset({0, 2})).render([1, 3, 4])
    none = page_renderer.knowing(frozenset({0, 2})).render([])
    first = page_renderer.knowing(frozenset({0, 2})).render([1])
    fewer = make_whole(page_renderer, ["n0", "n2"], none.tokens)
    assert fewer == replace(none, least_tokens=first.tokens)
    nothing = make_whole(page_renderer, ["n0", "n2"], none.tokens - 1)
    assert nothing == replace(page_renderer.empty(None), least_tokens=first.tokens)
    assert (nothing.text, nothing.selection) == ("", None)


def test_plain_pages_show_what_the_reader_has(index: SkillIndex) -> None:
    plain = renderer(index, style=Style.PLAIN)
    assert make_whole(plain, ["n0", "n1"], None) == plain.render(range(6))
    assert make_whole(plain, ["n0", "n1"], 130) == plain.render([0, 1, 2])
    page = plain.render([0, 1, 2])
    assert leave_out(page, plain, ["n1"]) is page


def test_a_whole_skill_shows_a_node_whose_mark_is_as_long(index: SkillIndex) -> None:
    short = renderer(index_of(f"{TEXT}\n{words('Golf', 6)}\n\n{words('Hotel', 40)}\n"))
    whole = short.render(range(8))
    assert make_whole(short, ["n6"], whole.tokens) == whole


@pytest.mark.parametrize(("tokens", "marked"), [(5, True), (4, False), (3, False)])
def test_a_mark_stands_for_a_known_node_only_if_the_page_gets_shorter(tokens: int, marked: bool) -> None:
    page_renderer = renderer(index_of("\n\n".join([words("Short", tokens), TEXT, words("Last", 40)])))
    selection = Selection("picks", "what", (), (), Budget())
    page = replace(page_renderer.render([0, 1, 2, 5], selection=selection), sufficiency=0.5)
    known = page_renderer.knowing(frozenset({0})).render([1, 2, 5], selection=selection)
    assert known.tokens - page.tokens == 4 - tokens  # [… L1, sent earlier]
    assert leave_out(page, page_renderer, ["n0", "n3"]) == (
        replace(known, sufficiency=0.5) if marked else page
    )


def test_what_a_page_does_not_show_is_not_left_out(index: SkillIndex) -> None:
    page = renderer(index).render([0, 1])
    assert leave_out(page, renderer(index), ["n5", "x"]) is page
    assert leave_out(page, renderer(index), []) is page


# ---- as many nodes as fit


def sized(tokens: Sequence[int], tried: list[int]) -> Callable[[Sequence[int]], Page]:
    """Return a function that makes a page with so many tokens of so many nodes, and records how often."""

    def render(ordinals: Sequence[int]) -> Page:
        assert list(ordinals) == list(range(10, 10 + len(ordinals)))
        size = len(ordinals)
        tried.append(size)
        return Page(str(size), Style.MARKED, (), tokens[size], 0, True, (), complete=False, selection=None)

    return render


@settings(max_examples=30)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=40).map(lambda steps: list(accumulate(steps))), st.data()
)
def test_the_longest_beginning_that_fits_is_found_in_few_steps(
    tokens: list[int], data: st.DataObject
) -> None:
    limit = data.draw(st.integers(min(tokens), max(tokens)))
    tried: list[int] = []
    page = longest(sized(tokens, tried), range(10, 9 + len(tokens)), limit)
    assert int(page.text) == max(size for size, each in enumerate(tokens) if each <= limit)
    assert len(tried) <= 8


@settings(max_examples=30)
@example([5, 3, 9], 3)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=30), st.integers(0, 20))
def test_what_is_found_fits_also_if_a_longer_page_may_have_fewer_tokens(
    tokens: list[int], limit: int
) -> None:
    page = longest(sized(tokens, []), range(10, 9 + len(tokens)), limit)
    assert page.tokens <= limit or page.text == "0"
    if page.text == "0":
        assert page.least_tokens == tokens[1] > limit
    if tokens[-1] <= limit:
        assert int(page.text) == len(tokens) - 1

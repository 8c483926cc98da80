"""The shipped navigator: budgets, promises, required context, reasons, and a damaged model."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from index_builder import unit_rows
from messages import raises
from skillpager import SkillPager
from skillpager.errors import StrategyError
from skillpager.pages.assemble import NodeMeter
from skillpager.sections import sections_of
from skillpager.sequence_net import SequenceNet
from skillpager.strategies.navigator import model as module
from skillpager.strategies.navigator.features import COVERAGE_NAMES, GROUPS, NAMES, IndexFeatures, features_of
from skillpager.strategies.navigator.model import (
    FILE_WEIGHT,
    FOLDER_PRICE,
    SIZE_EXPONENT,
    TYPICAL_TOKENS,
    Limits,
    NeedModel,
    in_context,
    kinds_of,
    shipped_model,
)
from skillpager.strategies.navigator.strategy import (
    LEAN_BELOW,
    LEAST_CHANCE,
    MOST_TOKENS,
    Lean,
    Navigator,
    required_context,
)
from skillpager.strategies.picking import cosines
from skillpager.types import Budget, FloatArray, IndexNotes, ListContext, Query, SkillIndex, SkipReason
from strategy_cases import index_with, indifferent, ordinals, reasons, run

SAMPLE = SAMPLES / "postgres-backup"
QUERY = "restore one table from a dump"


def asked(pager: SkillPager, text: str = QUERY) -> Query:
    """Return a query as the pager embeds it."""
    return Query(text, pager.embed_query(text))


def test_it_is_the_default_and_says_what_it_promises(pager: SkillPager) -> None:
    context = pager.page(SAMPLE, QUERY)
    assert context.selection is not None
    assert context.selection.strategy == "navigator"
    assert set(reasons(context.selection).values()) == {SkipReason.BELOW_THRESHOLD}
    assert context.sufficiency is not None
    assert "pg_restore" in context.text


def test_of_large_skills_likely_sections_are_read(pager: SkillPager, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pager.page(SAMPLE, QUERY)
    most = len(pager.index(SAMPLE).nodes) // 2
    monkeypatch.setattr(module, "MOST_READ_NODES", most)
    page = pager.page(SAMPLE, QUERY)
    assert page.selection is not None
    entries = [*page.selection.picks, *page.selection.skipped]
    assert sum(entry.marginal > 0 for entry in entries) <= most
    assert page.nodes[0].id in {node.id for node in whole.nodes}
    assert "pg_restore" in page.text
    assert sum(pager.reasons(SAMPLE, QUERY)[page.nodes[0].id].values()) == pytest.approx(1, abs=0.01)


def test_of_equal_sections_the_network_reads_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_READ_NODES", 30)
    best = np.resize([0.0] * 8 + [1.0] * 8, (45, 1))
    monkeypatch.setattr(SequenceNet, "linear", lambda *_: best)
    read = shipped_model()._likely(IndexFeatures(index_with(count=45)), best)
    assert read.tolist() == [*range(17), *range(24, 32), *range(40, 45)]


def test_a_higher_promise_adds_to_the_page(pager: SkillPager) -> None:
    index, query = pager.index(SAMPLE), asked(pager)
    picked: list[list[int]] = []
    for target in (0.3, 0.6, 0.9, 0.99):
        selection = run(Navigator(), index, query.embedding, text=QUERY, sufficiency=target)
        assert set(reasons(selection).values()) <= {SkipReason.SUFFICIENCY}
        chance = selection.picks[-1].sufficiency
        assert chance is not None
        assert chance >= target or len(selection.picks) == len(index.nodes)
        picked.append(ordinals(selection))
    for smaller, larger in pairwise(picked):
        assert larger[: len(smaller)] == smaller
    assert len(picked[0]) < len(picked[-1])


@given(limit=st.integers(0, 600))
@settings(max_examples=25, deadline=None)
def test_max_tokens_is_a_ceiling_that_is_filled(pager: SkillPager, limit: int) -> None:
    context = pager.page(SAMPLE, QUERY, max_tokens=limit)
    assert context.tokens <= limit
    larger = pager.page(SAMPLE, QUERY, max_tokens=2 * limit)
    assert (larger.sufficiency or 0) >= (context.sufficiency or 0)


def test_when_the_ceiling_cuts_the_page_says_what_it_bought(pager: SkillPager) -> None:
    free = pager.page(SAMPLE, QUERY, sufficiency=0.95)
    cut = pager.page(SAMPLE, QUERY, sufficiency=0.95, max_tokens=free.tokens // 2)
    assert cut.tokens <= free.tokens // 2
    assert cut.sufficiency is not None
    assert cut.sufficiency < 0.95
    assert free.complete or (free.sufficiency or 0) >= 0.95


def test_a_skill_that_fits_the_ceiling_passes_through_whole_and_surely_suffices(pager: SkillPager) -> None:
    context = pager.page(SAMPLE, QUERY, max_tokens=10**6, fill=True)
    assert context.complete
    assert context.sufficiency == 1.0


def test_the_budget_is_told_as_it_was_given(pager: SkillPager) -> None:
    every = len(pager.index(SAMPLE).nodes)
    limits = {"max_nodes": 3, "max_tokens": 900, "sufficiency": 0.8, "fill": True}
    for name, value in limits.items():
        selection = pager.page(SAMPLE, QUERY, **{name: value}).selection  # type: ignore[arg-type]
        assert selection is not None
        assert selection.budget == replace(Budget(every), **{name: value})  # type: ignore[arg-type]


def test_no_node_no_pick(pager: SkillPager) -> None:
    context = pager.page("---\nname: e\ndescription: e\n---\n# Only a heading\n", QUERY)
    assert context.nodes == ()
    assert run(Navigator(), index_with(count=0), np.zeros(8, np.float32)).picks == ()


@pytest.mark.parametrize("text", ["x", "表を復元する", "?!", "word " * 3000, "\udcff half a character"])
def test_any_query_gets_a_page(pager: SkillPager, text: str) -> None:
    context = pager.page(SAMPLE, text)
    assert context.sufficiency is not None


# ---- the walk, step by step


# weights and bias of a chance that falls with what is left and rises with what is shown
CHANCE = np.array([-0.5, -0.5, 0.4, 0.2, -0.1, 0.1, 0.3, -0.2]), 0.5


NO_BREADTH = np.zeros(8, np.float32), 0.0


class Told(NeedModel):
    """The shipped model with needs, price and calibration that a test tells."""

    def __init__(self, known: FloatArray, *, chance: bool = False, price: float = 0.0) -> None:
        shipped = shipped_model()
        every = (np.stack([CHANCE[0]] * 3), np.array([CHANCE[1]] * 3)) if chance else None
        prices = np.full((2, 3), max(price, 1e-12))
        super().__init__(shipped.net, shipped.embedding, shipped.scale, Limits(every, prices), NO_BREADTH)
        object.__setattr__(self, "known", known)

    def breadth_of(self, query: Query) -> float:
        """Return even odds, whatever the length of an embedding is."""
        return 0.0

    def needs(self, known: IndexFeatures, query: Query) -> FloatArray:
        """Return what was told."""
        found: FloatArray = vars(self)["known"]
        return found


@dataclass
class PlainWalk:
    """The navigator as its module describes it, each number made anew at each step."""

    navigator: Navigator
    index: SkillIndex
    needs: FloatArray
    gap: float
    limits: Budget
    calibrated: bool
    picks: list[tuple[int, float]] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)
    counted: int = 0

    def run(self) -> SkipReason:
        """Pick, and return why the walk ends."""
        limits, most = self.limits, len(self.needs)
        self.weights = [-math.log1p(-need) for need in self.needs.tolist()]
        self.required = required_context(self.index.nodes, sections_of(self.index))
        if limits.sufficiency is None and not limits.fill:
            most = self.best_length()
        while left := [node for node in range(len(self.weights)) if self.is_open(node)]:
            best = max(left, key=lambda node: (self.value(node), -node))
            if limits.max_nodes is not None and self.counted >= limits.max_nodes:
                return SkipReason.MAX_NODES
            if limits.sufficiency is not None and self.picks and self.chance() >= limits.sufficiency:
                return SkipReason.SUFFICIENCY
            if self.picks and len(self.picks) + len(self.refused) >= most:
                return SkipReason.BELOW_THRESHOLD
            self.pick(best, counts=True)
        return SkipReason.MAX_TOKENS

    def best_length(self) -> int:
        """Return how many picks are worth most: the chance less the price of the tokens."""
        whole = replace(self, limits=Budget(fill=True), picks=[], refused=set())
        worths: dict[int, float] = {}
        larger = max(1, self.index.full_tokens) / TYPICAL_TOKENS
        price = float(self.navigator._model.limits.price[1, 0]) * larger**-SIZE_EXPONENT
        whole.weights, whole.required = self.weights, self.required
        while left := [node for node in range(len(self.weights)) if whole.is_open(node)]:
            whole.pick(max(left, key=lambda node: (whole.value(node), -node)), counts=True)
            if whole.chance() >= LEAST_CHANCE:
                worths[len(whole.picks)] = round(whole.chance() - price * whole.size(), 9)
        return max(worths, key=lambda length: (worths[length], -length), default=len(whole.picks))

    def is_open(self, node: int) -> bool:
        return node not in self.refused and node not in self.shown()

    def shown(self) -> list[int]:
        return [node for node, _ in self.picks]

    def tokens(self) -> int:
        return sum(self.index.nodes[node].tokens for node in self.shown())

    def size(self) -> int:
        # a node counts as one token at least
        return sum(max(1, self.index.nodes[node].tokens) for node in self.shown())

    def chance(self) -> float:
        left = [weight for node, weight in enumerate(self.weights) if node not in self.shown()]
        if not self.calibrated:
            return math.exp(-sum(left))
        of_page = (sum(left), max(left, default=0.0), self.size())
        of_query = (max(self.weights), sum(self.weights), self.index.full_tokens, 2)
        signals = [*(math.log(max(signal, 1e-6)) for signal in of_page + of_query), 0.0]
        odds = CHANCE[1] + sum(weight * signal for weight, signal in zip(CHANCE[0], signals, strict=True))
        return 1 / (1 + math.exp(-min(30.0, max(-30.0, odds))))

    def value(self, node: int) -> float:
        beside = len({node - 1, node + 1} & set(self.shown()))
        cost = max(1, self.index.nodes[node].tokens) + self.gap * (1 - beside)
        value: float = self.weights[node] / np.float64(max(cost, 1.0)) ** self.navigator.cost_exponent
        return value

    def pick(self, node: int, *, counts: bool) -> None:
        tokens = self.tokens() + self.index.nodes[node].tokens
        if self.limits.max_tokens is not None and tokens > self.limits.max_tokens:
            self.refused.add(node)
            return
        self.picks.append((node, 0.0))
        self.picks[-1] = (node, self.chance())
        self.counted += counts
        for other in self.required.get(node, ()) if self.navigator.closure else ():
            if self.is_open(other):
                self.pick(other, counts=False)


NODES = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.01, 0.1, 0.3, 0.3, 0.9, 0.999]),  # need
        st.sampled_from([0, 3, 3, 10, 40]),  # tokens
        st.integers(0, 3),  # kind: nodes of one kind are twins
        st.none() | st.integers(0, 11),  # a node that it cannot be read without
    ),
    min_size=1,
    max_size=12,
)
LIMITS = st.builds(
    Budget,
    max_nodes=st.none() | st.integers(0, 12),
    max_tokens=st.none() | st.integers(0, 150),
    sufficiency=st.none() | st.sampled_from([0.305, 0.745, 0.885, 0.985]),  # no chance of these needs
    fill=st.booleans(),
)


@given(
    nodes=NODES,
    limits=LIMITS | st.just(Budget()),
    gap=st.integers(0, 20),
    opening=st.sampled_from([0.0, 12.0]),
    chance=st.booleans(),
    price=st.sampled_from([0.0, 0.0009, 0.0037, 0.021, 0.37]),
    closure=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_the_walk_takes_what_is_worth_most_per_token_with_what_it_needs(
    nodes: list[tuple[float, int, int, int | None]],
    limits: Budget,
    gap: int,
    opening: float,
    chance: bool,
    price: float,
    closure: bool,
) -> None:
    needs = np.array([need for need, *_ in nodes], np.float64)
    kinds = unit_rows(4, 8, seed=3)[[kind for *_, kind, _ in nodes]]
    index = index_with(kinds, tokens=[tokens for _, tokens, *_ in nodes])
    spans = [node.span for node in index.nodes]
    leads = [ListContext("", spans[to % len(spans)], 0, 1) if to is not None else None for *_, to in nodes]
    listed = (replace(node, list_context=lead) for node, lead in zip(index.nodes, leads, strict=True))
    index = replace(index, nodes=tuple(listed))
    navigator = Lean(model=Told(needs, chance=chance, price=price), opening_tokens=opening, closure=closure)
    walk = PlainWalk(navigator, index, needs, max(float(gap), opening), limits, chance)
    reason = walk.run()
    meter = NodeMeter(index.nodes, gap_tokens=gap)
    selection = navigator.select(index, Query("q", kinds[0]), budget=limits, meter=meter)
    assert ordinals(selection) == walk.shown()
    assert [pick.sufficiency for pick in selection.picks] == pytest.approx([found for _, found in walk.picks])
    assert [pick.marginal for pick in selection.picks] == pytest.approx(needs[walk.shown()].tolist())
    left = {node: reason for node in range(len(nodes)) if node not in walk.shown()}
    assert reasons(selection) == left | dict.fromkeys(walk.refused, SkipReason.MAX_TOKENS)
    shown, found = walk.shown(), cosines(index.embeddings, index.embeddings.T)
    for rank, pick in enumerate([*selection.picks, *selection.skipped]):
        before = [found[node, pick.node.ordinal] for node in shown[:rank]]
        assert pick.redundancy == pytest.approx(max([0.0, *before]), abs=2e-6)


def test_a_target_that_is_just_reached_is_reached() -> None:
    index = index_with(tokens=[1] * 4)
    navigator = Navigator(model=Told(np.array([0.9, 0.8, 0.7, 0.5])), opening_tokens=0.0)
    chance = run(navigator, index, max_nodes=4).picks[1].sufficiency
    assert ordinals(run(navigator, index, sufficiency=chance)) == [0, 1]


def picked_at(price: float, needs: list[float], tokens: Sequence[int] = ()) -> list[int]:
    """Return what is picked of nodes, by default of ten tokens each, with a price for each token."""
    index = index_with(tokens=tokens or [10] * len(needs))
    model = Told(np.array(needs), price=price * (max(1, index.full_tokens) / TYPICAL_TOKENS) ** SIZE_EXPONENT)
    return ordinals(run(Lean(model=model, opening_tokens=0.0), index))


@pytest.mark.parametrize(
    # the chance is 0.504 with one node, and grows by 0.216, 0.18 and 0.1
    ("price", "length"),
    [(0.0099, 4), (0.0101, 3), (0.0179, 3), (0.0181, 2), (0.0215, 2), (0.0216, 1), (9.0, 1)],
)
def test_a_page_ends_where_more_tokens_cost_more_than_they_add(price: float, length: int) -> None:
    assert len(picked_at(price, [0.9, 0.3, 0.2, 0.1])) == length


def test_a_page_rather_suffices_than_not_whatever_its_tokens_cost() -> None:
    # the chance is 0.02 with one node, 0.12 with two, 0.6 with three
    assert picked_at(9.0, [0.9, 0.8, 0.8, 0.4]) == [0, 1, 2]


def test_a_page_may_cost_more_than_any_chance_if_a_shorter_one_is_worth_even_less() -> None:
    # 0.55 - 3 * 0.37 with the second node alone, 1 - 4 * 0.37 with both
    assert picked_at(0.37, [0.45, 0.999], [1, 3]) == [1, 0]


def test_a_page_that_would_save_little_is_the_whole_skill() -> None:
    needs = np.array([0.9, 0.8, 0.7, 0.6, 0.01, 0.01])
    # four of six nodes and a mark are 79.8 or 80 %; of small nodes a mark alone takes the place of one
    for tokens, length in (([100] * 4 + [58, 58], 4), ([100] * 4 + [57, 58], 6), ([10] * 6, 6)):
        index = replace(index_with(tokens=tokens), full_tokens=sum(tokens))
        price = 0.02 * (max(1, index.full_tokens) / TYPICAL_TOKENS) ** SIZE_EXPONENT
        model = Told(needs, price=price)
        assert len(run(Lean(model=model), index).picks) == 4
        assert len(run(Navigator(model=model), index).picks) == length
        target = run(Lean(model=model), index).picks[-1].sufficiency
        assert len(run(Lean(model=model), index, sufficiency=target).picks) == 4
        assert len(run(Navigator(model=model), index, sufficiency=target).picks) == length
        assert len(run(Navigator(model=model), index, max_nodes=9).picks) == length
    # not under a ceiling that the skill does not fit, nor with a smaller number of nodes
    assert len(run(Navigator(model=model), index, max_tokens=51).picks) == 4
    assert len(run(Navigator(model=model), index, max_nodes=5).picks) == 4


@pytest.mark.parametrize("tokens", [[4000] * 4, [9000] * 2])
def test_a_page_without_limits_ends_at_so_many_tokens(tokens: list[int]) -> None:
    index = replace(index_with(tokens=tokens), full_tokens=10 * sum(tokens))
    needs = np.full(len(tokens), 0.3)  # no page suffices rather than not
    most = (MOST_TOKENS[0] + MOST_TOKENS[2]) // 2  # half short, half broad
    assert len(run(Navigator(model=Told(needs)), index).picks) == max(1, most // tokens[0])
    assert len(run(Navigator(model=Told(needs)), index, fill=True).picks) == len(tokens)


def test_a_query_that_is_not_answered_gets_a_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for covered, length in (None, 12), (LEAN_BELOW, 12), (LEAN_BELOW - 0.01, 1):
        monkeypatch.setattr(Told, "covered", lambda *_, covered=covered: covered)
        found = run(Navigator(model=Told(np.full(12, 0.3), price=0.001)), index_with(tokens=[100] * 12))
        assert (len(found.picks), found.covered) == (length, covered)


def test_what_a_pick_requires_comes_on_top_of_the_picks() -> None:
    index = index_with(tokens=[10] * 4)
    item = replace(index.nodes[3], list_context=ListContext("", index.nodes[0].span, 0, 1))
    index = replace(index, nodes=(*index.nodes[:3], item))
    found = run(Navigator(model=Told(np.array([0.1, 0.2, 0.3, 0.9]))), index, max_nodes=2)
    assert ordinals(found) == [3, 0, 2]
    assert [(pick.tokens, pick.total_tokens) for pick in found.picks] == [(10, 10), (10, 20), (10, 30)]


# ---- redundancy, units, price


def test_a_node_that_closes_a_gap_costs_less() -> None:
    index = index_with(tokens=[20] * 4)
    navigator = Navigator(model=Told(np.array([0.9, 0.5, 0.9, 0.52])), opening_tokens=12.0)
    assert ordinals(run(navigator, index, max_nodes=4)) == [0, 2, 1, 3]
    # by the price of one gap, not of two
    weighed = replace(navigator, model=Told(-np.expm1([-2.3, -0.5, -2.3, -1.0])))
    assert ordinals(run(weighed, index, max_nodes=4)) == [0, 2, 3, 1]
    first = replace(navigator, model=Told(np.array([0.5, 0.9, 0.1, 0.52])))
    assert ordinals(run(first, index, max_nodes=4)) == [1, 0, 3, 2]


# ---- reasons


@pytest.mark.parametrize("skill", [SAMPLE, SAMPLE.with_name("git-bisect")])
def test_reasons_are_shares_of_the_signals(pager: SkillPager, skill: Path) -> None:
    told = pager.reasons(skill, QUERY)
    assert set(told) == {node.id for node in pager.index(skill).nodes}
    for shares in told.values():
        assert list(shares) == list(GROUPS)
        assert sum(shares.values()) == pytest.approx(1, abs=0.01) or sum(shares.values()) == 0


def test_a_reason_is_what_the_log_odds_lose_with_average_features(pager: SkillPager) -> None:
    index, model = pager.index(SAMPLE), shipped_model()
    known, query = IndexFeatures(index), asked(pager)
    features, average = features_of(known, query), model.net.arrays["0.mean"]

    def log_odds(of: FloatArray) -> FloatArray:
        sections = known.section.member
        return in_context(model.net.logits(of, sections)[:, 0], sections, known.file.member)

    lost = []
    for group, names in GROUPS.items():
        columns, without = [NAMES.index(name) for name in names], features.copy()
        without[:, columns] = 0 if group == "notes" else average[columns]
        lost.append(np.maximum(log_odds(features) - log_odds(without), 0))
    expected = np.array(lost) / np.sum(lost, axis=0)
    told = model.reasons(known, query)
    assert np.array([list(shares.values()) for shares in told]) == pytest.approx(expected.T, abs=6e-4)
    assert all(abs(1000 * share - round(1000 * share)) < 1e-3 for shares in told for share in shares.values())
    assert {*indifferent().reasons(known, query)[0].values()} == {0.0}


def test_sections_and_files_move_the_logits_of_their_nodes() -> None:
    logits, sections = np.array([1.0, 3.0, -1.0, 0.5], np.float32), np.array([0, 0, 1, 2])
    in_one = in_context(logits, sections, np.zeros(4, np.intp))
    assert in_one.tolist() == [2.0, 4.0, -1.5, 0.75]
    moved = in_context(logits, sections, np.array([0, 0, 1, 2]))
    assert moved.tolist() == pytest.approx([2.0, 4.0, -1.5 - FILE_WEIGHT * 5.5, 0.75 - FILE_WEIGHT * 3.25])


def test_reasons_add_up_however_little_they_count() -> None:
    index = index_with()
    told = indifferent(1e-3).reasons(IndexFeatures(index), Query("q", index.embeddings[0]))
    assert max(sum(shares.values()) for shares in told) == pytest.approx(1, abs=0.01)


# ---- which strategy is the default, and wrong targets


def test_lambda_and_another_encoder_mean_mmr(pager: SkillPager, sample_pager: SkillPager) -> None:
    for context in (pager.page(SAMPLE, QUERY, mmr_lambda=0.9), sample_pager.page(SAMPLE, QUERY)):
        assert context.selection is not None
        assert context.selection.strategy == "mmr"


def test_with_another_encoder_it_reads_its_own_rows(pager: SkillPager, sample_pager: SkillPager) -> None:
    own, other = (each.page(SAMPLE, QUERY, strategy="navigator") for each in (pager, sample_pager))
    assert own.text == other.text
    assert own.sufficiency == other.sufficiency


def test_rows_that_nobody_makes_are_told(pager: SkillPager) -> None:
    model = shipped_model()
    foreign = Navigator(model=replace(model, embedding="someone's/bare"))
    with raises(StrategyError):
        pager.page(SAMPLE, QUERY, strategy=foreign)


# ---- the model's file


def model_of(**changed: object) -> NeedModel:
    """Return the model of a file with the shipped networks and other numbers."""
    net = {f"net.{name}": array for name, array in shipped_model().net.arrays.items()}
    numbers = {
        "scale": [2.0, -1.0],
        "chance.weight": np.stack([CHANCE[0], -CHANCE[0], 2 * CHANCE[0]]),
        "chance.bias": [0.5, -0.5, 1.0],
        "price": [[0.5, 0.25, 0.125], [0.8, 0.4, 0.2]],
        "broad.weight": [1.0, 0.0],
        "broad.bias": -30.0,
        "embedding": "e/bare",
        "signals": NAMES,
    }
    return NeedModel.of({name: np.array(value) for name, value in (net | numbers | changed).items()})


def test_a_file_holds_networks_and_calibration() -> None:
    model, shipped = model_of(), shipped_model()
    assert (model.embedding, model.scale) == ("e/bare", (2, -1))
    assert model.limits.price.tolist() == [[0.5, 0.25, 0.125], [0.8, 0.4, 0.2]]
    assert (model.breadth[0].tolist(), model.breadth[1], model.topics) == ([1, 0], -30, None)
    assert shipped.topics is not None
    assert model.limits.chance is not None
    assert shipped.limits_with_notes is not None
    assert shipped.limits_with_notes.price.tolist() != shipped.limits.price.tolist()
    assert [model.limits.chance[0].tolist(), model.limits.chance[1].tolist()] == [
        [CHANCE[0].tolist(), (-CHANCE[0]).tolist(), (2 * CHANCE[0]).tolist()],
        [0.5, -0.5, 1.0],
    ]
    assert {name: array.tolist() for name, array in model.net.arrays.items()} == {
        name: array.tolist() for name, array in shipped.net.arrays.items()
    }


def test_a_file_may_hold_the_regression_of_coverage() -> None:
    assert model_of().coverage is None
    weight = np.arange(len(COVERAGE_NAMES), dtype=np.float64)
    found = model_of(**{"covered.weight": weight, "covered.bias": 0.5}).coverage
    assert found is not None
    assert (found[0].tolist(), found[1]) == (weight.tolist(), 0.5)
    with pytest.raises(ValueError, match=r"^its coverage"):
        model_of(**{"covered.weight": weight[1:], "covered.bias": 0.5})


def test_a_model_of_other_features_is_refused() -> None:
    with raises(ValueError):
        model_of(signals=[*NAMES[1:], NAMES[0]])


def test_needs_are_calibrated_in_millionths_and_never_certain() -> None:
    needs = model_of().calibrated(np.array([0.5, 0.0, 1.0, 40, -40], np.float32))
    assert needs.tolist() == pytest.approx([0.5, 0.268941, 0.731059, 0.999999, 0], abs=1e-9)


def test_the_chance_of_sufficiency_follows_from_what_is_left_out_and_shown() -> None:
    query, needs = Query("restart the server", np.zeros(2, np.float32)), np.array([0.5, 0.9, 0.1])
    independent = replace(model_of().limits, chance=None).odds_of(query, needs, 400, -30)
    assert independent.chance(1.5, 1.0, 80) == pytest.approx(math.exp(-1.5), rel=1e-12)
    total = -np.log1p(-needs).sum()
    signals = np.append(np.log([0.2, 0.1, 80, -math.log1p(-0.9), total, 400, 3]), -30)
    odds = model_of().limits.odds_of(query, needs, 400, -30)
    assert odds.chance(0.2, 0.1, 80) == pytest.approx(1 / (1 + math.exp(-0.5 - CHANCE[0] @ signals)), 1e-9)
    # a weight of nothing counts as a millionth
    assert odds.chance(0.0, 0.0, 80) == odds.chance(1e-6, 1e-6, 80)
    assert 0 < odds.chance(1e9, 1e9, 0) < odds.chance(1e-6, 1e-6, 10**9) < 1


def test_the_odds_of_long_queries_have_weights_of_their_own() -> None:
    needs, row = np.array([0.5, 0.9, 0.1]), np.zeros(2, np.float32)
    assert model_of().limits.odds_of(Query(words_of(27), row), needs, 400, -30).left == -CHANCE[0][0]
    middle = model_of().limits.odds_of(Query(words_of(12), row), needs, 400, -30).left
    assert CHANCE[0][0] < middle < -CHANCE[0][0]


def test_more_terms_than_the_models_learned_from_change_no_chance() -> None:
    needs, row = np.array([0.5, 0.9, 0.1]), np.zeros(2, np.float32)
    odds = [model_of().limits.odds_of(Query(words_of(each), row), needs, 400, -30) for each in (35, 36, 60)]
    assert odds[0] != odds[1] == odds[2]


def test_a_broad_query_has_odds_and_a_price_of_its_own_unless_it_is_long() -> None:
    needs, row, limits = np.array([0.5, 0.9, 0.1]), np.zeros(2, np.float32), model_of().limits
    short, long = Query("set up everything", row), Query(words_of(27), row)
    assert limits.odds_of(short, needs, 400, 30).left == pytest.approx(2 * CHANCE[0][0])
    assert limits.price_of(kinds_of(short, 30), 2000, lean=False) == pytest.approx(0.125)
    assert limits.odds_of(long, needs, 400, 30).left == -CHANCE[0][0]
    assert limits.price_of(kinds_of(long, 30), 2000, lean=False) == pytest.approx(0.25)


def test_a_query_is_broad_by_its_embedding(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(**{"broad.weight": [2.0, 1.0], "broad.bias": 0.5})
    assert model.breadth_of(Query("x", np.array([0.6, -0.8], np.float32))) == pytest.approx(0.9)
    for odds in 0.0, 0.1:
        monkeypatch.setattr(Told, "breadth_of", lambda *_, odds=odds: odds)
        assert run(Navigator(model=Told(np.full(12, 0.3))), index_with()).broad is (odds > 0)


def test_pages_with_notes_have_limits_of_their_own(pager: SkillPager) -> None:
    index = pager.index(SAMPLE)
    first, even = np.zeros(1, np.intp), (np.zeros((3, 8)), np.zeros(3))
    noted = replace(index, notes=IndexNotes(first, index.embeddings[:1], first, np.zeros((0, 2), np.intp)))
    shown = []
    for each in (index, noted):
        told = Told(np.full(len(index.nodes), 0.001))
        object.__setattr__(told, "limits_with_notes", Limits(even, np.full((2, 3), 1.0)))
        shown.append(len(run(Navigator(model=told), each, index.embeddings[0]).picks))
    assert shown == [len(index.nodes), 1]


def test_chances_of_other_signals_are_refused() -> None:
    with raises(ValueError):
        model_of(**{"chance.weight": np.zeros((2, 3))})


def test_a_damaged_model_says_how_to_mend_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models" / "navigator").mkdir(parents=True)
    monkeypatch.setattr(module, "__file__", str(tmp_path / "strategies" / "navigator" / "model.py"))
    path = tmp_path / module.MODEL
    for content in (None, b"no zip", b"PK\x03\x04 cut"):
        if content is not None:
            path.write_bytes(content)
        with raises(StrategyError):
            shipped_model.__wrapped__()
    np.savez(path, signals=np.array(["other"]))
    with raises(StrategyError):
        shipped_model.__wrapped__()


def test_the_card_tells_what_training_found() -> None:
    folder = Path(module.__file__).parents[2] / Path(module.MODEL).parent
    scores = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    card = " ".join((folder / "README.md").read_text(encoding="utf-8").split())
    for series in ("long", "short"):
        assert f"{scores['ranking'][series]['auc']:.3f}" in card
        assert scores["ranking"][series]["auc"] >= 0.9
    assert f"{scores['covered']['auc']:.3f}" in card


def words_of(count: int) -> str:
    """Return so many different words."""
    return " ".join([first * 3 + second * 3 for first in "bcdfgpqr" for second in "hjklmnvwxyztu"][:count])


@pytest.mark.parametrize(("terms", "price"), [(1, 0.5), (5, 0.5), (27, 0.25), (100, 0.25)])
def test_tokens_of_a_page_for_a_short_query_have_a_price_of_their_own(terms: int, price: float) -> None:
    kinds, limits = kinds_of(Query(words_of(terms), np.zeros(2, np.float32)), -30), model_of().limits
    assert limits.price_of(kinds, 2000, lean=False) == pytest.approx(price)
    assert limits.price_of(kinds, 2000, lean=True) == pytest.approx(1.6 * price)
    # a larger skill has cheaper tokens
    assert limits.price_of(kinds, 8000, lean=False) == pytest.approx(price / 4**SIZE_EXPONENT)
    # and so has one of several files
    of_folder = limits.price_of(kinds, 2000, lean=False, several=True)
    assert of_folder == pytest.approx(price * FOLDER_PRICE[0, int(terms > 5)])

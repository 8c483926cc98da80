"""The shipped navigator: budgets, promises, required context, reasons, and a damaged model."""

import json
from dataclasses import replace
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
from skillpager.errors import SettingsError, StrategyError
from skillpager.pages.render import NodeMeter
from skillpager.settings import Settings
from skillpager.strategies.navigator import model as module
from skillpager.strategies.navigator.features import GROUPS
from skillpager.strategies.navigator.model import shipped_model
from skillpager.strategies.navigator.strategy import COST_EXPONENT, Navigator
from skillpager.types import Budget, Query, SkipReason
from strategy_cases import index_with, indifferent, ordinals, reasons, run

SAMPLE = SAMPLES / "postgres-backup"
QUERY = "restore one table from a dump"


def asked(pager: SkillPager, text: str = QUERY) -> Query:
    """Return a query as the pager embeds it."""
    return Query(text, pager.embed_query(text))


def test_it_reads_what_the_default_encoder_makes(pager: SkillPager) -> None:
    assert Navigator().embedding == f"{pager.encoder.id}/{pager.recipe.embedded_text}"


def test_it_is_the_default_and_says_what_it_promises(pager: SkillPager) -> None:
    context = pager.page(SAMPLE, QUERY)
    assert context.selection is not None
    assert context.selection.strategy == "navigator"
    assert set(reasons(context.selection).values()) == {SkipReason.BELOW_THRESHOLD}
    assert context.sufficiency is not None
    assert "pg_restore" in context.text


def test_relevance_is_the_cosine_and_the_marginal_value_the_need(pager: SkillPager) -> None:
    index, query = pager.index(SAMPLE), asked(pager)
    selection = run(Navigator(), index, query.embedding, text=query.text, max_nodes=len(index.nodes))
    assert len(selection.picks) == len(index.nodes)
    for pick in selection.picks:
        assert abs(pick.relevance - index.embeddings[pick.node.ordinal] @ query.embedding) < 2e-6
        assert 0 <= pick.marginal < 1
    first = selection.picks[0]
    assert first.marginal > np.median([pick.marginal for pick in selection.picks])


def test_the_chance_rises_with_every_pick(pager: SkillPager) -> None:
    index = pager.index(SAMPLE)
    selection = run(Navigator(), index, asked(pager).embedding, text=QUERY, max_nodes=len(index.nodes))
    chances = [pick.sufficiency for pick in selection.picks]
    assert chances == sorted(chances)  # type: ignore[type-var]
    assert all(chance is not None and 0 <= chance <= 1 for chance in chances)


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
    context = pager.page(SAMPLE, QUERY, max_tokens=10**6)
    assert context.complete
    assert context.sufficiency == 1.0


def test_max_nodes_bounds_the_picks_and_what_they_need_comes_on_top(pager: SkillPager) -> None:
    index, query = pager.index(SAMPLE), asked(pager)
    alone = run(Navigator(closure=False), index, query.embedding, text=QUERY, max_nodes=4)
    assert len(alone.picks) == 4
    assert set(reasons(alone).values()) == {SkipReason.MAX_NODES}
    closed = run(Navigator(), index, query.embedding, text=QUERY, max_nodes=4)
    assert len(closed.picks) >= 4


def test_the_budget_is_told_as_it_was_given(pager: SkillPager) -> None:
    every = len(pager.index(SAMPLE).nodes)
    limits = {"max_nodes": 3, "max_tokens": 900, "sufficiency": 0.8}
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


def test_same_inputs_same_selection(pager: SkillPager) -> None:
    index, query = pager.index(SAMPLE), asked(pager)
    first = run(Navigator(), index, query.embedding, text=QUERY, sufficiency=0.8)
    assert run(Navigator(), index, query.embedding, text=QUERY, sufficiency=0.8).picks == first.picks


SIZES = st.lists(st.sampled_from([0, 5, 10, 40]), min_size=1, max_size=30)


@given(sizes=SIZES, seed=st.integers(0, 50), alike=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_next_pick_is_worth_most_per_token_and_ties_go_to_the_earlier_node(
    sizes: list[int], seed: int, alike: bool
) -> None:
    index = index_with(unit_rows(len(sizes), 8, seed=seed), tokens=sizes)
    navigator = Navigator(model=indifferent() if alike else None, closure=False, opening_tokens=0.0)
    picks = run(navigator, index, max_nodes=len(sizes)).picks
    needs = np.array([pick.marginal for pick in sorted(picks, key=lambda pick: pick.node.ordinal)])
    assert not alike or len(set(needs)) == 1
    values = -np.log1p(-needs) / np.maximum(sizes, 1.0) ** COST_EXPONENT
    expected = sorted(range(len(sizes)), key=lambda ordinal: (-values[ordinal], ordinal))
    assert [pick.node.ordinal for pick in picks] == expected


# ---- redundancy, units, price


def test_a_node_that_opens_a_gap_costs_more() -> None:
    index = index_with(tokens=[20] * 4 + [5] + [20] * 7)
    navigator, query = Navigator(model=indifferent(), closure=False), Query("x", index.embeddings[0])
    marked, opened, free = (
        replace(navigator, opening_tokens=opening).select(
            index, query, budget=Budget(4), meter=NodeMeter(index.nodes, gap_tokens=gap)
        )
        for gap, opening in ((30, 0.0), (0, 30.0), (0, 0.0))
    )
    assert ordinals(free) == [4, 0, 1, 2]
    assert ordinals(marked) == ordinals(opened) == [4, 3, 2, 1]


def test_what_a_twin_says_is_worth_less(pager: SkillPager) -> None:
    line = "Run `pg_restore --table=orders` to restore one table from a dump."
    text = f"---\nname: t\ndescription: t\n---\n# A\n\n{line}\n\n# A\n\n{line}\n\n# B\n\nTables are nice.\n"
    index, query = pager.index(text), asked(pager)
    discounted = run(Navigator(twin_share=0.0), index, query.embedding, text=QUERY, max_nodes=3)
    assert discounted.picks[1].sufficiency == pytest.approx(discounted.picks[-1].sufficiency, abs=0.2)
    kept = run(Navigator(twin_share=1.0), index, query.embedding, text=QUERY, max_nodes=3)
    assert (discounted.picks[0].sufficiency or 0) >= (kept.picks[0].sufficiency or 0)


def test_a_pick_brings_what_it_cannot_be_read_without(pager: SkillPager) -> None:
    rows = "\n".join(f"| option{n} | {'what it does for a restore ' * 8} |" for n in range(9))
    text = f"---\nname: t\ndescription: t\n---\n# T\n\n| name | meaning |\n|---|---|\n{rows}\n"
    index, query = pager.index(text), asked(pager, "what does option7 do")
    selection = run(Navigator(), index, query.embedding, text=query.text, max_nodes=1)
    assert 0 in ordinals(selection)


def test_needs_of_a_query_are_kept_and_its_row_counts(pager: SkillPager) -> None:
    index, query = pager.index(SAMPLE), asked(pager)
    navigator = Navigator()
    first, again = (run(navigator, index, query.embedding, text=QUERY, max_nodes=5) for _ in range(2))
    assert first == again == run(Navigator(), index, query.embedding, text=QUERY, max_nodes=5)
    other = pager.embed_query("schedule nightly backups")
    assert run(navigator, index, other, text=QUERY, max_nodes=5) == run(
        Navigator(), index, other, text=QUERY, max_nodes=5
    )
    assert run(navigator, index, other, text=QUERY, max_nodes=5) != first
    # with another model nothing that was kept counts
    alike = run(replace(navigator, model=indifferent()), index, query.embedding, text=QUERY, max_nodes=5)
    assert len({pick.marginal for pick in alike.picks}) == 1


# ---- reasons


def test_reasons_are_shares_of_the_signals(pager: SkillPager) -> None:
    told = pager.reasons(SAMPLE, QUERY)
    assert set(told) == {node.id for node in pager.index(SAMPLE).nodes}
    for shares in told.values():
        assert list(shares) == list(GROUPS)
        assert sum(shares.values()) == pytest.approx(1, abs=0.01) or sum(shares.values()) == 0


def test_who_does_not_estimate_has_no_reasons(pager: SkillPager) -> None:
    assert pager.reasons(SAMPLE, QUERY, strategy="mmr") == {}
    assert pager.page(SAMPLE, QUERY, strategy="mmr").sufficiency is None


# ---- which strategy is the default, and wrong targets


def test_lambda_and_another_encoder_mean_mmr(pager: SkillPager, hashing_pager: SkillPager) -> None:
    for context in (pager.page(SAMPLE, QUERY, mmr_lambda=0.9), hashing_pager.page(SAMPLE, QUERY)):
        assert context.selection is not None
        assert context.selection.strategy == "mmr"


def test_with_another_encoder_it_still_reads_its_own_rows(
    pager: SkillPager, hashing_pager: SkillPager
) -> None:
    own, other = (each.page(SAMPLE, QUERY, strategy="navigator") for each in (pager, hashing_pager))
    assert own.text == other.text
    assert own.sufficiency == other.sufficiency


def test_rows_that_nobody_makes_are_told(pager: SkillPager) -> None:
    model = shipped_model()
    foreign = Navigator(model=replace(model, embedding="someone's/bare"))
    with raises(StrategyError):
        pager.page(SAMPLE, QUERY, strategy=foreign)


@pytest.mark.parametrize("target", [0, -0.5, 1.5, float("nan")])
def test_a_target_that_is_no_chance_is_told(pager: SkillPager, target: float) -> None:
    with raises(SettingsError):
        pager.page(SAMPLE, QUERY, sufficiency=target)


def test_a_strategy_that_cannot_estimate_says_so(pager: SkillPager) -> None:
    with raises(SettingsError):
        pager.page(SAMPLE, QUERY, strategy="mmr", sufficiency=0.9)


def test_a_target_of_the_settings_is_for_those_that_can(tmp_path: Path) -> None:
    pager = SkillPager(settings=Settings(cache_dir=tmp_path, sufficiency=0.5))
    assert pager.page(SAMPLE, QUERY, strategy="mmr").sufficiency is None
    context = pager.page(SAMPLE, QUERY)
    assert context.selection is not None
    assert context.selection.budget.sufficiency == 0.5


# ---- the model's file


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
    assert "skills" in scores
    for way in sorted(scores.keys() - {"settings"}):
        assert f"over {way}" in card
        assert f"{scores[way]['ranking']['auc']:.3f}" in card
        assert scores[way]["ranking"]["auc"] >= 0.85
    model = shipped_model()
    assert [*model.scale, *(model.chance or ()), model.floor] == pytest.approx(
        [*scores["skills"]["scale"], *scores["skills"]["chance"], scores["skills"]["floor"]], rel=1e-4
    )

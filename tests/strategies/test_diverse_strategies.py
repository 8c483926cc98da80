"""The strategies of pyversity: its order kept, our budget and record, and no warnings on odd rows."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyversity import diversify

from index_builder import unit_rows
from messages import raises
from skillpager.errors import MissingExtraError
from skillpager.strategies import TopK
from skillpager.strategies.baselines.diversity import Cover, Dpp, Msd
from strategy_cases import assert_sound, index_with, near, ordinals, run

Diverse = Dpp | Msd | Cover
EACH = pytest.mark.parametrize("kind", [Dpp, Msd, Cover], ids=lambda kind: kind().name)


@EACH
@pytest.mark.parametrize("diversity", [0.01, 0.3, 1.0])
def test_the_order_and_the_scores_are_pyversitys(kind: type[Diverse], diversity: float) -> None:
    rows = unit_rows(61, 64, seed=7)
    query, pool = rows[0], rows[1:]
    strategy = kind(diversity)
    selection = run(strategy, index_with(pool), query, max_nodes=25)
    relevance = np.round(pool @ query, 6)
    theirs = diversify(pool, relevance, k=25, strategy=strategy.name, diversity=diversity)
    assert ordinals(selection) == theirs.indices.tolist()
    jitter = 1e-2 if kind is Dpp else 0  # of the kernel, which matters once little is left of a row
    marginals = [pick.marginal for pick in selection.picks]
    assert marginals == pytest.approx(theirs.selection_scores.tolist(), abs=jitter)
    assert_sound(selection, index_with(pool), query)


def test_dpp_goes_by_relevance_when_the_rows_have_run_out_of_directions() -> None:
    rows, query = near(*np.linspace(-0.9, 0.9, 30))
    selection = run(Dpp(0.5), index_with(rows), query, max_nodes=30)
    rest = ordinals(selection)[2:]  # two picks span the plane
    assert rest == sorted(rest, reverse=True)


@EACH
def test_diversity_zero_is_relevance_alone_ties_to_the_earlier_node(kind: type[Diverse]) -> None:
    rows, query = near(*[0.5, 0.9] * 40)
    index = index_with(rows)
    relevant = ordinals(run(TopK(), index, query, max_nodes=60))
    assert ordinals(run(kind(0), index, query, max_nodes=60)) == relevant


@EACH
def test_under_a_token_ceiling_the_order_is_that_of_all_nodes(kind: type[Diverse]) -> None:
    rows = unit_rows(41, 16, seed=13)
    query, pool = rows[0], rows[1:]
    tokens = [90 if place % 3 == 0 else 10 for place in range(40)]
    strategy = kind()
    order = ordinals(run(strategy, index_with(pool), query, max_nodes=40))
    spent, expected = 0, []
    for ordinal in order:
        if spent + tokens[ordinal] <= 59 and len(expected) < 5:
            spent += tokens[ordinal]
            expected.append(ordinal)
    selection = run(strategy, index_with(pool, tokens=tokens), query, max_nodes=5, max_tokens=59)
    assert ordinals(selection) == expected


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(0, 30),
    copies=st.integers(1, 3),
    dim=st.sampled_from([2, 8]),
    nodes=st.none() | st.integers(0, 40),
    tokens=st.none() | st.integers(0, 400),
    kind=st.sampled_from([Dpp, Msd, Cover]),
    diversity=st.sampled_from([0, 0.01, 0.5, 1]),
)
def test_the_budget_holds_and_nothing_warns(
    seed: int,
    count: int,
    copies: int,
    dim: int,
    nodes: int | None,
    tokens: int | None,
    kind: type[Diverse],
    diversity: float,
) -> None:
    # more nodes than directions, and equal ones: what is left of a determinantal kernel is noise
    rows = unit_rows(count + 1, dim, seed=seed)
    query, index = rows[0], index_with(np.tile(rows[1:], (copies, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selection = run(kind(diversity), index, query, max_nodes=nodes, max_tokens=tokens)
    assert_sound(selection, index, query)
    if tokens is None and nodes is not None:
        assert len(selection.picks) == min(nodes, len(index.nodes))
    assert run(kind(diversity), index, query, max_nodes=nodes, max_tokens=tokens) == selection


@EACH
@pytest.mark.parametrize("diversity", [-0.1, 1.1, float("nan")])
def test_a_diversity_outside_zero_to_one_is_refused(kind: type[Diverse], diversity: float) -> None:
    with raises(ValueError):
        kind(diversity)


@EACH
def test_without_pyversity_the_extra_is_named(kind: type[Diverse], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyversity", None)
    with raises(MissingExtraError):
        run(kind(), index_with(count=3))

"""MMR to the letter: against a naive oracle, pyversity and langchain-core, and its edge cases."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from messages import raises
from skillpager.strategies import Mmr, TopK
from skillpager.strategies.picking import allows_all, cosines, dynamic_max_nodes
from skillpager.types import Budget, FloatArray, ScoreKind, SkipReason
from strategy_cases import index_with, ordinals, reasons, run


def unit_rows(seed: int, count: int, dim: int = 24, *, shift: float = 0.0) -> FloatArray:
    """Return deterministic unit rows; `shift` makes them alike."""
    rows = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32) + np.float32(shift)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(("count", "k"), [(50, 20), (500, 20), (500, 60), (2000, 60)])
def test_mmr_picks_what_pyversity_and_langchain_pick(count: int, k: int) -> None:
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from pyversity import Strategy, diversify

    rows = unit_rows(count + k, count + 1, dim=64, shift=0.25)
    query, pool = rows[0], rows[1:]
    ours = ordinals(run(Mmr(0.7), index_with(pool), query, max_nodes=k))
    theirs = diversify(pool, pool @ query, k=k, strategy=Strategy.MMR, diversity=0.3)
    assert ours == list(theirs.indices)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        langchain = maximal_marginal_relevance(query, list(pool), lambda_mult=0.7, k=k)
    assert ours == langchain


def test_redundancy_is_zero_at_the_first_pick_and_negative_cosines_count_afterwards() -> None:
    rows = np.array([[1, 0], [-1, 0], [0, 1]], dtype=np.float32)
    query = np.array([1, 0], dtype=np.float32)
    first, second = run(Mmr(0.5), index_with(rows), query, max_nodes=3).picks[:2]
    assert (first.node.ordinal, first.redundancy, first.marginal) == (0, 0.0, 0.5)
    # node 1: 0.5 * -1 - 0.5 * -1 = 0 = node 2; the tie goes to the earlier node
    assert (second.node.ordinal, second.redundancy, second.marginal) == (1, -1.0, 0.0)


def test_selection_stops_when_the_best_marginal_is_below_zero() -> None:
    rows = np.array([[1, 0], [1, 0], [0.6, 0.8]], dtype=np.float32)
    selection = run(Mmr(0.3), index_with(rows), np.array([1, 0], dtype=np.float32), max_nodes=3)
    assert (ordinals(selection), selection.score_kind) == ([0], ScoreKind.MMR_MARGIN)
    assert {skip.reason for skip in selection.skipped} == {SkipReason.NEGATIVE_MARGINAL}
    assert selection.skipped[0].marginal == pytest.approx(0.3 - 0.7)


@pytest.mark.parametrize(("count", "expected"), [(1, 20), (100, 20), (101, 60), (5000, 60)])
def test_the_dynamic_budget_is_the_papers(count: int, expected: int) -> None:
    assert dynamic_max_nodes(count) == expected
    rows = unit_rows(count, count, shift=1.0)
    assert run(TopK(), index_with(rows), rows[0]).budget.max_nodes == min(expected, count)


def test_a_node_that_does_not_fit_is_skipped_for_a_smaller_one() -> None:
    rows = np.array([[1, 0], [0.9, 0.435889894], [0.8, 0.6]], dtype=np.float32)
    selection = run(Mmr(1.0), index_with(rows, tokens=[10, 90, 10]), rows[0], max_tokens=30)
    assert ordinals(selection) == [0, 2]
    assert [(skip.node.ordinal, skip.reason) for skip in selection.skipped] == [(1, SkipReason.MAX_TOKENS)]


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_lambda_outside_zero_to_one_is_refused(weight: float) -> None:
    with raises(ValueError):
        Mmr(weight)


@pytest.mark.parametrize("limit", ["max_nodes", "max_tokens"])
def test_a_negative_limit_is_refused(limit: str) -> None:
    rows = unit_rows(1, 3)
    with raises(ValueError):
        run(Mmr(), index_with(rows), rows[0], **{limit: -1})


def test_a_limit_of_zero_picks_nothing() -> None:
    rows = np.tile(unit_rows(1, 1), (3, 1))
    assert set(reasons(run(Mmr(), index_with(rows), rows[0], max_nodes=0)).values()) == {SkipReason.MAX_NODES}
    empty = index_with(rows, tokens=[0, 1, 0])
    assert ordinals(run(Mmr(1.0), empty, rows[0], max_tokens=0)) == [0, 2]


@pytest.mark.parametrize(
    ("budget", "nodes", "estimating", "expected"),
    [
        (Budget(), 20, False, True),
        (Budget(), 21, False, False),
        (Budget(max_tokens=5), 60, False, False),
        (Budget(sufficiency=0.9), 20, False, True),
        (Budget(max_nodes=7), 7, False, True),
        (Budget(max_nodes=7), 8, False, False),
        (Budget(), 20, True, False),
        (Budget(max_nodes=7), 7, True, False),
        (Budget(max_nodes=7, fill=True), 7, True, True),
        (Budget(max_nodes=7, fill=True), 8, True, False),
        (Budget(max_tokens=5), 600, True, False),
        (Budget(max_tokens=5, fill=True), 600, True, True),
        (Budget(fill=True), 600, True, True),
        (Budget(max_tokens=5, sufficiency=0.9, fill=True), 3, True, False),
        (Budget(max_tokens=5, fill=True), 600, False, False),
    ],
)
def test_which_budgets_allow_every_node(budget: Budget, nodes: int, estimating: bool, expected: bool) -> None:
    assert allows_all(budget, nodes, estimating=estimating) is expected


def test_cosines_are_whole_millionths() -> None:
    left, right = unit_rows(3, 40, 384), unit_rows(4, 1, 384)[0]
    assert cosines(left, right) == pytest.approx(np.array([float(row @ right) for row in left]), abs=1e-6)
    millionths = cosines(left, right).astype(np.float64) * 1e6
    assert millionths == pytest.approx(np.rint(millionths), abs=0.05)


def plain_mmr(
    rows: FloatArray, query: FloatArray, k: int, weight: float
) -> tuple[list[int], FloatArray, FloatArray]:
    """Return picks, redundancies and marginals of MMR that compares every node with every pick."""
    gain, penalty = np.float32(weight) * cosines(rows, query), np.float32(1) - np.float32(weight)
    redundancy, picked = np.zeros_like(gain), np.zeros(len(rows), bool)
    chosen: list[int] = []
    while len(chosen) < min(k, len(rows)):
        value = np.where(picked, -np.inf, gain - penalty * redundancy)
        best = int(value.argmax())
        if value[best] < 0:
            break
        column = cosines(rows, rows[best])
        redundancy = np.maximum(redundancy, column) if chosen else column
        picked[best] = True
        chosen.append(best)
    return chosen, redundancy, gain - penalty * redundancy


def alike_rows(seed: int, count: int, kinds: int) -> FloatArray:
    """Return unit rows of a few kinds, those of one kind much alike."""
    random = np.random.default_rng(seed)
    rows = unit_rows(seed, kinds, shift=0.3)[random.integers(0, kinds, count)]
    rows = rows + 0.1 * random.normal(size=rows.shape).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 60) | st.integers(60, 700),
    k=st.sampled_from([1, 2, 20, 60, 150]),
    weight=st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.9, 1.0]),
    kinds=st.none() | st.integers(2, 30),
)
def test_picks_and_records_are_those_of_a_plain_computation(
    seed: int, count: int, k: int, weight: float, kinds: int | None
) -> None:
    rows = alike_rows(seed, count + 2, kinds) if kinds else unit_rows(seed, count + 2)
    index = index_with(rows[2:])
    selection = run(Mmr(weight), index, rows[0], max_nodes=k)
    chosen, redundancy, marginal = plain_mmr(rows[2:], rows[0], k, weight)
    assert ordinals(selection) == chosen
    left_out = [skip.node.ordinal for skip in selection.skipped]
    assert left_out == sorted(set(range(count)) - set(chosen))
    numbers = np.array([(skip.redundancy, skip.marginal) for skip in selection.skipped])
    expected = np.stack([redundancy, marginal], axis=1)[left_out]
    np.testing.assert_allclose(numbers.reshape(expected.shape), expected, atol=2e-6)
    relevance = cosines(rows[2:], rows[0])
    for rank, pick in enumerate(selection.picks):
        ordinal = pick.node.ordinal
        nearest_pick = max((rows[2 + ordinal] @ rows[2 + other] for other in chosen[:rank]), default=0.0)
        value = weight * relevance[ordinal] - (1 - weight) * nearest_pick
        numbers = (pick.relevance, pick.redundancy, pick.marginal)
        assert numbers == pytest.approx((relevance[ordinal], nearest_pick, value), abs=2e-6)

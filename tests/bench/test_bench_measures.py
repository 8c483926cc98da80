"""Measures: rows of queries first, aggregation last."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_results import judgment, results_of, selection, write_results
from messages import raises
from skillpager.bench.data.records import append_records, write_records
from skillpager.bench.report.measures import (
    AVERAGE_NODES,
    CONCEPT_SHARE,
    COVERAGE,
    FRAGMENT_REDUCTION,
    LATENCY_95,
    LATENCY_MEDIAN,
    MACRO_REDUCTION,
    MEASURES,
    MICRO_REDUCTION,
    STRONG_VOTES,
    SUFFICIENCY,
)
from skillpager.bench.report.results import Results, join
from skillpager.errors import BenchError

QUERIES = ["s0-q0", "s0-q1", "s1-q0"]


def rows_of(*changes: dict[str, object], sufficient: tuple[bool, ...] = (True, False, True)) -> pd.DataFrame:
    """Return three rows, their selections changed."""
    selections = [selection(query, "mmr", **change) for query, change in zip(QUERIES, changes, strict=True)]
    verdicts = {q: judgment(q, "mmr", each) for q, each in zip(QUERIES, sufficient, strict=True)}
    return join(selections, verdicts, QUERIES)


def test_each_measure_is_what_its_definition_says() -> None:
    rows = rows_of(
        {"tokens": 50, "full_tokens": 100, "node_tokens": 40, "pool_tokens": 80, "seconds": 0.001},
        {"tokens": 10, "full_tokens": 400, "node_tokens": 0, "pool_tokens": 320, "seconds": 0.003},
        {"tokens": 300, "full_tokens": 300, "node_tokens": 300, "pool_tokens": 200, "seconds": 0.010},
    )
    assert SUFFICIENCY.of(rows) == pytest.approx(200 / 3)
    assert COVERAGE.of(rows) == pytest.approx(250 / 3)
    assert AVERAGE_NODES.of(rows) == 10
    assert MICRO_REDUCTION.of(rows) == pytest.approx(100 * (1 - 360 / 800))
    assert MACRO_REDUCTION.of(rows) == pytest.approx(100 * np.mean([0.5, 0.975, 0.0]))
    assert FRAGMENT_REDUCTION.of(rows) == pytest.approx(100 * (1 - 340 / 600))
    assert FRAGMENT_REDUCTION.per_query(rows).tolist() == pytest.approx([50, 100, -50])
    assert LATENCY_MEDIAN.of(rows) == pytest.approx(3.0)
    assert LATENCY_95.of(rows) == pytest.approx(9.3)
    assert CONCEPT_SHARE.of(rows) == pytest.approx(40.0)


def test_a_measure_without_numbers_is_not_a_number() -> None:
    rows = rows_of({}, {}, {})
    assert math.isnan(STRONG_VOTES.of(rows))
    assert math.isnan(STRONG_VOTES.interval(rows).value)
    assert all(math.isnan(measure.of(rows[:0])) for measure in MEASURES)


def test_votes_that_agree_are_strong() -> None:
    votes = [(True, True, True), (True, False, True), (False, False, False)]
    verdicts = {
        query: judgment(query, "mmr", sum(each) > 1, votes=each, coverage=None)
        for query, each in zip(QUERIES, votes, strict=True)
    }
    rows = join([selection(query, "mmr") for query in QUERIES], verdicts, QUERIES)
    assert STRONG_VOTES.of(rows) == pytest.approx(200 / 3)
    assert math.isnan(COVERAGE.of(rows))


def test_every_measure_says_what_it_is_and_where_it_comes_from() -> None:
    assert len({measure.name for measure in MEASURES}) == len(MEASURES)
    assert all(measure.definition.endswith(".") and measure.reference for measure in MEASURES)


def test_a_quantile_has_no_interval() -> None:
    with raises(ValueError):
        LATENCY_MEDIAN.interval(rows_of({}, {}, {}))


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 500)), min_size=3, max_size=3))
def test_micro_reduction_is_the_mean_of_the_queries_weighted_by_their_tokens(
    pairs: list[tuple[int, int]],
) -> None:
    rows = rows_of(*({"tokens": tokens, "full_tokens": full} for tokens, full in pairs))
    weighted = np.average(MICRO_REDUCTION.per_query(rows), weights=[full for _, full in pairs])
    assert MICRO_REDUCTION.of(rows) == pytest.approx(weighted)
    assert MACRO_REDUCTION.of(rows) == pytest.approx(MICRO_REDUCTION.per_query(rows).mean())


# ---- rows


def test_rows_stand_in_the_order_of_the_queries_and_lack_what_is_not_judged() -> None:
    selections = [selection(query, "mmr") for query in reversed(QUERIES)]
    verdicts = {"s1-q0": judgment("s1-q0", "mmr", True), "s0-q0": judgment("s0-q0", "mmr", False)}
    rows = join(selections, verdicts, QUERIES)
    assert list(rows["query"]) == ["s0-q0", "s1-q0"]
    assert list(rows["skill"]) == ["s0", "s1"]
    assert rows.sufficient.tolist() == [0, 1]


def test_a_verdict_on_another_context_counts_as_none() -> None:
    verdicts = {query: judgment(query, "mmr", True, context_sha256="old") for query in QUERIES}
    assert len(join([selection(query, "mmr") for query in QUERIES], verdicts, QUERIES)) == 0


def test_the_last_selection_of_a_query_counts() -> None:
    twice = [selection("s0-q0", "mmr", tokens=1), selection("s0-q0", "mmr", tokens=2)]
    assert join(twice, {"s0-q0": judgment("s0-q0", "mmr", True)}, QUERIES).tokens.tolist() == [2]


# ---- folders


def test_methods_are_compared_on_the_queries_that_both_have(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True], "full": [True]})
    judged = folder.judgments("evidence", "full")
    write_records(folder.judgments_file("evidence", "full"), judged[1:])
    results = Results(folder, "evidence")
    mmr, full = results.common("mmr", "full")
    assert list(mmr["query"]) == list(full["query"]) == [record.query for record in judged[1:]]
    assert len(results.rows("mmr")) == len(judged)


def test_rows_of_some_skills(tmp_path: Path) -> None:
    results = results_of(tmp_path, {"mmr": [True], "full": [True]})
    for rows in (results.rows("mmr", {"s0", "s2"}), *results.common("mmr", "full", skills={"s0", "s2"})):
        assert list(rows["query"]) == [f"s{skill}-q{i}" for skill in (0, 2) for i in range(5)]


def test_a_method_of_which_a_part_is_judged_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_results(tmp_path, {"mmr": [True], "full": [True]})
    judged = folder.judgments("evidence", "full")
    write_records(folder.judgments_file("evidence", "full"), judged[: len(judged) // 2])
    results = Results(folder, "evidence")
    assert results.has("mmr")
    assert not results.has("full")
    assert f"judged {len(judged) // 2} of {len(judged)} contexts, so that it is left out" in caplog.text


def test_a_judge_without_verdicts_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]})
    with raises(BenchError):
        Results(folder, "people:ann")


def test_ablations_are_on_the_ground_truth_where_there_is_one(tmp_path: Path) -> None:
    mixed = results_of(tmp_path / "a", {"mmr": [True]}, subsets=("gt", "pool", "gt", "pool"))
    assert mixed.ablation_skills == {"s0", "s2"}
    assert results_of(tmp_path / "b", {"mmr": [True]}).ablation_skills == {"s0", "s1", "s2", "s3"}


def test_rows_are_read_again_after_a_run_went_on(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]})
    append_records(folder.selections_file("mmr"), [selection("s0-q0", "mmr", tokens=99)])
    assert Results(folder, "evidence").rows("mmr")["tokens"].iloc[0] == 99

"""Results: rows of queries first, measures last; and published rows, from which every number comes back."""

import csv
import hashlib
import json
import lzma
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench_results import judgment, results_of, selection, whole_run, write_results
from conftest import ROOT
from messages import raises
from skillpager.bench.data.records import SkillRecord, append_records, write_records
from skillpager.bench.report import statistics
from skillpager.bench.report.compare import compare_runs
from skillpager.bench.report.report import FROM_ROWS
from skillpager.bench.report.results import ROWS, SKILL_ROWS, PublishedResults, Results, join, publish
from skillpager.bench.report.tables import Table
from skillpager.errors import BenchError

QUERIES = ["s0-q0", "s0-q1", "s1-q0"]
# of queries, skills and pages
SECRETS = ("How to do", "A folder is a place", "the text")


def rows_of(*changes: dict[str, object], sufficient: tuple[bool, ...] = (True, False, True)) -> pd.DataFrame:
    """Return three rows, their selections changed."""
    selections = [selection(query, "mmr", **change) for query, change in zip(QUERIES, changes, strict=True)]
    verdicts = {q: judgment(q, "mmr", each) for q, each in zip(QUERIES, sufficient, strict=True)}
    return join(selections, verdicts, QUERIES)


# ---- measures


def test_each_measure_is_what_its_definition_says() -> None:
    rows = rows_of(
        {"tokens": 50, "full_tokens": 100, "node_tokens": 40, "pool_tokens": 80, "seconds": 0.001},
        {"tokens": 10, "full_tokens": 400, "node_tokens": 0, "pool_tokens": 320, "seconds": 0.003},
        {"tokens": 300, "full_tokens": 300, "node_tokens": 300, "pool_tokens": 200, "seconds": 0.010},
    )
    assert statistics.SUFFICIENCY.of(rows) == pytest.approx(200 / 3)
    assert statistics.COVERAGE.of(rows) == pytest.approx(250 / 3)
    assert statistics.AVERAGE_NODES.of(rows) == 10
    assert statistics.MICRO_REDUCTION.of(rows) == pytest.approx(100 * (1 - 360 / 800))
    assert statistics.MACRO_REDUCTION.of(rows) == pytest.approx(100 * np.mean([0.5, 0.975, 0.0]))
    assert statistics.FRAGMENT_REDUCTION.of(rows) == pytest.approx(100 * (1 - 340 / 600))


def test_a_measure_without_numbers_is_not_a_number() -> None:
    rows = rows_of({}, {}, {})
    assert math.isnan(statistics.STRONG_VOTES.of(rows))
    assert math.isnan(statistics.STRONG_VOTES.interval(rows).value)
    assert math.isnan(statistics.SUFFICIENCY.of(rows[:0]))


def test_votes_that_agree_are_strong() -> None:
    votes = [(True, True, True), (True, False, True), (False, False, False)]
    verdicts = {
        query: judgment(query, "mmr", sum(each) > 1, votes=each, coverage=None)
        for query, each in zip(QUERIES, votes, strict=True)
    }
    rows = join([selection(query, "mmr") for query in QUERIES], verdicts, QUERIES)
    assert statistics.STRONG_VOTES.of(rows) == pytest.approx(200 / 3)
    assert math.isnan(statistics.COVERAGE.of(rows))


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


def test_the_last_selection_of_a_query_counts(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]})
    append_records(folder.selections_file("mmr"), [selection("s0-q0", "mmr", tokens=99)])
    assert Results(folder, "evidence").rows("mmr")["tokens"].iloc[0] == 99


def test_methods_are_compared_on_the_queries_that_both_have(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True], "full": [True]})
    judged = folder.judgments("evidence", "full")
    write_records(folder.judgments_file("evidence", "full"), judged[1:])
    results = Results(folder, "evidence")
    mmr, full = results.common("mmr", "full")
    assert list(mmr["query"]) == list(full["query"]) == [record.query for record in judged[1:]]
    assert list(results.rows("mmr", {"s0", "s2"})["skill"].unique()) == ["s0", "s2"]


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
    with raises(BenchError):
        Results(folder, "people:ann")


def test_ablations_are_on_the_ground_truth_where_there_is_one(tmp_path: Path) -> None:
    mixed = results_of(tmp_path / "a", {"mmr": [True]}, subsets=("gt", "pool", "skillsbench", "pool"))
    assert mixed.ablation_skills == {"s0", "s2"}
    assert results_of(tmp_path / "b", {"mmr": [True]}).ablation_skills == {"s0", "s1", "s2", "s3"}


# ---- published rows


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run of every suite."""
    return results_of(tmp_path_factory.mktemp("run"), whole_run())


@pytest.fixture(scope="module")
def published(run: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its published rows."""
    folder = tmp_path_factory.mktemp("published")
    publish(run, folder)
    return folder


@pytest.mark.parametrize("make", FROM_ROWS)
def test_tables_of_rows_are_the_tables_of_the_run(
    make: Callable[[Results], object], run: Results, published: Path
) -> None:
    ours, theirs = make(PublishedResults(published)), make(run)
    if isinstance(ours, Table) and isinstance(theirs, Table):
        assert ours.to_csv() == theirs.to_csv()
    else:
        assert ours == theirs is not None


def test_a_run_is_compared_with_rows_of_another(run: Results, published: Path, tmp_path: Path) -> None:
    same = compare_runs(run, PublishedResults(published), tolerance=0)
    assert set(same["same picks"]) == {100.0}
    rows = pd.read_csv(published / ROWS, dtype=str, keep_default_na=False)
    queries = rows["query"].unique()
    turned = (rows["method"] == "sections") & rows["query"].isin(queries[: len(queries) // 50 + 1])
    rows.loc[turned, ["sufficient", "picks"]] = ["0", "n99"]
    shutil.copytree(published, tmp_path / "other")
    rows.to_csv(tmp_path / "other" / ROWS, index=False)
    other = compare_runs(run, PublishedResults(tmp_path / "other"), tolerance=0.5).set_index("method")
    assert list(other.index[~other["agrees"]]) == ["sections"]
    assert other.loc["sections", "same picks"] < 100
    assert compare_runs(run, PublishedResults(tmp_path / "other"), tolerance=50)["agrees"].all()
    with raises(BenchError):
        compare_runs(run, PublishedResults(ROOT / "benchmarks" / "intraskill" / "folders"), tolerance=1)


def test_rows_can_be_read_without_us(run: Results, published: Path) -> None:
    rows = pd.read_csv(published / ROWS)
    assert len(rows) == len(run.labels) * len(run.queries)
    mine = rows[rows["method"] == "mmr"]
    assert mine["sufficient"].tolist() == run.rows("mmr")["sufficient"].tolist()
    assert rows["query"].drop_duplicates().tolist() == run.queries["query"].tolist()
    with (published / SKILL_ROWS).open(encoding="utf-8", newline="") as file:
        skills = list(csv.DictReader(file))
    texts = [skill.text for skill in run.folder.skills()]
    assert [skill["sha256"] for skill in skills] == [hashlib.sha256(t.encode()).hexdigest() for t in texts]
    counts = [int(skill["concept"]) + int(skill["step"]) + int(skill["param"]) for skill in skills]
    assert counts == run.node_counts.tolist()
    manifest = json.loads((published / "manifest.json").read_text(encoding="utf-8"))
    assert manifest == {**run.manifest, "judge": "evidence"}


def test_no_text_is_published(run: Results, published: Path) -> None:
    everything = "".join(
        (lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).decode()
        for path in sorted(published.iterdir())
    )
    folder = run.folder
    source = folder.queries()[0].query + folder.skills()[0].text + str(folder.selections("mmr")[0].context)
    for secret in SECRETS:
        assert secret in source
        assert secret not in everything


def test_ids_that_look_like_missing_numbers_are_ids_and_votes_stay_votes(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run", {"mmr": [True]}, judge="llm:x")
    skill = SkillRecord("null", "null", "", folder.skills()[0].files, "NA")
    append_records(folder.path / "skills.jsonl", [skill])
    publish(Results(folder, "llm:x"), tmp_path / "published")
    results = PublishedResults(tmp_path / "published")
    assert (results.skills.index[-1], results.skills["subset"].iloc[-1]) == ("null", "NA")
    assert results.judge == "llm:x"
    assert results.rows("mmr")["unanimous"].isna().all()


@pytest.mark.parametrize("name", [ROWS, SKILL_ROWS])
def test_damaged_rows_are_named(name: str, published: Path, tmp_path: Path) -> None:
    with raises(BenchError):
        PublishedResults(tmp_path)  # nothing is published there
    for path in published.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = (tmp_path / name).read_bytes()
    for damaged in (None, whole[: len(whole) // 2], b"skill,subset\nx,y\n"):
        (tmp_path / name).unlink() if damaged is None else (tmp_path / name).write_bytes(damaged)
        with pytest.raises(BenchError, match=re.escape(name)):
            PublishedResults(tmp_path)

"""Tables: their forms, the paper's beside ours, our own, and the paper's claims."""

import csv
import hashlib
import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt

from bench_results import FULL_TOKENS, SUITES, TOKENS, results_of, whole_run, write_results
from skillpager.bench.data.evidence import Published
from skillpager.bench.data.folder import write_records
from skillpager.bench.data.provenance import differences, run_facts
from skillpager.bench.report import paper
from skillpager.bench.report import results as reading
from skillpager.bench.report.figures.tradeoffs import Point, frontier
from skillpager.bench.report.report import find_out
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.tables import Table, budgets, claims, compared, data, methods
from skillpager.bench.report.tables.budgets import read_curves, without_budget
from skillpager.bench.report.tables.claims import CLAIMS, Expectation, Verdict, check_claims, judge_claim
from skillpager.bench.report.tables.methods import MEANINGS, compare_methods, default_methods, glossary
from skillpager.bench.report.tables.table import (
    Bounds,
    Cell,
    PValue,
    format_cell,
    to_csv,
    to_html,
    to_markdown,
)
from skillpager.bench.run.methods import METHOD_STRATEGIES
from skillpager.bench.run.suites import SUITES as REAL_SUITES
from skillpager.classifiers.local import LocalClassifier
from skillpager.encoders.builtin import ENCODER_ID

HOSTILE = '<script>alert(1)</script> | *a* `b` [c](d) _e_ \\ & "f"'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every suite was run."""
    return results_of(tmp_path_factory.mktemp("whole"), whole_run(), suites=SUITES)


def cells(table: Table | None, name: str) -> list[Cell]:
    """Return the cells of the row of a name, without it."""
    assert table is not None
    rows = [tuple(row.values()) for row in table.rows]
    return next(rest for first, *rest in rows if first == name)


# ---- forms


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (1975, "1,975"),
        (-28.81, "−28.81"),
        (-0.001, "0.00"),
        (None, "—"),
        (math.nan, "—"),
        ("λ = 0.7", "λ\u00a0=\u00a00.7"),
        (Interval(78.886, 77.01, 80.61), "78.89 [77.01, 80.61]"),
        (Interval(math.nan, math.nan, math.nan), "—"),
        (Bounds(-1.0, 2.5), "[−1.00, 2.50]"),
        (PValue(0.0301), "0.03"),
        (PValue(0.0001), "< 0.01"),
    ],
)
def test_cells_are_written_for_people(cell: Cell, text: str) -> None:
    assert format_cell(cell, 2) == text


def table_of(*rows: tuple[Cell, ...]) -> Table:
    """Return a small table in two groups."""
    headings = ("Method", "Paper: Suff.", "Here: p", "Here: n")
    named = [dict(zip(headings, row, strict=True)) for row in rows]
    return Table("t", "Title <b>", named, note="A <note>.", reference="paper §1", digits={"Here: p": 4})


def test_markdown_shows_every_cell_as_it_is() -> None:
    text = to_markdown(table_of((HOSTILE, Interval(1, 0, 2), PValue(0.5), 3)))
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert html.count("<td") == 4
    assert "<script" not in html
    assert "<em>" not in html
    assert "alert(1)&lt;/script&gt; | *a* `b` [c](d) _e_ \\ &amp; &quot;f&quot;" in html
    assert "Paper: Suff." in text


def test_html_escapes_everything_and_groups_columns() -> None:
    html = to_html(table_of((HOSTILE, Interval(1, 0, 2), None, 3)))
    assert "<script" not in html
    assert '<th scope="colgroup" colspan="2" class="group">Here</th>' in html
    assert '<th scope="row">&lt;script&gt;' in html
    assert "<caption><span>Title &lt;b&gt;</span></caption>" in html
    assert "A &lt;note&gt;." in html
    assert "Reference: paper §1." in html


def test_csv_has_a_column_for_each_number() -> None:
    table = table_of(("a", Interval(1.5, 0, 2), PValue(0.5), 3), ('b, "c"', None, math.nan, None))
    found = list(csv.reader(io.StringIO(to_csv(table))))
    assert found == [
        ["Method", "Paper: Suff.", "Paper: Suff. low", "Paper: Suff. high", "Here: p", "Here: n"],
        ["a", "1.5", "0", "2", "0.5", "3"],
        ['b, "c"', "", "", "", "", ""],
    ]


# ---- the paper's tables


def test_main_results_stand_beside_the_papers(results: Results) -> None:
    table = compared.main_results(results)
    found = cells(table, "SkillPager")
    verdicts = whole_run()["mmr"]
    assert found[:3] == [Interval(78.89, 77.01, 80.61), 24.68, 47.04]
    assert isinstance(found[3], Interval)
    assert found[3].value == pytest.approx(100 * np.mean(verdicts))
    assert found[4:] == pytest.approx([75 if np.mean(verdicts) == 0.5 else found[4], 10, 100 * 2 / 3, 60])
    assert TOKENS / FULL_TOKENS == 0.4
    assert table is not None
    assert table.is_strong == [False, False, False, False, True]
    assert "395 skills, 1,975 queries" in table.reference


@pytest.mark.parametrize(
    "make",
    [
        compared.main_results,
        compared.graph_augmentation,
        compared.concept_ablation,
        compared.concept_need,
        compared.lambda_sweep,
        compared.node_budget_sweep,
        compared.size_sweep,
        compared.boundary_sweep,
        compared.granularity,
        compared.encoders,
        compared.classifiers,
    ],
)
def test_a_table_whose_suite_did_not_run_is_left_out(make: object, tmp_path: Path, results: Results) -> None:
    assert make(results) is not None  # type: ignore[operator]
    assert make(results_of(tmp_path, {"mmr": [True], "full": [True]})) is None  # type: ignore[operator]


def test_a_method_that_did_not_run_is_a_dash_and_is_named(tmp_path: Path) -> None:
    table = compared.main_results(results_of(tmp_path, {"mmr": [True], "greedy_graph": [False]}))
    assert table is not None
    assert "Not run here: Full-document prompt, Top-k + dependency, Naive chunk + MMR." in table.note
    assert [format_cell(cell, 2) for cell in cells(table, "Naive chunk + MMR")[3:]] == ["—"] * 5


def test_sweeps_use_the_ground_truth_alone(tmp_path: Path) -> None:
    verdicts = [True] * 5 + [False] * 15
    found = results_of(
        tmp_path,
        {"mmr@lambda=0.5": verdicts, "mmr@lambda=0.7": verdicts},
        subsets=("gt", "pool", "gt", "pool"),
    )
    table = compared.lambda_sweep(found)
    sufficiency = cells(table, "λ = 0.7")[2]
    assert isinstance(sufficiency, Interval)
    assert sufficiency.value == 50
    assert table is not None
    assert "Here: 2 skills with curated answers, 10 queries." in table.note


def test_votes_that_agree_are_told_where_there_are_votes(tmp_path: Path, results: Results) -> None:
    folder = write_results(tmp_path, {"exec_only": [True]})
    judged = folder.judgments("evidence", "exec_only")
    votes = [(True, True, True)] * 15 + [(True, False, True)] * 5
    split = [replace(record, votes=each) for record, each in zip(judged, votes, strict=True)]
    write_records(folder.judgments_file("evidence", "exec_only"), split)
    table = compared.concept_ablation(Results(folder, "evidence"))
    assert table is not None
    assert "All votes agree on 75.0 % of the verdicts, in the paper on 89.9 %." in table.note
    one_vote = compared.concept_ablation(results)
    assert one_vote is not None
    assert "votes" not in one_vote.note


def test_queries_that_need_concepts_are_counted(tmp_path: Path) -> None:
    verdicts = {"mmr": [True, True, False, False], "exec_only": [True, False, True, False]}
    table = compared.concept_need(results_of(tmp_path, verdicts))
    assert cells(table, "Queries") == [975, 20]
    assert cells(table, "… that mmr answers and exec_only does not") == [113, 5]
    assert cells(table, "Concept nodes in the contexts of these (%)")[1] == pytest.approx(40)


def test_sizes_are_divided_at_100_nodes(tmp_path: Path) -> None:
    large_gains = [False] * 10 + [True] * 5 + [False] * 5
    found = results_of(tmp_path, {"mmr@k=20": [False], "mmr@k=60": large_gains}, nodes=(12, 100, 101, 60))
    table = compared.size_sweep(found)
    small, large = cells(table, "≤ 100 nodes"), cells(table, "> 100 nodes")
    assert small[2:] == [3, 15, Interval(0, 0, 0), Interval(0, 0, 0)]
    assert large == [73.0, 79.0, 1, 5, Interval(0, 0, 0), Interval(100, 100, 100)]


def test_data_is_counted(results: Results) -> None:
    table = data.composition(results)
    assert cells(table, "Skills in all") == [395, 4]
    assert cells(table, "Other skills: dev") == [None, 4]
    assert cells(table, "Nodes in all") == [22_774, 234]
    assert cells(table, "… most")[1] in (120, max(len(skill.text) for skill in results.skills))
    kinds = data.node_types(results)
    assert cells(kinds, "concept") == pytest.approx([11_369, 49.9, 78, 100 / 3])
    assert cells(kinds, "total")[2:] == [234, 100.0]


def test_a_scored_validation_is_shown(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]})
    assert data.judge_validation(Results(folder, "evidence")) is None
    scored = {
        "all": {"cases": 96, "rate": 0.875, "kappa": 0.75},
        "3-0": {"cases": 48, "rate": 0.9, "kappa": None},
    }
    folder.update_manifest({"validation": {"evidence": scored}})
    table = data.judge_validation(Results(folder, "evidence"))
    assert cells(table, "all") == [82.29, 0.646, 87.5, 0.75, 96]
    assert cells(table, "2-1, divided") == [79.17, 0.583, None, None, None]


def test_the_parser_is_measured_against_labels(results: Results) -> None:
    table = data.parser_agreement(results)
    assert cells(table, "Nodes compared")[0] == 96
    assert table is not None
    assert len(table.headings) == 3  # there is no second annotator


# ---- skills that the shipped models were made from


def results_with(path: Path, **parts: str) -> Results:
    """Return results of a run with other parts."""
    folder = write_results(path, {"mmr": [True], "greedy_graph": [False]})
    folder.update_manifest({"run": {"encoder": "hashing-256", "classifier": "local-1", **parts}})
    return Results(folder, "evidence")


def publish(monkeypatch: pytest.MonkeyPatch, results: Results, *skills: int) -> None:
    """Make these skills of the results the published ones: the first of `train`, the others of `dev`."""
    digests = [hashlib.sha256(results.skills[place].text.encode()).hexdigest() for place in skills]
    published = [Published("s", "o/n", "c", "p", digest, "MIT", (), (), ()) for digest in digests]
    parts = {"train": published[:1], "dev": published[1:]}
    monkeypatch.setattr(reading, "read_published", parts.__getitem__)


def test_results_on_skills_of_the_training_say_whom_they_flatter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = results_with(tmp_path, encoder=ENCODER_ID)
    publish(monkeypatch, found, 0, 2, 3)
    note = found.encoder_note()
    assert "flatter every method that uses the built-in encoder" in note
    assert "it and the navigator were trained on 3 of these 4 skills" in note
    assert "cross-validation, see docs/models.md" in note
    for table in (compared.main_results(found), methods.all_methods(found)):
        assert table is not None
        assert table.note.endswith(f" {note}")
        assert note in to_markdown(table)


def test_results_on_other_skills_or_by_another_encoder_say_nothing_of_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen = results_with(tmp_path / "unseen", encoder=ENCODER_ID)  # no document of the tests is published
    hashing = results_with(tmp_path / "hashing")
    without_run = results_with(tmp_path / "without")
    del without_run.manifest["run"]
    for found in (unseen, hashing, without_run):
        assert found.encoder_note() == ""
        for table in (compared.main_results(found), methods.all_methods(found)):
            assert table is not None
            assert "trained" not in table.note
            assert table.note == table.note.strip()
        publish(monkeypatch, found, 0)


def test_types_of_skills_that_the_classifier_was_fitted_on_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = results_with(tmp_path / "seen", classifier=LocalClassifier().id)
    assert found.classifier_note() == ""
    publish(monkeypatch, found, 1)
    note = found.classifier_note()
    assert "the shipped classifier was fitted on 1 of these 4 skills" in note
    assert re.search(r"its accuracy is [5-9]\d\.\d % and its macro-F1 [5-9]\d\.\d\.$", note)
    table = data.parser_agreement(found)
    assert table is not None
    assert table.note.endswith(f" {note}")
    assert found.encoder_note() == ""
    assert results_with(tmp_path / "other").classifier_note() == ""


# ---- our own


def test_default_methods_are_those_of_the_offline_suite(results: Results, tmp_path: Path) -> None:
    assert default_methods(results) == tuple(SUITES["offline"])
    chosen = results_of(
        tmp_path, {"mmr": [True], "bm25": [True], "mmr@k=5": [True], "head@tokens=10%": [True]}
    )
    assert default_methods(chosen) == ("mmr", "bm25")


def test_differences_are_tested_on_the_same_queries_and_corrected(tmp_path: Path) -> None:
    best = [True] * 20
    found = results_of(tmp_path, {"mmr": [False] * 20, "full": best, "bm25": [True] + [False] * 19})
    tested = {each.method: each for each in compare_methods(found, ["mmr", "full", "bm25"])}
    assert list(tested) == ["full", "bm25"]
    assert tested["full"].significant
    assert tested["full"].p_holm == pytest.approx(2 * tested["full"].comparison.p)
    assert not tested["bm25"].significant
    table = methods.pairwise(found)
    assert cells(table, "full")[-1] == "yes"
    assert cells(table, "bm25")[3:5] == [1, 0]


def test_methods_are_divided_by_difficulty_and_size(results: Results) -> None:
    difficulty, size = methods.by_difficulty(results), methods.by_size(results)
    assert difficulty is not None
    assert difficulty.headings[1:] == [
        "easy, 8 queries",
        "medium, 8 queries",
        "hard, 4 queries",
    ]
    assert size is not None
    assert size.headings[1:] == [
        "1–20 nodes, 5 queries",
        "21–50 nodes, 5 queries",
        "51–100 nodes, 5 queries",
        "> 100 nodes, 5 queries",
    ]


def test_the_area_under_a_curve_is_its_mean_height(tmp_path: Path) -> None:
    labels = [f"{name}@tokens={share}%" for name in ("head", "mmr@lambda=0.9") for share in (10, 50, 90)]
    labels = [label.replace("0.9@tokens", "0.9,tokens") for label in labels]
    never, ever = [False], [True]
    verdicts = dict(zip(labels, (never, never, ever, ever, ever, ever), strict=True))
    best, other = read_curves(results_of(tmp_path, verdicts))
    assert (best.method, other.method) == ("mmr@lambda=0.9", "head")
    assert best.shares == (0.1, 0.5, 0.9)
    assert best.area() == Interval(100, 100, 100)
    assert other.area().value == pytest.approx(25)  # a quarter of the range is the half triangle at its end
    assert other.sufficiency == (0, 0, 100)
    assert other.used == pytest.approx((0.4, 0.4, 0.4))
    table = budgets.matched_budgets([best, other])
    assert table is not None
    assert [row["Method"] for row in table.rows] == ["mmr@lambda=0.9", "head"]
    assert cells(table, "head")[3:] == [None, None, None, 0, 50, pytest.approx(40), None, None, None]
    half, end = other.differences(best)[1:]
    assert half == Interval(-100, -100, -100)
    assert end == Interval(0, 0, 0)


def test_a_curve_uses_the_queries_that_all_its_budgets_have(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"head@tokens=10%": [True], "head@tokens=90%": [True]})
    write_records(
        folder.judgments_file("evidence", "head@tokens=90%"),
        folder.judgments("evidence", "head@tokens=90%")[:19],
    )
    (curve,) = read_curves(Results(folder, "evidence"))
    assert len(curve.query) == len(curve.areas) == 19


def test_a_budget_is_taken_off_a_label() -> None:
    assert without_budget("mmr@lambda=0.9,tokens=40%") == "mmr@lambda=0.9"
    assert without_budget("chunk_mmr:128@tokens=1500") == "chunk_mmr:128"
    assert without_budget("mmr@k=5") == "mmr"


def test_the_frontier_is_what_no_other_beats() -> None:
    points = [
        Point("a", 10, 90),
        Point("b", 50, 50),
        Point("c", 50, 40),
        Point("d", 9, 90),
        Point("e", 80, 50),
    ]
    assert [point.method for point in frontier(points)] == ["a", "e"]
    assert [point.method for point in frontier([Point("x", 1, 1), Point("y", 1, 1)])] == ["x", "y"]


# ---- claims and findings


@pytest.mark.parametrize(
    ("low", "high", "expectation", "verdict"),
    [
        (1, 9, Expectation.HIGHER, Verdict.HOLDS),
        (-9, -1, Expectation.HIGHER, Verdict.FAILS),
        (-1, 9, Expectation.HIGHER, Verdict.OPEN),
        (-9, -1, Expectation.LOWER, Verdict.HOLDS),
        (1, 9, Expectation.LOWER, Verdict.FAILS),
        (-4, 4, Expectation.ALIKE, Verdict.HOLDS),
        (6, 9, Expectation.ALIKE, Verdict.FAILS),
        (-9, -6, Expectation.ALIKE, Verdict.FAILS),
        (-4, 6, Expectation.ALIKE, Verdict.OPEN),
        (-30, 4, Expectation.NO_HIGHER, Verdict.HOLDS),
        (6, 9, Expectation.NO_HIGHER, Verdict.FAILS),
        (-4, 6, Expectation.NO_HIGHER, Verdict.OPEN),
    ],
)
def test_a_claim_holds_when_all_of_the_interval_says_so(
    low: float, high: float, expectation: Expectation, verdict: Verdict
) -> None:
    assert judge_claim(Interval((low + high) / 2, low, high), expectation) is verdict


def test_the_papers_differences_are_those_of_its_text() -> None:
    gaps = {(claim.first, claim.second, claim.measure.name): claim.paper for claim in CLAIMS}
    assert gaps["mmr", "greedy_graph", "Suff."] == pytest.approx(12.16)
    assert gaps["mmr", "exec_only", "Suff."] == pytest.approx(8.41)
    assert gaps["mmr@lambda=0.7", "mmr@lambda=0.5", "Suff."] == pytest.approx(31.90)
    assert gaps["mmr@lambda=0.9", "mmr@lambda=0.7", "Suff."] == pytest.approx(0.10)
    assert gaps["mmr@k=30", "mmr@k=20", "Suff."] == pytest.approx(0.71)
    assert all(
        judge_claim(Interval(claim.paper, claim.paper, claim.paper), claim.expectation) is Verdict.HOLDS
        for claim in CLAIMS
    )


def test_claims_are_about_methods_of_the_suites() -> None:
    known = {label for suite in REAL_SUITES.values() for label in suite}
    assert {claim.first for claim in CLAIMS} | {claim.second for claim in CLAIMS} <= known
    assert {
        row.label
        for table in (paper.MAIN, paper.CONCEPT, paper.LAMBDA, paper.NODE_BUDGET)
        for row in table.rows
    } <= known


def test_claims_are_checked_on_their_part_of_the_data(tmp_path: Path) -> None:
    large_gains = [False] * 10 + [True] * 5 + [False] * 5
    found = results_of(tmp_path, {"mmr@k=20": [False], "mmr@k=60": large_gains})
    small, large = check_claims(found)
    assert (small.claim.scope, large.claim.scope) == (claims.Scope.SMALL, claims.Scope.LARGE)
    assert (small.difference.value, large.difference.value) == (0, 100)
    assert (small.verdict, large.verdict) == (Verdict.HOLDS, Verdict.HOLDS)


def test_findings_name_the_best_and_say_whether_it_is_sure(tmp_path: Path) -> None:
    verdicts = {
        "mmr@tokens=50%": [False],
        "mmr@tokens=90%": [False],
        "sections@tokens=50%": [True],
        "sections@tokens=90%": [True],
        "mmr": [True],
    }
    found = results_of(tmp_path, verdicts)
    told = dict(find_out(found))
    assert told["Best of 2 methods at a budget of 50 % of the tokens"] == "sections: sufficiency 100.0 %"
    assert told["mmr at a budget of 50 % of the tokens"] == "sufficiency 0.0 %; 40.0 % of the tokens used"
    assert re.fullmatch(
        r"100\.0 \[100\.0, 100\.0\] points; p = 0\.000\d \(Holm, 1 tests\)", told["sections − mmr"]
    )
    smaller = "Area not significantly smaller (Holm, 1 tests)"
    assert told[smaller] == "no other method"
    alike = results_of(
        tmp_path / "b", {**verdicts, "sections@tokens=50%": [False], "sections@tokens=90%": [False]}
    )
    assert dict(find_out(alike))[smaller] in ("sections", "mmr")


def test_facts_and_differences_come_from_the_folder(results: Results) -> None:
    facts = dict(run_facts(results))
    assert facts["Encoder"] == "hashing-256"
    assert facts["Skills, queries"] == "4, 20"
    assert facts["Data"] == "dev; queries by annotator"
    table = differences(results)
    assert "100 % by construction" in str(cells(table, "Judge")[2])
    assert "10.0 nodes a context here, 24.7 there" in str(cells(table, "Encoder")[2])


def test_another_judge_is_not_called_strict(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]}, judge="llm:m#1")
    assert "by construction" not in to_markdown(differences(Results(folder, "llm:m#1")))


def test_every_strategy_has_a_meaning(results: Results) -> None:
    assert set(MEANINGS) == set(METHOD_STRATEGIES)
    assert cells(glossary(results), "sections") == [MEANINGS["sections"]]


def test_every_option_of_a_label_that_sets_a_limit_has_a_meaning(results: Results) -> None:
    told = {str(row["Name"]) for row in glossary(results).rows}
    assert {"@lambda=0.9", "@k=20", "@tokens=40%", "@sufficiency=0.9"} <= told

"""Tables: their forms, the paper's beside ours, our own, and the paper's claims."""

import csv
import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from bench_results import FULL_TOKENS, SUITES, TOKENS, results_of, whole_run, write_results
from skillpager.bench.data.folder import INDEXES
from skillpager.bench.data.records import write_records
from skillpager.bench.report import budgets, claims, compared, methods, paper, stage1
from skillpager.bench.report.budgets import read_curves, without_budget
from skillpager.bench.report.claims import CLAIMS, Verdict, check_claims, judge_claim
from skillpager.bench.report.figures import frontier
from skillpager.bench.report.methods import MEANINGS, compare_methods, default_methods, glossary
from skillpager.bench.report.report import PARTS, Part, find_out
from skillpager.bench.report.results import Results, run_facts
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.table import Cell, Table, format_cell, frame, with_ends
from skillpager.bench.run.methods import METHOD_STRATEGIES, parse_method
from skillpager.bench.run.suites import SUITES as REAL_SUITES
from skillpager.encoders.builtin import ENCODER_ID
from skillpager.strategies.registry import FAMILIES
from skillpager.tokens import default_counter

HOSTILE = '<script>alert(1)</script> | *a* `b` [c](d) _e_ \\ & "f"'


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every suite was run."""
    return results_of(tmp_path_factory.mktemp("whole"), whole_run(), suites=SUITES)


def cells(table: Table | None, name: str) -> list[Cell]:
    """Return the cells of the row of a name, without it."""
    assert table is not None
    rows = table.rows.to_numpy().tolist()
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
    ],
)
def test_cells_are_written_for_people(cell: Cell | Interval, text: str) -> None:
    assert format_cell(cell, 2) == text


def test_an_interval_stands_in_one_cell_and_p_values_are_bounded() -> None:
    rows = frame(
        [
            {
                "Method": "a",
                **with_ends("Suff.", Interval(1.5, 0, 2)),
                "… low": -1.0,
                "… high": 2.5,
                "p, x": 0.0301,
            },
            {"Method": "b", **with_ends("Suff.", 1.5), "… low": None, "… high": None, "p, x": 0.0001},
        ]
    )
    texts = Table("t", "T", rows, digits={"p, x": 3}).texts
    assert list(texts) == ["Method", "Suff.", "…", "p, x"]
    assert texts.to_numpy().tolist() == [
        ["a", "1.50 [0.00, 2.00]", "[−1.00, 2.50]", "0.030"],
        ["b", "1.50", "", "< 0.001"],
    ]


def table_of(*rows: tuple[str, Interval | None, float | None, int | None]) -> Table:
    """Return a small table in two groups."""
    named = [
        {"Method": name, **with_ends("Paper: Suff.", found), "Here: share": share, "Here: n": count}
        for name, found, share, count in rows
    ]
    return Table(
        "t", "Title <b>", frame(named), note="A <note>.", reference="paper §1", digits={"Here: share": 4}
    )


def test_markdown_shows_every_cell_as_it_is() -> None:
    text = table_of((HOSTILE, Interval(1, 0, 2), 0.5, 3)).to_markdown()
    html = MarkdownIt("gfm-like", {"linkify": False}).render(text)
    assert html.count("<td") == 4
    assert "<script" not in html
    assert "<em>" not in html
    assert "alert(1)&lt;/script&gt; | *a* `b` [c](d) _e_ \\ &amp; &quot;f&quot;" in html
    assert "Paper: Suff." in text


def test_html_escapes_everything_and_groups_columns() -> None:
    html = table_of((HOSTILE, Interval(1, 0, 2), None, 3)).to_html()
    assert "<script" not in html
    assert '<th scope="colgroup" colspan="2" class="group">Here</th>' in html
    assert '<th scope="row">&lt;script&gt;' in html
    assert "<caption><span>Title &lt;b&gt;</span></caption>" in html
    assert "A &lt;note&gt;." in html
    assert "Reference: paper §1." in html


def test_csv_has_a_column_for_each_number() -> None:
    table = table_of(("a", Interval(1.5, 0, 2), 0.5, 3), ('b, "c"', None, math.nan, None))
    found = list(csv.reader(io.StringIO(table.to_csv())))
    assert found == [
        ["Method", "Paper: Suff.", "Paper: Suff. low", "Paper: Suff. high", "Here: share", "Here: n"],
        ["a", "1.5", "0", "2", "0.5", "3"],
        ['b, "c"', "", "", "", "", ""],
    ]


# ---- the paper's tables


def part(title: str) -> Part:
    """Return the part of a report that has a title."""
    return next(part for part in PARTS if part.title == title)


def test_main_results_stand_beside_the_papers(results: Results) -> None:
    table = part("Main results").make(results)
    assert isinstance(table, Table)
    found = cells(table, "SkillPager")
    verdicts = whole_run()["mmr"]
    assert found[:5] == [78.89, 77.01, 80.61, 24.68, 47.04]
    assert found[5] == pytest.approx(100 * np.mean(verdicts))
    assert found[9:] == pytest.approx([10, 100 * 2 / 3, 60])
    assert TOKENS / FULL_TOKENS == 0.4
    assert table.is_strong == [False, False, False, False, True]
    assert "395 skills, 1,975 queries" in table.reference


TABLES_OF_SUITES = (
    *("Main results", "Concept ablation", "Queries that need concept nodes", "Graph augmentation"),
    *("Granularity", "Encoder", "Classifier", "λ sweep", "k sweep", "k by size"),
)


@pytest.mark.parametrize("title", TABLES_OF_SUITES)
def test_a_table_whose_suite_did_not_run_is_left_out(title: str, tmp_path: Path, results: Results) -> None:
    assert part(title).make(results) is not None
    assert part(title).make(results_of(tmp_path, {"mmr": [True], "full": [True]})) is None


def test_a_method_that_did_not_run_is_a_dash_and_is_named(tmp_path: Path) -> None:
    table = part("Main results").make(results_of(tmp_path, {"mmr": [True], "greedy_graph": [False]}))
    assert isinstance(table, Table)
    assert "Not run here: Full-document prompt, Top-k + dependency, Naive chunk + MMR." in table.note
    assert table.texts.iloc[3, 4:].tolist() == ["—"] * 5


def test_sweeps_use_the_ground_truth_alone(tmp_path: Path) -> None:
    verdicts = [True] * 5 + [False] * 15
    found = results_of(
        tmp_path,
        {"mmr@lambda=0.5": verdicts, "mmr@lambda=0.7": verdicts},
        subsets=("gt", "pool", "gt", "pool"),
    )
    table = part("λ sweep").make(found)
    assert isinstance(table, Table)
    assert cells(table, "λ = 0.7")[4] == 50
    assert "Here: 2 skills with curated answers, 10 queries." in table.note


def test_votes_that_agree_are_told_where_there_are_votes(tmp_path: Path, results: Results) -> None:
    folder = write_results(tmp_path, {"exec_only": [True]})
    judged = folder.judgments("evidence", "exec_only")
    votes = [(True, True, True)] * 15 + [(True, False, True)] * 5
    split = [replace(record, votes=each) for record, each in zip(judged, votes, strict=True)]
    write_records(folder.judgments_file("evidence", "exec_only"), split)
    table = part("Concept ablation").make(Results(folder, "evidence"))
    assert isinstance(table, Table)
    assert "All votes agree on 75.0 % of the verdicts, in the paper on 89.9 %." in table.note
    one_vote = part("Concept ablation").make(results)
    assert isinstance(one_vote, Table)
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
    assert small[2:] == [3, 15, 0, 0, 0, 0, 0, 0]
    assert large == [73.0, 79.0, 1, 5, 0, 0, 0, 100, 100, 100]


def test_data_is_counted(results: Results) -> None:
    table = stage1.composition(results)
    assert cells(table, "Skills in all") == [395, 4]
    assert cells(table, "Other skills: dev") == [None, 4]
    assert cells(table, "Nodes in all") == [22_774, 234]
    assert cells(table, "Nodes of a skill, least") == [1, 12]
    kinds = stage1.node_types(results)
    assert cells(kinds, "concept") == pytest.approx([11_369, 49.9, 78, 100 / 3])
    assert cells(kinds, "total")[2:] == [234, 100.0]


@pytest.mark.parametrize("subset", ["gt", "skillsbench"])
def test_the_ground_truth_is_counted_under_either_name(tmp_path: Path, subset: str) -> None:
    found = results_of(tmp_path, {"mmr": [True]}, subsets=(subset, subset, "pool", "own"))
    table = stage1.composition(found)
    assert cells(table, "Ground-truth skills") == [195, 2]
    assert cells(table, "Pool skills") == [200, 1]
    assert cells(table, "Other skills: own") == [None, 1]
    assert cells(table, "… mean of ground-truth skills") == [47.87, 27]
    assert found.ablation_skills == {"s0", "s1"}


def test_characters_are_those_of_the_bodies(results: Results) -> None:
    body = "# Skill 0\n\nRun `make` in folder 0 now.\n\nA folder is a place 0.\n"
    assert cells(stage1.composition(results), "Characters of a skill, least") == [166, len(body)]


def test_costs_are_of_the_skills_that_were_timed(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]})
    times = (2.0, None, 4.0, 9.0)
    records = [replace(each, seconds=time) for each, time in zip(folder.indexes(), times, strict=True)]
    write_records(folder.path / INDEXES, records)
    table = stage1.costs(Results(folder, "evidence"))
    assert cells(table, "Stage 1 of a skill, median (seconds)") == [pytest.approx(192), 4.0]
    assert cells(table, "… all skills, work of all workers (minutes)") == [pytest.approx(2359.2), 0.25]
    assert cells(table, "Skills whose stage 1 was timed") == [395, 3]
    assert cells(table, "Tokens of a query, mean") == [498, default_counter().count("How to do 0?")]
    assert cells(table, "Selection and page by mmr, median (ms)") == [None, 2]
    assert table is not None
    assert "1 of 4 indexes were stored before" in table.note


def test_a_scored_validation_is_shown(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"mmr": [True]})
    assert stage1.judge_validation(Results(folder, "evidence")) is None
    scored = {
        "all": {"cases": 96, "rate": 0.875, "kappa": 0.75},
        "3-0": {"cases": 48, "rate": 0.9, "kappa": None},
    }
    folder.update_manifest({"validation": {"evidence": scored}})
    table = stage1.judge_validation(Results(folder, "evidence"))
    assert cells(table, "all") == [82.29, 0.646, 87.5, 0.75, 96]
    assert cells(table, "2-1, divided") == [79.17, 0.583, None, None, None]


def test_the_parser_is_measured_against_labels(results: Results) -> None:
    table = stage1.parser_agreement(results)
    assert cells(table, "Nodes compared")[0] == 96
    assert table is not None
    assert list(table.texts) == ["", "Paper", "Here"]  # there is no second annotator


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
    assert cells(table, "bm25")[6:8] == [1, 0]


def test_the_area_under_a_curve_is_its_mean_height(tmp_path: Path) -> None:
    labels = [f"{name}@tokens={share}%" for name in ("head", "mmr@lambda=0.9") for share in (10, 50, 90)]
    labels = [label.replace("0.9@tokens", "0.9,tokens") for label in labels]
    never, ever = [False], [True]
    verdicts = dict(zip(labels, (never, never, ever, ever, ever, ever), strict=True))
    found = results_of(tmp_path, verdicts)
    best, other = read_curves(found)
    assert (best.method, other.method) == ("mmr@lambda=0.9", "head")
    assert best.shares == (0.1, 0.5, 0.9)
    assert best.area() == Interval(100, 100, 100)
    assert other.area().value == pytest.approx(25)  # a quarter of the range is the half triangle at its end
    assert other.points["sufficiency"].tolist() == [0, 0, 100]
    assert other.points["used"].tolist() == pytest.approx([0.4, 0.4, 0.4])
    table = budgets.matched_budgets(found)
    assert table is not None
    assert table.rows["Method"].tolist()[:2] == ["mmr@lambda=0.9", "head"]
    line = table.texts.set_index("Method").loc["head"].tolist()
    assert line[1:] == ["—", "—", "—", "—", "—", "0.0", "50.0", "40.0", "—", "—", "—"]
    half, end = other.differences(best)[1:]
    assert half == Interval(-100, -100, -100)
    assert end == Interval(0, 0, 0)


def test_the_budget_sweep_runs_every_strategy_with_shipped_models() -> None:
    swept = {parse_method(label).strategy.partition(":")[0] for label in REAL_SUITES["budget"]}
    others = {name for name, family in FAMILIES.items() if not family.local}
    assert {*METHOD_STRATEGIES} - swept == {"full", *others}


def test_a_curve_uses_the_queries_that_all_its_budgets_have(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"head@tokens=10%": [True], "head@tokens=90%": [True]})
    write_records(
        folder.judgments_file("evidence", "head@tokens=90%"),
        folder.judgments("evidence", "head@tokens=90%")[:19],
    )
    (curve,) = read_curves(Results(folder, "evidence"))
    assert len(curve.rows) == 19


def test_a_budget_is_taken_off_a_label() -> None:
    assert without_budget("mmr@lambda=0.9,tokens=40%") == "mmr@lambda=0.9"
    assert without_budget("chunk_mmr:128@tokens=1500") == "chunk_mmr:128"
    assert without_budget("mmr@k=5") == "mmr"


def test_the_frontier_is_what_no_other_beats() -> None:
    points = {"a": (10, 90), "b": (50, 50), "c": (50, 40), "d": (9, 90), "e": (80, 50)}
    assert list(frontier(pd.DataFrame.from_dict(points, orient="index")).index) == ["a", "e"]
    assert list(frontier(pd.DataFrame([(1, 1), (1, 1)], index=["x", "y"])).index) == ["x", "y"]


# ---- claims and findings


@pytest.mark.parametrize(
    ("low", "high", "expectation", "verdict"),
    [
        (1, 9, "higher", Verdict.HOLDS),
        (-9, -1, "higher", Verdict.FAILS),
        (-1, 9, "higher", Verdict.OPEN),
        (-9, -1, "lower", Verdict.HOLDS),
        (1, 9, "lower", Verdict.FAILS),
        (-4, 4, "alike", Verdict.HOLDS),
        (6, 9, "alike", Verdict.FAILS),
        (-9, -6, "alike", Verdict.FAILS),
        (-4, 6, "alike", Verdict.OPEN),
        (-30, 4, "no higher", Verdict.HOLDS),
        (6, 9, "no higher", Verdict.FAILS),
        (-4, 6, "no higher", Verdict.OPEN),
    ],
)
def test_a_claim_holds_when_all_of_the_interval_says_so(
    low: float, high: float, expectation: str, verdict: Verdict
) -> None:
    claim = claims.Claim("a claim", "a", "b", None, expectation)
    assert judge_claim(Interval((low + high) / 2, low, high), claim) is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(-0.4, 0.4, Verdict.HOLDS), (-0.4, 0.6, Verdict.OPEN), (0.6, 4, Verdict.FAILS)],
)
def test_a_claim_may_say_how_small_a_difference_is(low: float, high: float, verdict: Verdict) -> None:
    claim = claims.Claim("a claim", "a", "b", None, "alike", margin=0.5)
    assert judge_claim(Interval((low + high) / 2, low, high), claim) is verdict


def test_the_boundary_of_the_budget_is_among_the_claims(results: Results) -> None:
    table = claims.claims_table(results)
    below = cells(table, "A boundary of 80 nodes changes sufficiency by less than 0.5 points")
    assert below[:2] == ["mmr@boundary=80 − mmr@boundary=100", None]
    assert table is not None
    assert "of 120 nodes" in table.to_markdown()


def test_the_papers_differences_are_those_of_its_text() -> None:
    gaps = {(claim.first, claim.second, claim.measure.name): claim.paper for claim in CLAIMS}
    assert gaps["mmr", "greedy_graph", "Suff."] == pytest.approx(12.16)
    assert gaps["mmr", "exec_only", "Suff."] == pytest.approx(8.41)
    assert gaps["mmr@lambda=0.7", "mmr@lambda=0.5", "Suff."] == pytest.approx(31.90)
    assert gaps["mmr@lambda=0.9", "mmr@lambda=0.7", "Suff."] == pytest.approx(0.10)
    assert gaps["mmr@k=30", "mmr@k=20", "Suff."] == pytest.approx(0.71)
    scores = {
        (table.is_ablation, row.label): row.sufficiency
        for table in (paper.MAIN, paper.CONCEPT, paper.LAMBDA, paper.NODE_BUDGET)
        for row in table.rows
    }
    for claim in CLAIMS:
        places = [(claim.scope == "ablation", label) for label in (claim.first, claim.second)]
        if claim.measure.name == "Suff." and all(place in scores for place in places):
            assert claim.paper == pytest.approx(scores[places[0]] - scores[places[1]]), claim.text
    there = [(claim, 0.0 if claim.paper is None else claim.paper) for claim in CLAIMS]
    assert all(judge_claim(Interval(gap, gap, gap), claim) is Verdict.HOLDS for claim, gap in there)


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
    assert (small.claim.scope, large.claim.scope) == ("small skills", "large skills")
    assert (small.difference.value, large.difference.value) == (0, 100)
    assert (small.outcome, large.outcome) == (Verdict.HOLDS, Verdict.HOLDS)


@pytest.mark.parametrize(
    ("encoder", "text", "parts"),
    [
        ("sentence-transformers:BAAI/bge-m3", "bare", 0),
        ("openai:localhost:11434/bge-m3:latest", "bare", 0),
        ("openai:api.siliconflow.cn/BAAI/BGE-M3", "bare", 0),
        ("sentence-transformers:BAAI/bge-m3", "context", 1),
        ("sentence-transformers:BAAI/bge-m3-retromae", "bare", 1),
        (ENCODER_ID, "context", 2),
        ("onnx:0123456789abcdef", "bare", 1),
    ],
)
def test_a_claim_is_judged_only_with_the_papers_encoder_and_text(
    tmp_path: Path, encoder: str, text: str, parts: int
) -> None:
    folder = write_results(tmp_path, {"mmr@k=20": [True], "mmr@k=60": [False], "mmr@k=5": [True]})
    recipe = {"encoder": encoder, "embedded_text": text, "classifier": "local-1", "style": "plain"}
    folder.update_manifest({"run": recipe})
    found = Results(folder, "evidence")
    assert len(claims.differing_parts(found)) == parts
    checked = check_claims(found)
    # one claim comes out as in the paper, one the other way round; neither says anything of the paper then
    assert {each.outcome for each in checked} == {Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN}
    table = claims.claims_table(found)
    assert table is not None
    if parts:
        assert set(table.rows["Verdict"]) == {"not comparable"}
        assert "cannot tell whether a claim of the paper holds" in table.note
        assert encoder in table.note or text in table.note
        assert "does not hold" not in table.to_markdown().replace(table.note, "")
        (fact,) = [
            fact for label, fact in find_out(found) if label.startswith("Claims of the paper, not comp")
        ]
    else:
        assert table.rows["Verdict"].tolist() == [str(each.outcome) for each in checked]
        (fact,) = [
            fact for label, fact in find_out(found) if label == "Claims of the paper that were checked"
        ]
    assert fact.startswith(f"{len(checked)}: 1 ")
    assert table.rows["Here"].tolist() == [claims.OUTCOMES[each.outcome] for each in checked]


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


def test_facts_come_from_the_folder(results: Results) -> None:
    facts = dict(run_facts(results))
    assert facts["Encoder"] == "hashing-256"
    assert facts["Skills, queries"] == "4, 20"
    assert facts["Data"] == "dev; queries by annotator"


def test_every_strategy_has_a_meaning(results: Results) -> None:
    assert {name for name in MEANINGS if name[0] != "@"} == set(METHOD_STRATEGIES)
    assert cells(glossary(results), "sections") == [MEANINGS["sections"]]


def test_every_option_of_a_label_that_sets_a_limit_has_a_meaning(results: Results) -> None:
    told = set(glossary(results).rows["Name"])
    assert {"@lambda=0.9", "@k=20", "@tokens=40%", "@sufficiency=0.9"} <= told

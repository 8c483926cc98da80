"""Tables: their forms, the paper's beside ours, our own, and the paper's claims."""

import csv
import io
import math
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from bench_results import FULL_TOKENS, TOKENS, results_of, whole_run, write_results
from skillpager.bench.data.records import write_records
from skillpager.bench.report import claims, paper, tables
from skillpager.bench.report.claims import CLAIMS, Outcome, check_claims, has_power, judge_claim
from skillpager.bench.report.figures import DPI, WIDTH, Picture, frontier, sweep_figure
from skillpager.bench.report.methods import compare_curves, compare_methods, default_methods, read_curves
from skillpager.bench.report.report import SECTIONS
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.tables import Cell, Table, format_cell, frame
from skillpager.bench.run.methods import METHOD_STRATEGIES, OFFLINE, parse_method
from skillpager.bench.run.methods import SUITES as REAL_SUITES
from skillpager.encoders.builtin import ENCODER_ID


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every suite was run."""
    return results_of(tmp_path_factory.mktemp("whole"), whole_run())


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
    assert format_cell(cell) == text


def test_decimals_are_those_of_the_heading_and_p_values_are_bounded() -> None:
    lines = [
        {"p, x": 0.0301, "κ": 0.1239, "Coverage (%)": 8.76},
        {"p, x": 0.00001, "κ": 1, "Coverage (%)": 0},
    ]
    assert Table("t", "T", frame(lines)).texts.to_numpy().tolist() == [
        ["0.0301", "0.124", "8.8"],
        ["< 0.0001", "1", "0"],
    ]


def test_csv_has_a_column_for_each_number() -> None:
    rows = [
        {"Method": "a", "Paper: Suff.": Interval(1.5, 0, 2), "Here: share": 0.5, "Here: n": 3},
        {"Method": 'b, "c"', "Paper: Suff.": None, "Here: share": math.nan, "Here: n": None},
    ]
    table = Table("t", "Title", frame(rows))
    assert list(csv.reader(io.StringIO(table.to_csv()))) == [
        ["Method", "Paper: Suff.", "Paper: Suff. low", "Paper: Suff. high", "Here: share", "Here: n"],
        ["a", "1.5", "0", "2", "0.5", "3"],
        ['b, "c"', "", "", "", "", ""],
    ]
    assert table.groups == [("", 1), ("Paper", 1), ("Here", 2)]
    assert [is_number for *_, is_number in table.columns] == [False, True, True, True]
    assert table.texts.iloc[1].tolist() == ['b, "c"', "—", "—", "—"]


# ---- the paper's tables


def make(title: str, results: Results) -> Table | None:
    """Return the table of a report that has a title."""
    found = {name: maker for parts in SECTIONS.values() for name, maker, _ in parts}[title](results)
    assert found is None or isinstance(found, Table)
    return found


def test_main_results_stand_beside_the_papers(results: Results) -> None:
    table = make("Main results", results)
    assert table is not None
    paper_suff, nodes, reduction, ours, _, *rest = cells(table, "SkillPager")
    assert (paper_suff, nodes, reduction) == (Interval(78.89, 77.01, 80.61), 24.68, 47.04)
    assert isinstance(ours, Interval)
    assert ours.value == pytest.approx(100 * np.mean(whole_run()["mmr"]))
    assert rest == pytest.approx([10, 100 * 2 / 3, 60])
    assert TOKENS / FULL_TOKENS == 0.4
    assert "395 skills, 1,975 queries" in table.reference


TABLES_OF_SUITES = (
    *("Main results", "Concept ablation", "Graph augmentation", "Granularity"),
    *("λ sweep", "k sweep"),
)


@pytest.mark.parametrize("title", TABLES_OF_SUITES)
def test_a_table_whose_suite_did_not_run_is_left_out(title: str, tmp_path: Path, results: Results) -> None:
    assert make(title, results) is not None
    assert make(title, results_of(tmp_path, {"mmr": [True], "full": [True]})) is None


def test_sufficiency_by_the_place_of_needed_lines(tmp_path: Path) -> None:
    found = results_of(tmp_path, {"mmr": [True], "greedy_graph": [True, False]})
    found.queries["depth"] = [0.1, 1.0] * (len(found.queries) // 2)
    assert (table := make("Entry bias", found))
    assert table.texts["greedy_graph"].tolist() == ["100.00 [100.00, 100.00]", "—", "0.00 [0.00, 0.00]"]
    assert "last third" in list(check_claims(found)["scope"])


def test_a_method_that_did_not_run_is_a_dash_and_is_named(tmp_path: Path) -> None:
    table = make("Main results", results_of(tmp_path, {"mmr": [True], "greedy_graph": [False]}))
    assert table is not None
    assert "Not run here: Full-document prompt, Top-k + dependency, Naive chunk + MMR." in table.note
    assert table.texts.iloc[3, 4:].tolist() == ["—"] * 5


def test_sweeps_use_the_ground_truth_alone(tmp_path: Path) -> None:
    verdicts = [True] * 5 + [False] * 15
    found = results_of(
        tmp_path,
        {"mmr@lambda=0.5": verdicts, "mmr@lambda=0.7": verdicts},
        subsets=("gt", "pool", "gt", "pool"),
    )
    table = make("λ sweep", found)
    assert table is not None
    sufficiency = cells(table, "λ = 0.7")[2]
    assert isinstance(sufficiency, Interval)
    assert sufficiency.value == 50
    assert "Here: 2 skills with curated answers, 10 queries." in table.note


def test_node_types_are_counted(results: Results) -> None:
    kinds = tables.node_types(results)
    assert cells(kinds, "concept") == pytest.approx([11_369, 49.9, 78, 100 / 3])
    assert cells(kinds, "total")[2:] == [234, 100.0]


def test_the_parser_is_measured_against_labels(results: Results) -> None:
    table = tables.parser_agreement(results)
    assert cells(table, "Nodes compared")[0] == 96
    assert table is not None
    assert list(table.texts) == ["", "Paper", "Here"]  # there is no second annotator


# ---- our own


def test_default_methods_have_no_options_and_are_no_ablation(results: Results, tmp_path: Path) -> None:
    assert default_methods(results) == tuple(label for label in OFFLINE if label in whole_run())
    own = {"strangers:Last": [True], "strangers:Last@k=2": [True]}
    chosen = results_of(
        tmp_path, {"bm25": [True], "mmr": [True], "mmr@k=5": [True], "density:0.3": [True], **own}
    )
    assert default_methods(chosen) == ("mmr", "bm25", "strangers:Last")


def test_differences_are_tested_on_the_same_queries_and_corrected(tmp_path: Path) -> None:
    best = [True] * 20
    found = results_of(tmp_path, {"mmr": [False] * 20, "full": best, "bm25": [True] + [False] * 19})
    tested = {each.method: each for each in compare_methods(found, ["mmr", "full", "bm25"])}
    assert list(tested) == ["full", "bm25"]
    assert tested["full"].p_holm < 0.05 < tested["bm25"].p_holm
    assert tested["full"].p_holm == pytest.approx(2 * tested["full"].p)
    assert cells(tables.pairwise(found), "bm25")[3:5] == [1, 0]


def test_the_area_under_a_curve_is_its_mean_height(tmp_path: Path) -> None:
    labels = [f"{name}@tokens={share}%" for name in ("head", "mmr@lambda=0.9") for share in (10, 50, 90)]
    labels = [label.replace("0.9@tokens", "0.9,tokens") for label in labels]
    never, ever = [False], [True]
    verdicts = dict(zip(labels, (never, never, ever, ever, ever, ever), strict=True))
    found = results_of(tmp_path, verdicts)
    best, other = read_curves(found)
    assert (best.method, other.method) == ("mmr@lambda=0.9", "head")
    assert best.points.index.tolist() == [0.1, 0.5, 0.9]
    assert best.area() == Interval(100, 100, 100)
    assert other.area().value == pytest.approx(25)  # a quarter of the range is the half triangle at its end
    assert other.points["sufficiency"].tolist() == [0, 0, 100]
    assert other.points["used"].tolist() == pytest.approx([40, 40, 40])
    table = tables.matched_budgets(found)
    assert table is not None
    assert table.rows["Method"].tolist()[:2] == ["mmr@lambda=0.9", "head"]
    line = table.texts.set_index("Method").loc["head"].tolist()
    assert line[1:3] == ["−75.00 [−75.00, −75.00]", "≤\u00a00.0002"]  # the variant that uses its budgets
    assert line[3:] == ["—", "—", "—", "0.0", "50.0", "40.0", "—", "—", "—"]
    difference, _ = compare_curves([best, other], best)["head"]
    assert difference.value == pytest.approx(-75)


def test_the_budget_sweep_runs_every_strategy_with_shipped_models() -> None:
    swept = {parse_method(label).strategy.partition(":")[0] for label in REAL_SUITES["budget"]}
    assert {*METHOD_STRATEGIES} - swept == {"full", "lean", "entry", "section_bm25"}


def test_a_curve_uses_the_queries_that_all_its_budgets_have(tmp_path: Path) -> None:
    folder = write_results(tmp_path, {"head@tokens=10%": [True], "head@tokens=90%": [True]})
    write_records(
        folder.judgments_file("evidence", "head@tokens=90%"),
        folder.judgments("evidence", "head@tokens=90%")[:19],
    )
    (curve,) = read_curves(Results(folder, "evidence"))
    assert len(curve.rows) == 19


def test_the_frontier_is_what_no_other_beats() -> None:
    points = {"a": (10, 90), "b": (50, 50), "c": (50, 40), "d": (9, 90), "e": (80, 50)}
    assert list(frontier(pd.DataFrame.from_dict(points, orient="index")).index) == ["a", "e"]
    assert list(frontier(pd.DataFrame([(1, 1), (1, 1)], index=["x", "y"])).index) == ["x", "y"]


# ---- claims and findings


@pytest.mark.parametrize(
    ("low", "high", "expectation", "verdict"),
    [
        (-0.4, 0.4, "alike to half a point", Outcome.SAME),
        (-0.4, 0.6, "alike to half a point", Outcome.OPEN),
        (0.6, 4, "alike to half a point", Outcome.DIFFERENT),
        (1, 9, "higher", Outcome.SAME),
        (-9, -1, "higher", Outcome.DIFFERENT),
        (-1, 9, "higher", Outcome.OPEN),
        (-9, -1, "lower", Outcome.SAME),
        (1, 9, "lower", Outcome.DIFFERENT),
        (-4, 4, "alike", Outcome.SAME),
        (6, 9, "alike", Outcome.DIFFERENT),
        (-9, -6, "alike", Outcome.DIFFERENT),
        (-4, 6, "alike", Outcome.OPEN),
        (-30, 4, "no higher", Outcome.SAME),
        (6, 9, "no higher", Outcome.DIFFERENT),
        (-4, 6, "no higher", Outcome.OPEN),
    ],
)
def test_a_claim_holds_when_all_of_the_interval_says_so(
    low: float, high: float, expectation: str, verdict: Outcome
) -> None:
    name, _, small = expectation.partition(" to ")
    margin = 0.5 if small else claims.MARGIN
    assert judge_claim(Interval((low + high) / 2, low, high), name, margin) is verdict


def test_a_claim_that_could_not_have_come_out_otherwise_has_no_power(tmp_path: Path) -> None:
    few, many = Interval(3, 1, 6), Interval(84, 60, 100)
    assert [has_power(few, "alike"), has_power(many, "alike")] == [False, True]
    assert [has_power(few, "higher"), has_power(Interval(0.9, 0, 2), "higher")] == [True, False]
    assert not has_power(Interval(13, 9.5, 18), "no higher")
    folder = write_results(tmp_path, {"mmr@boundary=80": [True], "mmr@boundary=100": [True]})
    for label in ("mmr@boundary=80", "mmr@boundary=100"):
        same = [replace(each, picks=("n1",)) for each in folder.selections(label)]
        write_records(folder.selections_file(label), same)
    checked = check_claims(Results(folder, "evidence"))
    assert checked["outcome"].tolist() == [Outcome.NO_POWER]


def test_claims_are_judged_at_equal_tokens_where_both_methods_use_their_budgets(tmp_path: Path) -> None:
    shares = {
        f"{name}@{option}tokens={share}%": [share == 50 or name == "mmr"]
        for name, option in (("mmr", "lambda=0.9,"), ("greedy_graph", ""))
        for share in (10, 50)
    }
    found = results_of(tmp_path, {"mmr": [False], "greedy_graph": [True], **shares})
    _, claim = check_claims(found).itertuples()
    assert claim.outcome is Outcome.DIFFERENT
    assert (claim.equal_methods, claim.equal_outcome) == ("mmr@lambda=0.9 − greedy_graph", Outcome.SAME)
    assert claim.equal.value == pytest.approx(50)


def test_the_boundary_of_the_budget_is_among_the_claims(results: Results) -> None:
    table = claims.claims_table(results)
    below = cells(table, "A boundary of 80 nodes changes sufficiency by less than 0.5 points")
    assert below[0] == "mmr@boundary=80 − mmr@boundary=100"
    assert pd.isna(below[1])


def test_the_papers_differences_are_those_of_its_text() -> None:
    gaps = {(claim.first, claim.second, claim.measure): claim.paper for claim in CLAIMS.itertuples()}
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
    for claim in CLAIMS.itertuples():
        places = [(claim.scope == "ablation", label) for label in (claim.first, claim.second)]
        if claim.measure == "Suff." and claim.scope != "last third" and scores.keys() >= {*places}:
            assert claim.paper == pytest.approx(scores[places[0]] - scores[places[1]]), claim.text
    for claim in CLAIMS.fillna({"paper": 0.1}).itertuples():
        there = Interval(claim.paper, claim.paper, claim.paper)
        assert judge_claim(there, claim.expectation, claim.margin) is Outcome.SAME, claim.text


def test_claims_are_about_methods_of_the_suites() -> None:
    known = {label for suite in REAL_SUITES.values() for label in suite}
    assert {*CLAIMS["first"], *CLAIMS["second"]} <= known
    assert {
        row.label
        for table in (paper.MAIN, paper.CONCEPT, paper.LAMBDA, paper.NODE_BUDGET)
        for row in table.rows
    } <= known


def test_claims_are_checked_on_their_part_of_the_data(tmp_path: Path) -> None:
    large_gains = [False] * 10 + [True] * 5 + [False] * 5
    found = results_of(tmp_path, {"mmr@k=20": [False], "mmr@k=60": large_gains})
    checked = check_claims(found)
    assert checked["scope"].tolist() == ["small skills", "large skills"]
    assert [difference.value for difference in checked["difference"]] == [0, 100]
    assert checked["outcome"].tolist() == [Outcome.SAME, Outcome.SAME]


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
    for splitter, more in ("3", 1), ("3-paper", 0):
        folder.update_manifest({"run": {**recipe, "splitter": splitter}})
        found = Results(folder, "evidence")
        assert len(claims.differing_parts(found)) == parts + more
    checked = check_claims(found)
    # one claim comes out as in the paper, one the other way round
    assert {Outcome.SAME, Outcome.DIFFERENT} <= set(checked["outcome"])
    table = claims.claims_table(found)
    assert table is not None
    assert ("cannot tell whether a claim of the paper holds" in table.note) == bool(parts)
    assert table.rows["Here"].tolist() == checked["outcome"].map(str).tolist()


# ---- figures


@pytest.mark.parametrize("name", ["lambda-sweep", "k-sweep", "pareto", "matched-budgets"])
def test_a_figure_is_drawn_the_same_each_time(name: str, results: Results, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    makers = [
        maker
        for parts in SECTIONS.values()
        for title, maker, _ in parts
        if "figure" in title or "plot" in title
    ]
    for make_figure in makers:
        picture = make_figure(results)
        assert isinstance(picture, Picture)
        if picture.name != name:
            continue
        pixels = imread(io.BytesIO(picture.png))
        assert pixels.shape[1] == round(WIDTH * DPI)
        assert pixels[..., :3].std() > 0.02  # something is drawn
        assert picture.note.endswith(".")
        with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "axes.facecolor": "red"}):
            assert make_figure(results) == picture
        assert make_figure(results_of(tmp_path, {"mmr": [True]})) is None
    assert dict(matplotlib.rcParams) == before


def test_the_alternative_text_tells_the_numbers(results: Results) -> None:
    picture = sweep_figure(paper.LAMBDA, results)
    assert picture is not None
    verdicts = whole_run()["mmr@lambda=0.7"]
    assert f"λ = 0.7 {100 * np.mean(verdicts):.1f} % (paper 86.0 %)" in picture.alt

"""The tables and figures of README and docs, and the tables beside the published rows, are what the rows say."""

import csv
import re
import runpy
from pathlib import Path

import generate_agents
import generate_benchmark
import generate_models
import generate_readme
import generate_routing
import generate_torture
import pytest
from marked_blocks import read_blocks
from sklearn.metrics import cohen_kappa_score

from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
MEASURED = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
ROUTING = generate_routing.PAGE.read_text(encoding="utf-8")
MADE_OF_ROUTING = generate_routing.blocks()
ANEW = "run `make tables` and review the diff"
# blocks by the page that shows them
MADE = [
    (generate_agents.PAGE, generate_agents.make_blocks()),
    (generate_benchmark.PAGE, generate_benchmark.blocks(MEASURED)),
    (generate_models.PAGE, generate_models.blocks()),
    (generate_routing.PAGE, {name: MADE_OF_ROUTING[name] for name in read_blocks(ROUTING)}),  # a part of them
    (generate_torture.PAGE, {"torture": generate_torture.block()}),
    *generate_readme.blocks().items(),
]
BLOCKS = [pytest.param(page, *one, id=f"{page.name}-{one[0]}") for page, own in MADE for one in own.items()]


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize(("page", "name", "text"), BLOCKS)
def test_blocks_are_those_of_the_rows(page: Path, name: str, text: str) -> None:
    assert read_blocks(page.read_text(encoding="utf-8"))[name] == text, ANEW
    assert text
    assert "nan" not in text


def test_every_table_of_results_comes_from_rows() -> None:
    """A table of shares or differences has a block around it."""
    outside = re.sub(r"<!-- (.*?) -->\n.*?<!-- /\1 -->", "", MEASURED, flags=re.DOTALL)
    heads = re.findall(r"^(\|.*\|)\n\|[-| ]+\|$", outside, re.MULTILINE)
    assert heads
    assert [head for head in heads if "%" in head or "points" in head] == []


@pytest.mark.parametrize("run", generate_benchmark.published_runs())
def test_tables_of_a_run_are_those_of_its_rows(run: str) -> None:
    tables = generate_benchmark.tables_of(run)
    assert tables
    for name, made in tables.items():
        kept = generate_benchmark.RUNS / run / "tables" / f"{name}.csv"
        assert kept.read_text(encoding="utf-8") == made.to_csv(), f"{kept.name}: {ANEW}"


def test_the_measured_quality_is_that_of_the_rows() -> None:
    count = runpy.run_path(str(BENCHMARKS / "unseen.py"))["count"]
    counted = [{name: str(value) for name, value in row.items()} for row in count()]
    assert counted == rows(BENCHMARKS / "unseen.csv"), ANEW
    assert len(counted) == 56


@pytest.mark.parametrize("run", ["skillsbench", "test"])
@pytest.mark.parametrize("budget", [30, 50, 70])
def test_the_navigator_is_best_at_every_budget(run: str, budget: int) -> None:
    shown = rows(generate_benchmark.RUNS / run / "tables" / "matched-budgets.csv")
    assert len(shown) > 4
    best = max(shown, key=lambda row: float(row[f"Budget of {budget} %: Suff. (%)"]))
    assert best["Method"] == "navigator"


def test_the_readers_of_the_sample_agree_as_told() -> None:
    judged = rows(BENCHMARKS / "intraskill" / "dev" / "judgments" / "blind-96.csv")
    assert len(judged) == 96
    evidence = [row["evidence"] for row in judged]
    told = re.search(r"on ([\d.]+), ([\d.]+) and ([\d.]+) %\n\(κ ([\d.]+), ([\d.]+), ([\d.]+);", MEASURED)
    assert told
    for number in (1, 2, 3):
        answers = [row[f"reader_{number}"] for row in judged]
        agreement = 100 * sum(map(str.__eq__, answers, evidence)) / len(judged)
        assert float(told[number]) == pytest.approx(agreement, abs=0.06)
        assert float(told[number + 3]) == pytest.approx(cohen_kappa_score(answers, evidence), abs=0.006)
        assert ("insufficient", "sufficient") not in zip(answers, evidence, strict=True)


def test_the_votes_of_readers_are_complete_and_agree_as_told() -> None:
    told = re.findall(r"\| (\w+) \| all \| [\d.]+ \| ([\d.]+) \(\S+\) \| [\d.]+ \| ([\d.]+) \|", MEASURED)
    assert [data for data, _, _ in told] == ["skillsbench", "folders"]
    for data, accepted, kappa in told:
        pages = [row for row in rows(BENCHMARKS / "reader_votes.csv") if row["set"] == data]
        assert len({(row["query"], row["method"]) for row in pages}) == len(pages) == 60 * 5
        read = [sum(int(row[f"reader_{number}"]) for number in (1, 2, 3)) > 1 for row in pages]
        assert float(accepted) == pytest.approx(100 * sum(read) / len(read), abs=0.06)
        evidence = [row["evidence"] == "1" for row in pages]
        assert float(kappa) == pytest.approx(cohen_kappa_score(read, evidence), abs=0.006)


def test_there_are_no_figures_of_torture_tests_that_are_gone() -> None:
    parts = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "torture").glob("test_*.py")}
    assert {row["part"] for row in rows(generate_torture.RESULTS)} <= {*parts, "run"}

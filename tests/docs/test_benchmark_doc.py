"""The tables of docs/benchmark.md say what the run's own tables say."""

import csv
import re
from pathlib import Path

import pytest
from sklearn.metrics import cohen_kappa_score

from skillpager.bench.report.tables.claims import OUTCOMES

ROOT = Path(__file__).parents[2]
RUN = ROOT / "benchmarks" / "intraskill" / "dev"
DOCUMENT = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")


def shown(heading: str) -> dict[str, list[str]]:
    """Return the rows of the table below a heading, by their first cell."""
    section = DOCUMENT.split(f"### {heading}\n", 1)[1].split("\n### ", 1)[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows[1:]}


def measured(name: str, folder: Path = RUN / "tables") -> dict[str, dict[str, str]]:
    """Return the rows of a table of a run, by their first cell."""
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {next(iter(row.values())): row for row in rows}


def rounded(*cells: str) -> list[str]:
    return [f"{float(cell):.1f}" for cell in cells]


def test_methods_at_default_budgets() -> None:
    run = measured("all-methods")
    table = shown("At default budgets")
    assert set(table) == set(run)
    for method, (sufficient, interval, held, saved) in table.items():
        row = run[method]
        assert [sufficient, held, saved] == rounded(
            row["Suff. (%) [95 % CI]"], row["Coverage (%)"], row["Token red. (%)"]
        )
        assert interval.split("–") == rounded(row["… over skills low"], row["… over skills high"])


def test_methods_at_equal_budgets() -> None:
    run = measured("matched-budgets")
    table = shown("At equal budgets")
    assert set(table) == set(run)
    for method, (area, interval, *points) in table.items():
        row = run[method]
        assert area == f"{float(row['Area (%) [95 % CI]']):.1f}"
        assert interval.split("–") == rounded(row["Area (%) [95 % CI] low"], row["Area (%) [95 % CI] high"])
        assert points == rounded(*(row[f"Budget of {share} %: Suff. (%)"] for share in (30, 50, 70)))


def test_claims_are_counted() -> None:
    rows = measured("claims").values()
    assert {row["Verdict"] for row in rows} == {"not comparable"}
    came_out = [row["Here"] for row in rows]
    counts = re.search(
        r"of (\d+) claims .*?, (\d+) came out as in the paper, (\d+) did not, and (\d+) are open", DOCUMENT
    )
    assert counts
    assert list(map(int, counts.groups())) == [len(came_out), *map(came_out.count, OUTCOMES.values())]
    table = shown("The paper's claims")
    assert {cells[-1] for cells in table.values()} <= set(OUTCOMES.values())


def test_the_readers_of_the_sample_agree_as_told() -> None:
    with (RUN / "judgments" / "blind-96.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 96
    evidence = [row["evidence"] for row in rows]
    told = re.search(
        r"judge on ([\d.]+), ([\d.]+) and ([\d.]+) %\n\s+\(κ ([\d.]+), ([\d.]+), ([\d.]+);", DOCUMENT
    )
    assert told
    for number in (1, 2, 3):
        answers = [row[f"reader_{number}"] for row in rows]
        agreement = 100 * sum(map(str.__eq__, answers, evidence)) / len(rows)
        assert float(told[number]) == pytest.approx(agreement, abs=0.06)
        assert float(told[number + 3]) == pytest.approx(cohen_kappa_score(answers, evidence), abs=0.006)
        assert not any(
            a == "insufficient" and e == "sufficient" for a, e in zip(answers, evidence, strict=True)
        )


def test_the_readers_of_types_agree_as_told() -> None:
    with (RUN.parent / "samples" / "typed-96.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    parser, first, second = ([row[name] for row in rows] for name in ("parser", "reader_1", "reader_2"))
    agreement = [
        100 * sum(map(str.__eq__, *pair)) / len(rows)
        for pair in ((first, second), (parser, first), (parser, second))
    ]
    section = DOCUMENT.split("### Types", 1)[1]
    told = re.search(r"each other on ([\d.]+) %.*?classifier on ([\d.]+) and ([\d.]+) %", section, re.DOTALL)
    assert told
    assert list(map(float, told.groups())) == pytest.approx(agreement, abs=0.06)


@pytest.mark.parametrize(("table", "prefix"), [("lambda-sweep", "λ = "), ("k-sweep", "k = ")])
def test_the_sweeps_with_two_encoders(table: str, prefix: str) -> None:
    told = shown("With an encoder of high cosines")
    bge, minilm = (measured(table, RUN.parent / name) for name in ("bge-small", "minilm"))
    assert set(bge) == set(minilm)
    for method in bge:
        ours = [
            run[method][heading]
            for run in (bge, minilm)
            for heading in ("Here: Suff. (%) [95 % CI]", "Here: Nodes")
        ]
        papers = [bge[method][heading] for heading in ("Paper: Suff. (%) [95 % CI]", "Paper: Nodes")]
        assert told[method.removeprefix(prefix).lower()] == rounded(*papers, *ours)

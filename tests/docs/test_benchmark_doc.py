"""The tables of docs/measured.md, and those beside the published rows, are what the rows say."""

import csv
import re
from pathlib import Path

import generate_benchmark
import pytest
from marked_blocks import read_blocks
from sklearn.metrics import cohen_kappa_score

ROOT = Path(__file__).parents[2]
RUN = ROOT / "benchmarks" / "intraskill" / "dev"
DOCUMENT = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
BLOCKS = read_blocks(DOCUMENT)
MADE = generate_benchmark.blocks(DOCUMENT)
ANEW = "run `make tables` and review the diff"
# rows of all runs together: they are in every clone
MOST_BYTES = 6_000_000


@pytest.mark.parametrize("name", MADE)
def test_blocks_are_those_of_the_rows(name: str) -> None:
    assert BLOCKS[name] == MADE[name], ANEW
    assert "nan" not in BLOCKS[name]


@pytest.mark.parametrize("run", generate_benchmark.published_runs())
def test_tables_are_those_of_the_rows(run: str) -> None:
    tables = generate_benchmark.tables_of(run)
    assert tables
    for name, made in tables.items():
        kept = generate_benchmark.RUNS / run / "tables" / f"{name}.csv"
        assert kept.read_text(encoding="utf-8") == made.to_csv(), f"{kept.name}: {ANEW}"


def test_every_table_of_results_comes_from_rows() -> None:
    """A table of shares or differences has a block around it."""
    outside = re.sub(r"<!-- (.*?) -->\n.*?<!-- /\1 -->", "", DOCUMENT, flags=re.DOTALL)
    heads = re.findall(r"^(\|.*\|)\n\|[-| ]+\|$", outside, re.MULTILINE)
    assert heads
    assert [head for head in heads if "%" in head or "points" in head] == []


def test_a_table_that_a_run_does_not_have_is_named() -> None:
    with pytest.raises(SystemExit, match="the run dev has no table nonsense; it has default"):
        generate_benchmark.block("dev", "nonsense")


def test_rows_are_small() -> None:
    files = list((ROOT / "benchmarks").rglob("*.xz"))
    assert files
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


def test_the_readers_of_the_sample_agree_as_told() -> None:
    with (RUN / "judgments" / "blind-96.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 96
    evidence = [row["evidence"] for row in rows]
    told = re.search(
        r"judge on ([\d.]+), ([\d.]+) and ([\d.]+) %\n\s*\(κ ([\d.]+), ([\d.]+), ([\d.]+);", DOCUMENT
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

"""The figures of docs/security.md are those of the last `make torture`."""

import csv
import runpy

from conftest import ROOT

RESULTS = ROOT / "benchmarks" / "torture.csv"


def test_the_figures_are_the_committed_ones() -> None:
    block = runpy.run_path(str(ROOT / "docs" / "generate_torture.py"))["block"]()
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    assert f"<!-- torture -->\n{block}<!-- /torture -->" in page, "run `python docs/generate_torture.py`"


def test_there_are_no_figures_of_parts_that_are_gone() -> None:
    with RESULTS.open(encoding="utf-8", newline="") as file:
        measured = {row["part"] for row in csv.DictReader(file)}
    parts = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / "torture").glob("test_*.py")}
    assert measured <= {*parts, "run"}

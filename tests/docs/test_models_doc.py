"""The tables of docs/measured.md say what the measurements say."""

import csv
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
BLOCKS: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "generate_models.py"))["blocks"]()


@pytest.mark.parametrize("name", BLOCKS)
def test_tables_are_those_of_the_measurements(name: str) -> None:
    assert f"<!-- {name} -->\n{BLOCKS[name]}<!-- /{name} -->" in PAGE, "run `python docs/generate_models.py`"
    assert BLOCKS[name].count("\n") > 2


def measured(name: str) -> list[dict[str, str]]:
    """Return the rows of a kept table."""
    with (ROOT / "benchmarks" / "models" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_kept_tables_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every interval of the page comes back from the rows, one for each query, method and budget."""
    monkeypatch.syspath_prepend(str(ROOT / "training"))
    tables = runpy.run_path(str(ROOT / "training" / "tables.py"))
    for name, made in tables["tables_of"](tables["read_rows"](ROOT / "benchmarks" / "models")).items():
        kept = (ROOT / "benchmarks" / "models" / f"{name}.csv").read_text(encoding="utf-8")
        assert kept == made.to_csv(index=False, lineterminator="\n"), "run `python training/tables.py`"


@pytest.mark.parametrize("series", ["long", "short"])
@pytest.mark.parametrize("reduction", ["40 %", "50 %", "60 %", "70 %"])
def test_the_navigator_is_best_at_every_budget(series: str, reduction: str) -> None:
    wanted = (series, "plain", reduction)
    rows = [row for row in measured("pages") if (row["series"], row["style"], row["budget"]) == wanted]
    assert len(rows) > 4
    assert max(rows, key=lambda row: float(row["sufficiency"]))["method"] == "navigator"

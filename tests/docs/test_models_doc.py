"""The tables of docs/models.md and of the README say what the measurements say."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "benchmarks" / "models"
DOCUMENT = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
REDUCTIONS = ("40 %", "50 %", "60 %", "70 %")


def measured(name: str) -> list[dict[str, str]]:
    """Return the rows of a kept table."""
    with (KEPT / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PAGES = measured("pages")


def page(**wanted: str) -> dict[str, str]:
    """Return the one row of pages that has these values."""
    (found,) = [row for row in PAGES if all(row[name] == value for name, value in wanted.items())]
    return found


def rows_below(text: str) -> dict[str, list[str]]:
    """Return the rows of the first table below a piece of text of the document, by their first cell."""
    table = re.split(r"\n(?=[^|\n])", DOCUMENT.split(text, 1)[1].split("\n| ", 1)[1], maxsplit=1)[0]
    rows = [line.strip("| ").replace("*", "").split(" | ") for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows[2:] if len(row) > 1}


def with_interval(row: dict[str, str]) -> str:
    return f"{row['sufficiency']} ({row['low']}–{row['high']})"


@pytest.mark.parametrize(
    ("skills", "title"),
    [("all", "All 195 skills, 975 queries**"), ("dev", "Of these, `dev`: 40 skills, 200 queries**")],
)
def test_pages_of_a_fixed_size(skills: str, title: str) -> None:
    table = rows_below(title)
    assert len(table) == 13
    for method, cells in table.items():
        rows = [
            page(skills=skills, folds="skill", style="plain", method=method, budget=reduction)
            for reduction in REDUCTIONS
        ]
        assert cells == [with_interval(row) for row in rows]


def test_the_navigator_is_best_at_every_budget() -> None:
    for skills in ("all", "dev"):
        for reduction in REDUCTIONS:
            rows = [
                row
                for row in PAGES
                if (row["skills"], row["folds"], row["style"], row["budget"])
                == (skills, "skill", "plain", reduction)
            ]
            best = max(rows, key=lambda row: float(row["sufficiency"]))
            assert best["method"] == "navigator"


def test_pages_without_a_limit() -> None:
    table = rows_below("## Pages without a limit")
    assert len(table) == 10
    for name, cells in table.items():
        promise = re.fullmatch(r"`--sufficiency (.*)`", name)
        method = "navigator" if promise else name.split(",")[0]
        wanted = {
            "skills": "dev" if "dev" in name else "all",
            "folds": "skill",
            "method": method,
            "budget": f"P {promise[1]}" if promise else "default",
        }
        plain, marked = (page(style=style, **wanted) for style in ("plain", "marked"))
        assert cells == [
            with_interval(plain),
            plain["coverage"],
            plain["token_reduction"],
            with_interval(marked),
            marked["token_reduction"],
        ]


@pytest.mark.parametrize(
    ("title", "count"), [("**By kind of query and size of skill**", 9), ("By repository, `navigator`", 6)]
)
def test_groups(title: str, count: int) -> None:
    kept = {(row["group"], row["method"]): row for row in measured("groups") if row["budget"] == "default"}
    table = rows_below(title)
    assert len(table) == count
    for group, cells in table.items():
        ours, theirs = kept[group, "navigator"], kept[group, "sections"]
        assert cells == [
            ours["queries"],
            with_interval(ours),
            ours["token_reduction"],
            with_interval(theirs),
            theirs["token_reduction"],
        ]


def test_skills_of_repositories_never_seen() -> None:
    table = rows_below("## Skills of repositories never seen")
    assert len(table) == 5
    for method, cells in table.items():
        rows = [
            page(skills="all", folds="repository", style="plain", method=method, budget=budget)
            for budget in (*REDUCTIONS, "default")
        ]
        assert cells == [*map(with_interval, rows), rows[-1]["token_reduction"]]


def test_what_a_smaller_encoder_costs() -> None:
    kept = [list(row.values()) for row in measured("encoders")]
    assert len(kept) == 8
    assert rows_below("## A smaller encoder?") == {name: values for name, *values in kept}


def test_promises() -> None:
    kept = [row for row in measured("promises") if row["folds"] == "skill"]
    table = rows_below("## Does the promise hold?")
    assert table == {row["promised"]: [row["observed"], f"{int(row['pages']):,}"] for row in kept}


def test_what_every_part_is_worth() -> None:
    kept = [list(row.values()) for row in measured("ablation")]
    assert len(kept) == 16
    assert rows_below("## What each part adds") == {name: values for name, *values in kept}

"""Write the quality of pages into README.md and docs/measured.md: `python docs/generate_readme.py`.

It comes from `benchmarks/promise.csv`, which `training/train.py` writes, and from
`benchmarks/unseen.csv`, which `benchmarks/unseen.py` counts from the rows beside it.
"""

import csv
from pathlib import Path

from marked_blocks import write_blocks

ROOT = Path(__file__).parent.parent
README, MEASURED = ROOT / "README.md", ROOT / "docs" / "measured.md"
DATA = {"skillsbench": "SkillsBench", "test": "four repositories", "test, short": "these, short queries"}
ROWS = {
    ("marked", "navigator"): "as printed by default",
    ("marked", "navigator@sufficiency=0.95"): "`--sufficiency 0.95`",
    ("marked", "lean"): "`--strategy lean`",
    ("marked", "sections"): "`--strategy sections`",
    ("marked", "mmr"): "`--strategy mmr`",
    ("plain", "navigator"): "`--style plain`",
    ("plain", "mmr"): "`--style plain --strategy mmr`: the paper's selection, on our encoder",
}


# the rows of the table of authors that no model has seen
REQUESTS = {
    ("several files", "long"): "folders, long requests",
    ("several files", "short"): "folders, short requests",
    ("one file", "long"): "single files, long requests",
    ("one file", "short"): "single files, short requests",
    ("one file", "broad"): "single files, broad requests (“the full checklist”)",
}


def main() -> None:
    """Replace every block of both files."""
    for file, made in blocks().items():
        write_blocks(file, made)


def blocks() -> dict[Path, dict[str, str]]:
    """Return the Markdown of each block by its file and name."""
    return {
        README: {"promise": _promise(told=False)},
        MEASURED: {"promise": _promise(told=True), "covered": _covered(), "quality": _quality()},
    }


def _promise(*, told: bool) -> str:
    """Return the table of authors never seen; with how well the chances that pages tell hold if `told`."""
    with (ROOT / "benchmarks" / "promise.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["pages"], row["skills"], row["queries"]): row for row in csv.DictReader(file)}
    heads = ["requests", "number", "sufficient | saved | tokens", "lean: sufficient | saved | tokens"]
    heads += ["calibration error of the chance | AUC"] * told
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---|' * (7 + 2 * told)}"]
    for (skills, queries), name in REQUESTS.items():
        default, lean = (rows[pages, skills, queries] for pages in ("default", "lean"))
        cells = [name, default["count"]]
        for row in (default, lean):
            cells += [f"{100 * float(row[key]):.1f} %" for key in ("sufficient", "saved")]
            cells.append(f"{float(row['tokens']):,.0f}")
        cells += [default["calibration_error"], default["auc"]] * told
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _covered() -> str:
    """Return how well the chance of being covered tells answered queries from near misses."""
    with (ROOT / "benchmarks" / "promise.csv").open(encoding="utf-8", newline="") as file:
        areas = {row["queries"]: row["auc"] for row in csv.DictReader(file) if row["pages"] == "covered"}
    return (
        "The chance that a skill answers a query at all (`page.covered`) is higher for an answered query\n"
        "than for a near miss, a request of the same field that the skill does not answer, with an AUC of "
        f"{areas['long and short']}, and of {areas['all']} with broad requests.\n"
    )


def _unseen() -> dict[tuple[str, str, str], dict[str, str]]:
    with (ROOT / "benchmarks" / "unseen.csv").open(encoding="utf-8", newline="") as file:
        return {(row["data"], row["style"], row["method"]): row for row in csv.DictReader(file)}


def _quality() -> str:
    rows = _unseen()
    heads = [f"{name}: sufficient (95 % CI) | saved" for name in DATA.values()]
    lines = [f"| page | {' | '.join(heads)} |", f"|---|{'---|' * 2 * len(DATA)}"]
    for style, method in ROWS:
        cells = [ROWS[style, method]]
        for name in DATA:
            row = rows[name, style, method]
            cells.append(f"{_one(row['sufficiency'])} % ({_one(row['low'])}–{_one(row['high'])})")
            cells.append(f"{_one(row['token_reduction'])} %")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _one(number: str) -> str:
    return f"{float(number):.1f}"


if __name__ == "__main__":
    main()

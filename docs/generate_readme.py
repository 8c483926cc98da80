"""Write the quality of pages into README.md and documents: `python docs/generate_readme.py`.

It comes from `benchmarks/promise.csv` and the log of the navigator, which `training/train.py` writes, and
from `benchmarks/unseen.csv`, which `benchmarks/unseen.py` counts from the rows beside it.
"""

import csv
import json
from collections.abc import Mapping
from pathlib import Path

from marked_blocks import write_blocks

ROOT = Path(__file__).parent.parent
README, MEASURED = ROOT / "README.md", ROOT / "docs" / "measured.md"
STRATEGIES = ROOT / "docs" / "strategies.md"
LOG = ROOT / "src" / "skillpager" / "models" / "navigator" / "training.json"
DATA = {"skillsbench": "SkillsBench", "test": "four repositories", "test, short": "these, short queries"}
# of `benchmarks/authors.py`
AUTHORS = {"two-wants": "two wants", "more-wants": "three or four wants", "short": "short", "broad": "broad"}
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
    """Replace every block of each file."""
    for file, made in blocks().items():
        write_blocks(file, made)


def blocks() -> dict[Path, dict[str, str]]:
    """Return the Markdown of each block by its file and name."""
    return {
        README: {"promise": _promise(told=False)},
        MEASURED: {
            "promise": _promise(told=True),
            "prices": _prices(),
            "filled": _filled(),
            "covered": _covered(),
            "authors": _authors(),
            "quality": _quality(),
        },
        STRATEGIES: {"notes": _notes()},
    }


def _rows() -> dict[tuple[str, str, str], dict[str, str]]:
    """Return the rows of pages by kind of pages, skills and requests."""
    with (ROOT / "benchmarks" / "promise.csv").open(encoding="utf-8", newline="") as file:
        return {(row["pages"], row["skills"], row["queries"]): row for row in csv.DictReader(file)}


def _promise(*, told: bool) -> str:
    """Return the table of authors never seen; with how well the chances that pages tell hold if `told`."""
    rows = _rows()
    heads = ["requests", "number", "sufficient | saved | tokens", "lean: sufficient | saved | tokens"]
    heads += ["calibration error of the chance | AUC"] * told
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---|' * (7 + 2 * told)}"]
    for (skills, queries), name in REQUESTS.items():
        default, lean = rows[_shipped(skills, queries), skills, queries], rows["lean", skills, queries]
        cells = [name, default["count"]]
        for row in (default, lean):
            cells += [f"{100 * float(row[key]):.1f} %" for key in ("sufficient", "saved")]
            cells.append(f"{float(row['tokens']):,.0f}")
        cells += [default["calibration_error"], default["auc"]] * told
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shipped(skills: str, queries: str) -> str:
    """Return which pages of the run are those by default: short requests now have twice the price."""
    return "twice the price" if skills.startswith("one file") and queries == "short" else "default"


def _prices() -> str:
    """Return shares of pages that suffice @ of tokens saved, at other prices, and for older skills."""
    rows = _rows()
    kinds = {(skills, kind): kind for skills, kind in REQUESTS if skills == "one file"}
    kinds |= {("one file, older", kind): f"{kind}, older skills" for kind in ("long", "short")}
    pages = ("half the price", "default", "twice the price", "three times the price")
    lines = [f"| sufficient@saved (%) | {' | '.join(pages)} |", f"|---|{'---|' * len(pages)}"]
    for (skills, queries), name in kinds.items():
        cells = [_point(rows[each, skills, queries]) for each in pages]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines) + "\n"


def _point(row: Mapping[str, str]) -> str:
    return f"{100 * float(row['sufficient']):.1f}@{100 * float(row['saved']):.1f}"


def _filled() -> str:
    """Return how many pages of folders suffice that are filled, and how many of whole sections by BM25."""
    rows, ceilings = _rows(), ("2000", "4000", "8000")
    lines = [f"| sufficient (%) | {' | '.join(f'{int(each):,} tokens' for each in ceilings)} |"]
    lines.append(f"|---|{'---|' * len(ceilings)}")
    for kind, name in {"filled": "`--fill`", "BM25": "whole sections by BM25"}.items():
        found = [rows[f"{kind} to {each}", "several files", "all"]["sufficient"] for each in ceilings]
        lines.append(f"| {name} | {' | '.join(f'{100 * float(share):.1f}' for share in found)} |")
    return "\n".join(lines) + "\n"


def _notes() -> str:
    """Return what notes on nodes change."""
    rows, log = _rows(), json.loads(LOG.read_text(encoding="utf-8"))
    heads = ("requests (%)", "AUC of needs", "tokens to the last needed node", "sufficient pages", "saved")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for queries in ("long", "short", "broad"):
        of = [log[name][queries] for name in ("ranking_without_notes", "ranking_with_notes")]
        notes = ("one file", "one file with notes")
        pages = [rows[_shipped(skills, queries), skills, queries] for skills in notes]
        cells = [[each[key] for each in of] for key in ("auc", "share_to_read")]
        cells += [[each[key] for each in pages] for key in ("sufficient", "saved")]
        shown = ["→".join(f"{100 * float(value):.1f}" for value in pair) for pair in cells]
        lines.append(f"| {queries} ({pages[1]['count']}) | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _covered() -> str:
    """Return how well the chance of being covered tells answered queries from near misses."""
    rows = _rows()
    areas = {name: rows["covered", "all", name]["auc"] for name in ("all", "long and short")}
    return (
        "The chance that a skill answers a query (`page.covered`) is higher for an answered query\n"
        "than for a near miss, a request of the same field that the skill does not answer, with an AUC of "
        f"{areas['long and short']}, and of {areas['all']} with broad requests.\n"
    )


def _unseen() -> dict[tuple[str, str, str], dict[str, str]]:
    with (ROOT / "benchmarks" / "unseen.csv").open(encoding="utf-8", newline="") as file:
        return {(row["data"], row["style"], row["method"]): row for row in csv.DictReader(file)}


def _quality() -> str:
    rows = _unseen()
    heads = [f"{name}: sufficient (95 % CI) | saved" for name in DATA.values()]
    lines = [f"| page (%) | {' | '.join(heads)} |", f"|---|{'---|' * 2 * len(DATA)}"]
    for style, method in ROWS:
        cells = [ROWS[style, method]]
        for name in DATA:
            row = rows[name, style, method]
            cells.append(f"{_one(row['sufficiency'])} ({_one(row['low'])}–{_one(row['high'])})")
            cells.append(_one(row["token_reduction"]))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _authors() -> str:
    """Return shares of the shipped models' pages that suffice @ of tokens saved, by kind of request."""
    rows = _unseen()
    lines = [f"| sufficient@saved (%) | {' | '.join(AUTHORS.values())} |", f"|---|{'---|' * len(AUTHORS)}"]
    for method in ("navigator", "lean", "sections", "mmr"):
        found = [rows[f"authors-{kind}", "marked", method] for kind in AUTHORS]
        cells = [f"{_one(row['sufficiency'])}@{_one(row['token_reduction'])}" for row in found]
        lines.append(f"| {' | '.join([ROWS['marked', method], *cells])} |")
    with (ROOT / "benchmarks" / "authors.csv").open(encoding="utf-8", newline="") as file:
        promises = {row["requests"]: row for row in csv.DictReader(file)}
    every, parts = promises["all"], promises["all but whole skills"]
    promised, sufficient = (f"{100 * float(every[name]):.1f} %" for name in ("promised", "sufficient"))
    lines.append(
        f"\nDefault pages promise {promised}, and {sufficient} suffice: calibration error "
        f"{every['calibration_error']}, AUC {every['auc']}; {parts['calibration_error']} and {parts['auc']} "
        f"of the {parts['pages']} that leave something out ([by kind](../benchmarks/authors.csv))."
    )
    return "\n".join(lines) + "\n"


def _one(number: str) -> str:
    return f"{float(number):.1f}"


if __name__ == "__main__":
    main()

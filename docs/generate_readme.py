"""Write the quality of pages into README.md and docs/measured.md: `python docs/generate_readme.py`.

It comes from `benchmarks/unseen.csv`, which `benchmarks/unseen.py` counts from the rows beside it.
"""

import csv
from pathlib import Path

from marked_blocks import write_blocks

ROOT = Path(__file__).parent.parent
README, MEASURED = ROOT / "README.md", ROOT / "docs" / "measured.md"
DATA = {
    "skillsbench": "SkillsBench",
    "test": "four repositories",
    "test, short": "these, short queries",
}
ROWS = {
    ("marked", "navigator"): "as printed by default",
    ("marked", "navigator@sufficiency=0.95"): "`--sufficiency 0.95`",
    ("marked", "navigator@sufficiency=0.7"): "`--sufficiency 0.7`",
    ("marked", "sections"): "`--strategy sections`",
    ("marked", "hybrid"): "`--strategy hybrid`",
    ("marked", "mmr"): "`--strategy mmr`",
    ("plain", "navigator"): "`--style plain`",
    ("plain", "mmr"): "`--style plain --strategy mmr`: the paper's selection",
}


# the rows of the README
FIRST = [("marked", "navigator"), ("marked", "navigator@sufficiency=0.95"), ("marked", "mmr")]


def main() -> None:
    """Replace every block of both files."""
    for file, made in blocks().items():
        write_blocks(file, made)


def blocks() -> dict[Path, dict[str, str]]:
    """Return the Markdown of each block by its file and name."""
    return {
        README: {"quality": _quality(FIRST)},
        MEASURED: {"quality": _quality(list(ROWS))},
    }


def _unseen() -> dict[tuple[str, str, str], dict[str, str]]:
    with (ROOT / "benchmarks" / "unseen.csv").open(encoding="utf-8", newline="") as file:
        return {(row["data"], row["style"], row["method"]): row for row in csv.DictReader(file)}


def _quality(shown: list[tuple[str, str]]) -> str:
    rows = _unseen()
    heads = [f"{name}: sufficient (95 % CI) | saved" for name in DATA.values()]
    lines = [f"| page | {' | '.join(heads)} |", f"|---|{'---|' * 2 * len(DATA)}"]
    for style, method in shown:
        cells = [ROWS[style, method]]
        for name in DATA:
            row = rows[name, style, method]
            cells.append(f"{_one(row['sufficiency'])} % ({_one(row['low'])}–{_one(row['high'])})")
            cells.append(f"{_one(row['token_reduction'])} %")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, f"| the whole skill |{' 100 % | 0 % |' * len(DATA)}"]) + "\n"


def _one(number: str) -> str:
    return f"{float(number):.1f}"


if __name__ == "__main__":
    main()

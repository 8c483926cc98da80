"""Write the figures of README.md from the committed results: `python docs/generate_readme.py`.

The quality comes from `benchmarks/unseen.csv`, which `benchmarks/unseen.py` counts from the rows in
`benchmarks/unseen`, the speed from `benchmarks/results.json` (`make bench`).
"""

import csv
import json
from pathlib import Path

from marked_blocks import write_blocks

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DATA = {
    "skillsbench": "SkillsBench",
    "test": "four more repositories",
    "test, short": "the same, short queries",
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


def main() -> None:
    """Replace every block of the README."""
    write_blocks(README, blocks())


def blocks() -> dict[str, str]:
    """Return the Markdown of each block by its name."""
    return {"headline": _headline(), "quality": _quality(), "speed": _speed()}


def _unseen() -> dict[tuple[str, str, str], dict[str, str]]:
    with (ROOT / "benchmarks" / "unseen.csv").open(encoding="utf-8", newline="") as file:
        return {(row["data"], row["style"], row["method"]): row for row in csv.DictReader(file)}


def _headline() -> str:
    row = _unseen()["skillsbench", "marked", "navigator"]
    sufficient, saved = _one(row["sufficiency"]), _one(row["token_reduction"])
    return (
        f"On {row['queries']} queries about {row['skills']} skills of SkillsBench, which our models have not "
        f"seen, **{sufficient} % of the pages are\nsufficient: they hold the lines that the query needs, "
        f"with {saved} % fewer tokens** ([how this is measured](#measured)).\n"
    )


def _quality() -> str:
    rows = _unseen()
    heads = [f"{name}: sufficient (95 % CI over queries) | saved" for name in DATA.values()]
    lines = [f"| page | {' | '.join(heads)} |", f"|---|{'---|' * 2 * len(DATA)}"]
    for (style, method), label in ROWS.items():
        cells = [label]
        for name in DATA:
            row = rows[name, style, method]
            cells.append(f"{_one(row['sufficiency'])} % ({_one(row['low'])}–{_one(row['high'])})")
            cells.append(f"{_one(row['token_reduction'])} %")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, f"| the whole skill |{' 100 % | 0 % |' * len(DATA)}"]) + "\n"


def _speed() -> str:
    entries = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
    rows = [
        f"| {check['what']} | {check['measured']:.3g} {check['unit']} | {entry['date'][:10]} |"
        for entry in entries.values()
        for check in entry["report"]["checks"]
    ]
    return "\n".join(["| | | measured on |", "|---|---|---|", *rows]) + "\n"


def _one(number: str) -> str:
    return f"{float(number):.1f}"


if __name__ == "__main__":
    main()

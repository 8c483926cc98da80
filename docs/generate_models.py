"""Write the tables of docs/measured.md from the measurements: `python docs/generate_models.py`.

`training/tables.py` writes the rows in `benchmarks/models`,
`training/train.py` the logs beside the models.
"""

import csv
import json
from pathlib import Path
from typing import Any

from marked_blocks import table, write_blocks

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measured.md"
KEPT = ROOT / "benchmarks" / "models"
MODELS = ROOT / "src" / "skillpager" / "models"
MARKED = ("mmr", "sections", "navigator")
PROMISES = ("0.5", "0.7", "0.8", "0.9", "0.95")


def main() -> None:
    """Replace the blocks of the page."""
    write_blocks(PAGE, blocks())


def blocks() -> dict[str, str]:
    """Return the Markdown of each block by its name."""
    return {
        "unlimited": unlimited(),
        "promises": promises(),
        "types": types(),
    }


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a measurement."""
    with (KEPT / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def log_of(model: str) -> Any:
    """Return the training log of a model."""
    return json.loads((MODELS / model / "training.json").read_text(encoding="utf-8"))


def interval(row: dict[str, str]) -> str:
    """Return sufficiency with its interval."""
    return f"{row['sufficiency']} ({row['low']}–{row['high']})"


def pages() -> dict[tuple[str, str, str, str], dict[str, str]]:
    """Return the rows of pages by series of queries, style, method and budget."""
    return {(row["series"], row["style"], row["method"], row["budget"]): row for row in rows("pages")}


def unlimited() -> str:
    """Return pages without a limit, of long and short queries, plain and marked."""
    found = pages()
    budgets = [(name, name, "default") for name in MARKED]
    budgets += [(f"`--sufficiency {promise}`", "navigator", f"P {promise}") for promise in PROMISES]
    lines = []
    for label, method, budget in budgets:
        cells = [label]
        for series in ("long", "short"):
            for style in ("plain", "marked"):
                row = found[series, style, method, budget]
                cells += [interval(row), row["token_reduction"]]
        lines.append(cells)
    kinds = [f"{series}, {style}" for series in ("long", "short") for style in ("plain", "marked")]
    return table(["", *(head for kind in kinds for head in (kind, "saved"))], lines)


def promises() -> str:
    """Return promised and observed sufficiency, where enough pages promise about the same."""
    names = ("series", "promised", "observed")
    lines = [
        [*(row[name] for name in names), f"{int(row['pages']):,}"]
        for row in rows("promises")
        if int(row["pages"]) >= 500
    ]
    return table(["queries", "promised (%)", "observed (%)", "pages"], lines)


def types() -> str:
    """Return F1 of the node types."""
    scores = log_of("types")["scores"]
    head = ["accuracy", "macro-F1", *scores["f1"]]
    values = [scores["accuracy"], scores["macro_f1"], *scores["f1"].values()]
    return table(["", *head], [["%", *map(_percent, values)]])


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


if __name__ == "__main__":
    main()

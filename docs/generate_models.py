"""Write the table of node types in docs/measured.md from its log: `python docs/generate_models.py`."""

import json
from pathlib import Path
from typing import Any

from marked_blocks import table, write_blocks

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measured.md"
MODELS = ROOT / "src" / "skillpager" / "models"


def main() -> None:
    """Replace the block of the page."""
    write_blocks(PAGE, blocks())


def blocks() -> dict[str, str]:
    """Return the Markdown of each block by its name."""
    return {"types": types()}


def log_of(model: str) -> Any:
    """Return the training log of a model."""
    return json.loads((MODELS / model / "training.json").read_text(encoding="utf-8"))


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

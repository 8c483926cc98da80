"""Make the tables and pictures of docs/models.md from what `train.py` and `evaluate.py` left in WORK.

    python training/tables.py --work build/training --out benchmarks/models

Intervals are 95 % bootstrap intervals over skills. Nothing here was seen in training by the models that made
the pages.
"""

import argparse
import csv
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from skillpager.bench.data.evidence import read_published
from skillpager.bench.report.statistics import bootstrap
from skillpager.output.palette import own_settings

Row = dict[str, object]
BINS = 10
# skills up to so many nodes are small, medium, large
SIZES = {"up to 30 nodes": (0, 30), "31 to 60": (31, 60), "61 to 120": (61, 120), "over 120": (121, 10**9)}
COMPARED = ("mmr", "sections", "navigator")
BUDGETS = ("60 %", "default")


def measured(rows: Sequence[Row]) -> dict[str, object]:
    """Return number of queries, sufficiency with its interval, coverage and token reduction, in per cent."""
    skills = [str(row["skill"]) for row in rows]
    sufficient = bootstrap([float(bool(row["sufficient"])) for row in rows], clusters=skills).scaled(100)
    tokens, full = (sum(int(str(row[name])) for row in rows) for name in ("tokens", "full_tokens"))
    return {
        "queries": len(rows),
        "sufficiency": round(sufficient.value, 1),
        "low": round(sufficient.low, 1),
        "high": round(sufficient.high, 1),
        "coverage": round(100 * float(np.mean([float(str(row["coverage"])) for row in rows])), 1),
        "token_reduction": round(100 * (1 - tokens / full), 1),
    }


def grouped(
    rows: Iterable[Row], key: Callable[[Row], tuple[str, ...] | None]
) -> dict[tuple[str, ...], list[Row]]:
    """Return rows by key, in order of appearance; those whose key is None are left out."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if (name := key(row)) is not None:
            groups.setdefault(name, []).append(row)
    return groups


def page_table(rows: Sequence[Row], dev: set[str]) -> list[dict[str, object]]:
    """Return every method at every budget: on `dev` and on all skills."""
    names = ("folds", "style", "method", "budget")

    def key(row: Row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in names)

    return [
        {"skills": scope, **dict(zip(names, found, strict=True)), **measured(group)}
        for scope, chosen in (("dev", [row for row in rows if row["skill"] in dev]), ("all", list(rows)))
        for found, group in grouped(chosen, key).items()
    ]


def group_table(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return some methods by difficulty, size of the skill, need of concepts alone, and repository."""

    def size(row: Row) -> str:
        nodes = int(str(row["nodes"]))
        return next(name for name, (low, high) in SIZES.items() if low <= nodes <= high)

    kinds: dict[str, Callable[[Row], str]] = {
        "difficulty": lambda row: str(row["difficulty"]),
        "size": size,
        "needs": lambda row: "concept nodes only" if row["concept"] else "other nodes too",
        "repository": lambda row: str(row["repository"]),
    }
    table = []
    for kind, name in kinds.items():
        folds = "repository" if kind == "repository" else "skill"

        def key(row: Row, folds: str = folds, name: Callable[[Row], str] = name) -> tuple[str, ...] | None:
            wanted = row["folds"] == folds and row["style"] == "plain" and row["method"] in COMPARED
            return (
                (name(row), str(row["method"]), str(row["budget"]))
                if wanted and row["budget"] in BUDGETS
                else None
            )

        for (group, method, budget), chosen in sorted(grouped(rows, key).items()):
            told = {"by": kind, "group": group, "method": method, "budget": budget}
            table.append({**told, **measured(chosen)})
    return table


def promise_table(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return promised and observed sufficiency of the navigator's pages, by tenth of the promise."""
    table = []
    for folds in ("skill", "repository"):
        chosen = [row for row in rows if row["folds"] == folds and row["promised"] is not None]
        chosen = [row for row in chosen if row["style"] == "plain"]
        promised = np.array([float(str(row["promised"])) for row in chosen])
        observed = np.array([float(bool(row["sufficient"])) for row in chosen])
        places = np.minimum((promised * BINS).astype(int), BINS - 1)
        for place in np.unique(places):
            inside = places == place
            table.append(
                {
                    "folds": folds,
                    "promised_from": place / BINS,
                    "pages": int(inside.sum()),
                    "promised": round(100 * float(promised[inside].mean()), 1),
                    "observed": round(100 * float(observed[inside].mean()), 1),
                }
            )
    return table


def draw_promise(table: Sequence[dict[str, object]], types: Sequence[dict[str, float]], out: Path) -> None:
    """Draw promised against observed: sufficiency of pages, and types of nodes."""
    from matplotlib.figure import Figure

    with own_settings({}, extra="bench", purpose="the calibration picture"):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        for folds, mark in (("skill", "o"), ("repository", "s")):
            mine = [row for row in table if row["folds"] == folds]
            if not mine:  # only some folds were evaluated
                continue
            left.plot(
                [row["promised"] for row in mine],
                [row["observed"] for row in mine],
                marker=mark,
                label=f"unseen {folds}",
            )
        left.legend(frameon=False)
        right.plot(
            [100 * row["promised"] for row in types], [100 * row["observed"] for row in types], marker="o"
        )
        for axes, title in ((left, "sufficiency of pages"), (right, "types of nodes")):
            axes.plot([0, 100], [0, 100], color="0.6", linewidth=1, linestyle="--")
            axes.set(xlabel="promised %", ylabel="observed %", title=title, aspect="equal")
        figure.savefig(out / "calibration.svg", metadata={"Date": None})


def write_csv(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write a table."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Read, count and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=Path("build/training"), help="folder of `train.py`")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/models"), help="folder of the tables")
    options = parser.parse_args()
    rows = [
        json.loads(line) for line in (options.work / "pages.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(options.out / "pages.csv", page_table(rows, {record.skill for record in read_published("dev")}))
    write_csv(options.out / "groups.csv", group_table(rows))
    promises = promise_table(rows)
    write_csv(options.out / "promises.csv", promises)
    types = json.loads((options.work / "types.json").read_text(encoding="utf-8"))
    draw_promise(promises, types["scores"]["reliability"], options.out)


if __name__ == "__main__":
    main()

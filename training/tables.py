"""Make tables and a figure of the pages that `evaluate.py` measured.

    python training/tables.py --work build/training     # from a training run, whose rows are kept
    python training/tables.py                           # from the kept rows

Intervals are 95 % bootstrap intervals over skills. No model was trained on a document of the repositories
that it paged here. Long and short queries are counted apart.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from data import LONG, SHORT
from skillpager.bench.report.statistics import COVERAGE, MICRO_REDUCTION, SUFFICIENCY

MODELS = Path(__file__).parents[1] / "src" / "skillpager" / "models"
ROWS = "rows.csv.xz"
BINS = 10
# skills are small, medium, large by their number of nodes, up to and with these
SIZES = {30: "up to 30 nodes", 60: "31 to 60", 120: "61 to 120", 10**9: "over 120"}
COMPARED = ("mmr", "sections", "navigator")
BUDGETS = ("60 %", "default")
# what queries and skills are grouped by; long queries alone have a difficulty, short ones alone a wording
GROUPED_BY = ("difficulty", "wording", "size", "needs", "repository")


def measured(rows: pd.DataFrame) -> dict[str, object]:
    """Return number of queries, sufficiency with its interval, coverage and token reduction, in per cent."""
    sufficient = SUFFICIENCY.interval(rows, by_skill=True)
    return {
        "queries": len(rows),
        "sufficiency": round(sufficient.value, 1),
        "low": round(sufficient.low, 1),
        "high": round(sufficient.high, 1),
        "coverage": round(COVERAGE.of(rows), 1),
        "token_reduction": round(MICRO_REDUCTION.of(rows), 1),
    }


def page_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return every method at every budget, by series of queries."""
    names = ["series", "style", "method", "budget"]
    return pd.DataFrame(
        {**dict(zip(names, found, strict=True)), **measured(group)}
        for found, group in rows.groupby(names, sort=False)
    )


def group_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return some methods by series, and by what tells queries and skills apart (`GROUPED_BY`)."""
    wanted = rows["style"].eq("plain") & rows["method"].isin(COMPARED) & rows["budget"].isin(BUDGETS)
    chosen = rows[wanted].assign(
        size=lambda found: pd.cut(found["nodes"], [0, *SIZES], labels=list(SIZES.values())).astype(str),
        needs=lambda found: np.where(found["concept"], "concept nodes only", "other nodes too"),
    )
    return pd.DataFrame(
        {"series": series, "by": kind, "group": group, "method": method, "budget": budget, **measured(found)}
        for kind in GROUPED_BY
        for (series, group, method, budget), found in chosen[chosen[kind] != ""].groupby(
            ["series", kind, "method", "budget"]
        )
    )


def promise_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return promised and observed sufficiency of the navigator, by series and tenth of the promise."""
    promising = rows[rows["style"].eq("plain") & rows["promised"].notna()]
    tenths = np.minimum((promising["promised"].astype(float) * BINS).astype(int), BINS - 1)
    return pd.DataFrame(
        {
            "series": series,
            "promised_from": tenth / BINS,
            "pages": len(found),
            "promised": round(100 * float(found["promised"].mean()), 1),
            "observed": round(SUFFICIENCY.of(found), 1),
        }
        for (series, tenth), found in promising.groupby(["series", tenths])
    )


def draw_promise(table: pd.DataFrame, types: Sequence[dict[str, float]], out: Path) -> None:
    """Draw promised against observed: sufficiency of pages, and types of nodes."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "skillpager", "text.hinting": "no_hinting"})
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        for series, mark in ((LONG, "o"), (SHORT, "s")):
            mine = table[table["series"] == series]
            left.plot(mine["promised"], mine["observed"], marker=mark, label=f"{series} queries")
        left.legend(frameon=False)
        right.plot(
            [100 * row["promised"] for row in types], [100 * row["observed"] for row in types], marker="o"
        )
        for axes, title in ((left, "sufficiency of pages"), (right, "types of nodes")):
            axes.plot([0, 100], [0, 100], color="0.6", linewidth=1, linestyle="--")
            axes.set(xlabel="promised %", ylabel="observed %", title=title, aspect="equal")
        figure.savefig(out / "calibration.svg", metadata={"Date": None})


def keep_rows(work: Path, out: Path) -> None:
    """Write the pages of `evaluate.py` as rows: ids, counts and outcomes, no texts."""
    lines = (work / "pages.jsonl").read_text(encoding="utf-8").splitlines()
    rows = pd.DataFrame(map(json.loads, lines))
    rows["promised"] = rows["promised"].astype(float).round(6)
    rows.to_csv(out / ROWS, index=False, lineterminator="\n")


def read_rows(folder: Path) -> pd.DataFrame:
    """Return the rows of a folder."""
    return pd.read_csv(folder / ROWS, keep_default_na=False, na_values={"promised": [""]})


def tables_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return every table by its name."""
    return {"pages": page_table(rows), "groups": group_table(rows), "promises": promise_table(rows)}


def main() -> None:
    """Read, count and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--work", type=Path, help="folder of `train.py`; without it the kept rows are counted"
    )
    parser.add_argument("--out", type=Path, default=Path("build/training"), help="folder of the tables")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.work:
        keep_rows(options.work, options.out)
    tables = tables_of(read_rows(options.out))
    for name, table in tables.items():
        table.to_csv(options.out / f"{name}.csv", index=False, lineterminator="\n")
    types = json.loads((MODELS / "types" / "training.json").read_text(encoding="utf-8"))
    draw_promise(tables["promises"], types["scores"]["reliability"], options.out)


if __name__ == "__main__":
    main()

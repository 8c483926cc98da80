"""Write the tables of docs/routing.md from the rows of benchmarks/routing: `python docs/generate_routing.py`.

`skillpager bench route` makes the rows: a folder for each library, a file for each method.
"""

from pathlib import Path

from marked_blocks import table, write_blocks

from skillpager.bench.data.records import read_records
from skillpager.bench.routing import RoutingRow, fit_quality, summarize

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "routing.md"
ROWS = ROOT / "benchmarks" / "routing"
SHOWN = ("Hit@1", "MRR@10", "nDCG@10", "R@10", "R@50", "Full@3", "Full@5", "Full@10")
INTERVALS = ("Hit@1", "R@10", "Full@10")
TITLES = {
    "route": "`library.route`",
    "fts5": "SQLite FTS5, all columns",
    "fts5-described": "SQLite FTS5, name and description (what hosts show)",
    "bm25s": "bm25s, one merged field",
}


def main() -> None:
    """Replace the blocks of the page."""
    write_blocks(PAGE, blocks())


def blocks() -> dict[str, str]:
    """Return the tables by the names of their blocks: for each library and kind of query."""
    found = {}
    for folder in sorted(path for path in ROWS.iterdir() if path.is_dir()):
        methods = {name: list(read_records(folder / f"{name}.jsonl", RoutingRow)) for name in TITLES}
        kinds = dict.fromkeys(row.kind for rows in methods.values() for row in rows)
        for kind in kinds:
            chosen = {name: [row for row in rows if row.kind == kind] for name, rows in methods.items()}
            found[f"routing {folder.name}: {kind}"] = _table({name: r for name, r in chosen.items() if r})
    return found


def _table(methods: dict[str, list[RoutingRow]]) -> str:
    lines = []
    for name, rows in methods.items():
        measured = summarize(rows)
        fits = fit_quality(rows)
        cells = [_cell(measure, measured[measure]) for measure in SHOWN]
        lines.append(
            [TITLES[name], *cells, f"{_median(rows):.1f}", f"{fits[0]:.2f} / {fits[1]:.2f}" if fits else "–"]
        )
    first = next(iter(methods.values()))
    head = [f"{len(first)} queries, {first[0].library:,} skills", *SHOWN, "ms p50", "fits AUC / ECE"]
    return table(head, lines)


def _cell(name: str, interval: object) -> str:
    value, low, high = (100 * getattr(interval, part) for part in ("value", "low", "high"))
    return f"{value:.1f} ({low:.0f}–{high:.0f})" if name in INTERVALS else f"{value:.1f}"


def _median(rows: list[RoutingRow]) -> float:
    times = sorted(row.ms for row in rows)
    return times[len(times) // 2]


if __name__ == "__main__":
    main()

"""Renderer of the results as Markdown: targets first, then the tables of each section."""

from collections.abc import Mapping, Sequence

from results import Cell, Entry, Table

_HEAD = """# Benchmarks

Everything here is made by one command; `results.json` holds the same numbers unrounded.

    pip install ".[bench]" langchain-core
    python benchmarks/run.py                          # on the sample skills, without quality
    python benchmarks/run.py --data train dev         # on folders of annotated documents, quality on the last

Annotated documents are a folder in the [evidence format](../docs/measured.md); `skillpager bench
data fetch` makes one. Strategies are compared in [docs/measured.md](../docs/measured.md). `--only
offline,online` runs some sections, `--quick` shows within seconds that everything runs. This file is
written by the command: do not edit it.
"""


def render(entries: Mapping[str, Entry]) -> str:
    """Return the README of the results."""
    parts = [_HEAD, _targets(entries), _machine(entries)]
    parts += [_section(entry) for entry in entries.values()]
    return "\n".join(parts).rstrip() + "\n"


def _targets(entries: Mapping[str, Entry]) -> str:
    checks = [check for entry in entries.values() for check in entry.report.checks]
    if not checks:
        return ""
    rows = [
        (
            check.what,
            f"{_text(check.measured)} {check.unit}",
            f"{'≤' if check.at_most else '≥'} {_text(check.limit)} {check.unit}",
            "yes" if check.met else "**no**",
        )
        for check in checks
    ]
    return "## Targets\n\n" + _grid(["", "measured", "target", "met"], rows)


def _machine(entries: Mapping[str, Entry]) -> str:
    known = {tuple(entry.machine.items()) for entry in entries.values()}
    lines = [f"- {name}: {value}" for machine in sorted(known) for name, value in machine]
    return "\n".join(["## Machine", "", *lines, ""])


def _section(entry: Entry) -> str:
    report = entry.report
    before, after = entry.load
    load = f"load average {before:.1f} before, {after:.1f} after"
    made = f"{entry.date}, `{entry.command}`, {entry.seconds:.0f} s; {load}."
    quick = "**A quick run: the numbers only show that it runs.** " if entry.quick else ""
    parts = [f"## {report.title}", "", f"{quick}{report.note}", "", f"*{made}*", ""]
    return "\n".join([*parts, *map(_table, report.tables)])


def _table(table: Table) -> str:
    note = f"{table.note}\n" if table.note else ""
    return "\n".join([f"### {table.title}", "", _grid(table.columns, table.rows), note]).rstrip("\n") + "\n"


def _grid(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    numeric = [bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(columns))]
    texts = [[_text(cell) for cell in row] for row in rows]
    rule = ["---:" if number else "---" for number in numeric]
    lines = [[_text(column) for column in columns], rule, *texts]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _is_number(cell: Cell) -> bool:
    return not isinstance(cell, str) or cell.replace(",", "").replace(".", "").isdigit() or cell == "–"


def _text(cell: Cell) -> str:
    """Return a cell as text, numbers with three digits that count."""
    if isinstance(cell, str):
        return cell.replace("|", "\\|")
    if isinstance(cell, int) or abs(cell) >= 100 or cell == int(cell):
        return f"{cell:,.0f}"
    digits = 1 if abs(cell) >= 10 else 2 if abs(cell) >= 1 else 3
    return f"{cell:.{digits}f}"

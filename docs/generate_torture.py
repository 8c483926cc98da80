"""Write the figures of docs/security.md from `benchmarks/torture.csv`: `python docs/generate_torture.py`.

The block stands between `<!-- torture -->` and `<!-- /torture -->`; `make torture` measures the rows.
"""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security.md"
RESULTS = ROOT / "benchmarks" / "torture.csv"
# part, measure and words of each line; a measure that was not taken has no line
LINES = (
    ("fuzz", "texts: inputs", "mutated and composed texts, read and split"),
    ("fuzz", "pages: inputs", "pages of mutated texts in all styles, under a ceiling"),
    ("fuzz", "queries: inputs", "pages for hostile queries"),
    ("fuzz", "texts: CPU time of reading and splitting, most", "reading and splitting, slowest text"),
    *(
        ("growth", f"{step}: {measure}", f"{step}: {measure}")
        for step in ("splitting", "classifying", "indexing", "page")
        for measure in ("CPU time, most", "memory, most")
    ),
    ("kills", "kill -9 while indexing", "kill -9 while indexing; every page right, the store sound"),
    ("kills", "kill -9 while paging", "kill -9 while paging; every page right, the store sound"),
    (
        *("kills", "kill -9 while publishing"),
        "kill -9 while publishing; every skill old or new, the next run mends all",
    ),
    ("kills", "kill -9 while installing", "kill -9 while installing; every configuration file old or new"),
    ("many_processes", "processes on one store", "processes on one store, with deletes and evictions"),
    ("many_processes", "one store: found", "indexes that they loaded, all right"),
    ("load", "HTTP: answers", "answers of the HTTP service while skills changed"),
    ("load", "HTTP: changes of skills meanwhile", "changes of skills meanwhile"),
    ("load", "HTTP: memory gained after the first quarter", "memory gained after the first quarter"),
    ("load", "MCP over stdio: answers", "answers of the MCP server over stdio"),
    ("load", "MCP over http: answers", "answers of the MCP server over HTTP"),
)
PARTS = {
    "fuzz": "hostile inputs",
    "growth": "growth with the size of a text",
    "kills": "kill -9",
    "many_processes": "many processes",
    "bad_disks": "stores in trouble",
    "load": "servers under load",
}


def main() -> None:
    """Replace the block of the page."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- torture -->\n", "<!-- /torture -->"
    text = re.sub(f"({begin}).*?({end})", lambda found: found[1] + block() + found[2], text, flags=re.DOTALL)
    PAGE.write_text(text, encoding="utf-8")


def block() -> str:
    """Return the Markdown of the block."""
    with RESULTS.open(encoding="utf-8", newline="") as file:
        rows = {(row["part"], row["measure"]): row for row in csv.DictReader(file)}
    machine = rows["run", "processor"]["value"]
    lines = [f"Measured on {rows['run', 'date']['value']}, {machine}:", "", "| | |", "|---|---|"]
    for part, title in PARTS.items():
        if (part, "result") not in rows:
            continue
        share = float(rows[part, "share of the full amounts"]["value"])
        size = "" if share == 1 else f" ({share:.0%} of the full amounts)"
        lines.append(f"| **{title}**{size} | {rows[part, 'result']['value']} |")
        if part == "bad_disks":
            same = sum(row["value"] == "the same pages" for key, row in rows.items() if key[0] == part)
            lines.append(f"| kinds of trouble in which all pages came, as without a store | {same} |")
        for known, measure, words in LINES:
            if known == part and (row := rows.get((part, measure))):
                lines.append(f"| {words} | {_shown(row['value'])} {row['unit']}".rstrip() + " |")
    return "\n".join(lines) + "\n"


def _shown(value: str) -> str:
    """Return a number with its thousands marked."""
    number = float(value)
    return f"{number:,.0f}" if number >= 1_000 or number.is_integer() else f"{number:.3g}"


if __name__ == "__main__":
    main()

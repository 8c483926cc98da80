"""The price of marks: marked against plain pages of the default strategy, a row for each kind of page.

`python benchmarks/marks.py FOLDER LABEL [all|first|rest]` pages annotated documents (docs/measured.md)
for their queries and puts the rows of LABEL into `marks.csv`, in place of those that it had. The first 60
documents, in the order of the digests of their names, are for choosing; results are those of the rest.

Marks are those that a user gets, with the command that reads omitted lines. Short queries are the published
ones; at the limit of 40 % of a skill's tokens, pages of both styles are filled up to it.
"""

import csv
import sys
from hashlib import sha256
from itertools import product
from pathlib import Path

import pandas as pd

from scoring import Exam
from skillpager.bench.data.evidence import read_published_short
from skillpager.bench.data.records import QueryRecord
from skillpager.bench.report.statistics import MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.run.methods import ALL_NODES
from skillpager.bench.run.selecting import page_row

TARGET = Path(__file__).with_name("marks.csv")
FIRST = 60  # documents for choosing
SHARE = 0.4  # of the tokens of a skill
KEY = ("label", "data", "skills", "query", "limit", "style")
COLUMNS = (*KEY, "queries", "sufficiency", "token_reduction")


def main(folder: Path, label: str, part: str = "all") -> None:
    """Measure one version of the package and write its rows."""
    exam = Exam(folder)
    order = sorted(exam.skills, key=lambda name: sha256(name.encode()).hexdigest())
    chosen = {"all": order, "first": order[:FIRST], "rest": order[FIRST:]}[part]
    long = [query for query in exam.queries if query.skill in set(chosen)]
    queries = {"long": long, "short": short_of(exam, chosen)}
    rows = []
    for (length, asked), share, style in product(queries.items(), (None, SHARE), ("plain", "marked")):
        made = pd.DataFrame([row_of(exam, query, share, style) for query in asked])
        limit = "none" if share is None else f"{share:.0%}"
        numbers = [len(made), f"{SUFFICIENCY.of(made):.1f}", f"{MICRO_REDUCTION.of(made):.1f}"]
        values = [label, folder.name, f"{part} {len(chosen)}", length, limit, style, *numbers]
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
        sys.stderr.write(f"{' '.join(map(str, values))}\n")
    exam.close()
    write(rows)


def short_of(exam: Exam, chosen: list[str]) -> list[QueryRecord]:
    """Return the published short queries of documents."""
    published = read_published_short()
    digests = {sha256(exam.skills[name].text.encode()).hexdigest(): name for name in chosen}
    return [
        QueryRecord(query.id, name, query.query, "short", critical=query.critical)
        for digest, name in digests.items()
        for query in published[digest].queries
    ]


def row_of(exam: Exam, query: QueryRecord, share: float | None, style: str) -> dict[str, str | float]:
    """Return what one page holds and what it costs."""
    index = exam.index(query.skill)
    limits = (None, None) if share is None else (ALL_NODES, int(share * index.full_tokens))
    page = exam.pager.page(
        index,
        query.query,
        max_nodes=limits[0],
        max_tokens=limits[1],
        fill=share is not None,
        style=style,
        show=f"skillpager show {query.skill}",
    )
    return page_row(exam.skills[query.skill], query, page)


def write(rows: list[dict[str, str]]) -> None:
    """Replace the rows of the same label, data and kind of page, and keep the others."""
    kept: dict[tuple[str, ...], dict[str, str]] = {}
    if TARGET.exists():
        with TARGET.open(encoding="utf-8", newline="") as file:
            kept = {tuple(row[name] for name in KEY): row for row in csv.DictReader(file)}
    kept |= {tuple(row[name] for name in KEY): row for row in rows}
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

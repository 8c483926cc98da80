"""The price of marks: marked against plain pages of the default strategy, a row for each kind of page.

`python benchmarks/marks.py FOLDER LABEL [all|first|rest]` pages annotated documents (docs/measured.md)
for their queries and puts the rows of LABEL into `marks.csv`, in place of those that it had. The first 60
documents, in the order of the digests of their names, are for choosing; results are those of the rest.

Marks are those that a user gets, with the command that reads omitted lines. Short queries are the published
ones; at the limit of 40 % of a skill's tokens, pages of both styles are filled up to it.

`python benchmarks/marks.py FOLDER LABEL lines` counts instead what marks and other lines that
are not the skill's take, on three default pages of each of 20 skills, and adds a row to `page_lines.csv`.
"""

import csv
import re
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
LINES = TARGET.with_name("page_lines.csv")
LINE_COLUMNS = (
    "label",
    "data",
    "pages",
    "tokens",
    "of marks",
    "of other lines",
    "marks",
    "marks (%)",
    "nameless",
    "other lines over 40",
)
SKILLS = 20  # of which lines are counted, evenly over the names
PAGES = 3  # of each
NAMELESS = 25  # lines of a mark that should have names
OVERHEAD = 40  # tokens that the first line and the names of files should not exceed
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


def count_lines(folder: Path, label: str) -> None:
    """Count the tokens of the lines of pages that are not of their skills, and write their means."""
    exam = Exam(folder)
    names = sorted(exam.skills)[:: max(1, len(exam.skills) // SKILLS)][:SKILLS]
    count, rows = exam.pager.token_counter.count, []
    for name in names:
        for query in [each for each in exam.queries if each.skill == name][:PAGES]:
            page = exam.pager.page(exam.index(name), query.query, show=f"skillpager show {name}", folder=True)
            lines = page.text.splitlines()
            marks = [line for line in lines if re.match(r"\[…", line)]
            others = [line for line in lines if re.match(r"\[(?:Page|Skill folder|file)\b", line)]
            spans = [re.fullmatch(r"\[…\S* (?:\S+:)?L(\d+)-(\d+)\]", line) for line in marks]
            nameless = sum(int(span[2]) - int(span[1]) > NAMELESS for span in spans if span)
            sizes = (sum(map(count, group)) for group in (marks, others))
            rows.append((page.tokens, *sizes, len(marks), nameless))
    exam.close()
    pages, marks, others, number, nameless = (sum(column) for column in zip(*rows, strict=True))
    means = [f"{total / len(rows):.1f}" for total in (pages, marks, others, number)]
    over = sum(row[2] > OVERHEAD for row in rows)
    row = [label, folder.name, len(rows), *means, f"{100 * marks / pages:.1f}", nameless, over]
    is_new = not LINES.exists()
    with LINES.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([LINE_COLUMNS, row] if is_new else [row])


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
    if sys.argv[3:] == ["lines"]:
        count_lines(Path(sys.argv[1]), sys.argv[2])
    else:
        main(Path(sys.argv[1]), *sys.argv[2:])

"""Write the tables of docs/measured.md from published rows: `python docs/generate_benchmark.py`.

A run is a folder of `benchmarks/intraskill` that `python benchmarks/publish.py` wrote. Its tables and figures
are made anew from its rows, and so is every block of the page that is named after it:
`<!-- RUN TABLE -->`, where TABLE is `default`, `budgets`, `paper-claims`, `claim-counts`, `readers:OTHER`
(the same pages under the judge of another run), `lambda-sweep:OTHER` and `k-sweep:OTHER` (two runs beside the
paper), or any table of a report, such as `lambda-sweep`; those that rows do not suffice for are read from
the copies in `tables/`.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pandas as pd
from marked_blocks import read_blocks, table, write_blocks

from skillpager.bench.report import claims
from skillpager.bench.report.budgets import SHOWN, Curve, read_curves
from skillpager.bench.report.figures import Picture
from skillpager.bench.report.measures import COVERAGE, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.methods import default_methods
from skillpager.bench.report.published import ROWS, PublishedResults
from skillpager.bench.report.report import PARTS
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.table import Table, escape_markdown, format_cell
from skillpager.bench.validate.agreement import measure_agreement

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measured.md"
RUNS = ROOT / "benchmarks" / "intraskill"
OVER_SKILLS = "95 % interval, over skills"
SWEEPS = ("lambda-sweep", "k-sweep")


def main() -> None:
    """Write tables and figures of every run, then the blocks of the page."""
    for name in published_runs():
        for made in tables_of(name).values():
            write(name, f"tables/{made.name}.csv", made.to_csv().encode())
        for picture in figures_of(name):
            write(name, f"figures/{picture.name}.png", picture.png)
    write_blocks(PAGE, blocks(PAGE.read_text(encoding="utf-8")))


def write(run: str, name: str, content: bytes) -> None:
    """Write a file of a run."""
    path = RUNS / run / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)


def published_runs() -> list[str]:
    """Return the names of the runs that have rows."""
    return sorted(path.parent.name for path in RUNS.glob(f"*/{ROWS}"))


@cache
def results_of(run: str) -> PublishedResults:
    """Return the results of a run."""
    return PublishedResults(RUNS / run)


@cache
def curves_of(run: str) -> list[Curve]:
    """Return the curves of a run over budgets."""
    return read_curves(results_of(run))


@cache
def tables_of(run: str) -> dict[str, Table]:
    """Return every table of a report for which rows suffice, by its name."""
    made = (part.make(results_of(run)) for part in PARTS if part.from_rows and not part.is_figure)
    return {table.name: table for table in made if isinstance(table, Table)}


def figures_of(run: str) -> Iterator[Picture]:
    """Yield the figures of a run for which rows suffice."""
    made = (part.make(results_of(run)) for part in PARTS if part.from_rows and part.is_figure)
    yield from (picture for picture in made if isinstance(picture, Picture))


# ---- the blocks of the page


def blocks(text: str) -> dict[str, str]:
    """Return the new text of each block of the page that is named after a run."""
    runs = published_runs()
    names = [name.split(" ", 1) for name in read_blocks(text)]
    return {" ".join(name): block(*name) for name in names if len(name) == 2 and name[0] in runs}


def block(run: str, name: str) -> str:
    """Return the Markdown of a block."""
    kind, _, other = name.partition(":")
    if kind == "readers":
        return readers(run, other)
    if kind in SWEEPS and other:
        return sweep(kind, {run: results_of(run), other: results_of(other)})
    makers = {"default": default, "budgets": equal_budgets, "paper-claims": paper_claims}
    if name in makers:
        return makers[name](run)
    if name == "claim-counts":
        return claim_counts(run)
    copied = RUNS / run / "tables" / f"{name}.csv"
    if name not in tables_of(run) and copied.exists():
        with copied.open(encoding="utf-8", newline="") as file:
            head, *lines = csv.reader(file)
        return table(head, [[line[0], *map(rounded, line[1:])] for line in lines])
    if name not in tables_of(run):
        known = ", ".join([*makers, "claim-counts", "readers:RUN", *tables_of(run)])
        raise SystemExit(f"docs/measured.md: the run {run} has no table {name}; it has {known}")
    return tables_of(run)[name].to_markdown()


def sweep(name: str, runs: Mapping[str, PublishedResults]) -> str:
    """Return a sweep of several runs beside the paper's."""
    heads = [name.partition("-")[0].replace("lambda", "λ"), "paper: sufficient (%)", "nodes"]
    heads += [head for run in runs for head in (f"{run}: sufficient (%)", "nodes")]
    rows = [tables_of(run)[name].rows for run in runs]
    columns = [rows[0][["Paper: Suff. (%) [95 % CI]", "Paper: Nodes"]]]
    columns += [each[["Here: Suff. (%) [95 % CI]", "Here: Nodes"]] for each in rows]
    numbers = pd.concat(columns, axis=1).map(lambda cell: format_cell(cell, 1)).to_numpy().tolist()
    labels = [label.rpartition(" = ")[2] for label in rows[0]["Method"]]
    return table(heads, [[label, *line] for label, line in zip(labels, numbers, strict=True)])


def rounded(cell: str) -> str:
    """Return a number of a CSV file with one digit after its point, if it has one; other text as it is."""
    try:
        return f"{float(cell):,.1f}" if "." in cell else f"{int(cell):,}"
    except ValueError:
        return cell


def default(run: str) -> str:
    """Return the methods at their default budgets, the most sufficient first."""
    results = results_of(run)
    found = {label: results.rows(label) for label in default_methods(results)}
    lines = [
        [
            label,
            one(SUFFICIENCY.of(rows)),
            ends(SUFFICIENCY.interval(rows, by_skill=True)),
            one(COVERAGE.of(rows)),
            one(MICRO_REDUCTION.of(rows)),
        ]
        for label, rows in sorted(found.items(), key=lambda item: -SUFFICIENCY.of(item[1]))
    ]
    head = ["method", "sufficient (%)", OVER_SKILLS, "evidence held (%)", "tokens saved (%)"]
    return table(head, lines)


def equal_budgets(run: str) -> str:
    """Return the areas under the curves over budgets, the largest first."""
    lines = []
    for curve in curves_of(run):
        points = [one(curve.at(share)["sufficiency"]) for share in SHOWN if share in curve.shares]
        area = curve.area(by_skill=True)
        lines.append([curve.method, one(area.value), ends(area), *points])
    shares = [f"at {100 * share:.0f} %" for share in SHOWN]
    return table(["method", "area (%)", OVER_SKILLS, f"{shares[0]} of tokens", *shares[1:]], lines)


def paper_claims(run: str) -> str:
    """Return the paper's claims with our differences."""
    lines = [
        [
            escape_markdown(each.claim.text),
            format_cell(each.claim.paper, 2),
            format_cell(each.difference, 1),
            claims.OUTCOMES[each.outcome],
        ]
        for each in claims.check_claims(results_of(run))
    ]
    return table(["claim", "paper (points)", "here (points)", "here it"], lines)


def claim_counts(run: str) -> str:
    """Return how many claims came out as in the paper, in words."""
    outcomes = Counter(claims.OUTCOMES[each.outcome] for each in claims.check_claims(results_of(run)))
    told = [f"{outcomes[each]} {each}" for each in claims.OUTCOMES.values() if outcomes[each]]
    return f"Of {outcomes.total()} claims that can be checked here came out: {', '.join(told)}.\n"


def readers(run: str, other: str) -> str:
    """Return methods under the judges of two runs of the same pages, and how far the judges agree."""
    first, second = results_of(run), results_of(other)
    labels = sorted(filter(second.has, second.labels), key=lambda label: -SUFFICIENCY.of(second.rows(label)))
    lines: list[list[str]] = []
    verdicts: list[tuple[str, str]] = []
    for label in labels:
        mine, read = first.rows(label), second.rows(label)
        paired = mine.merge(read, on="query", suffixes=("", "_read"))
        pairs = list(zip(paired["sufficient"].map(str), paired["sufficient_read"].map(str), strict=True))
        agree = 100 * sum(a == b for a, b in pairs) / len(pairs)
        over_skills = SUFFICIENCY.interval(read, by_skill=True)
        judged = [one(SUFFICIENCY.of(mine)), one(over_skills.value), ends(over_skills)]
        lines.append([label, *judged, one(MICRO_REDUCTION.of(mine)), one(agree)])
        verdicts += pairs
    ours, theirs = zip(*verdicts, strict=True)
    both = measure_agreement(ours, theirs, sorted({*ours, *theirs}))
    kappa = "undefined" if both.kappa is None else f"{both.kappa.value:.2f}"
    differing = [(mine, read) for mine, read in verdicts if mine != read]
    accepted = sum(read > mine for mine, read in differing)
    told = (
        f"Readers and evidence agree on {100 * both.rate.value:.1f} % of {both.cases:,} pages (Cohen's κ "
        f"{kappa}).\nOf the {len(differing)} disagreements {accepted} are pages that readers accepted and "
        "the measure did not."
    )
    judges = ["evidence (%)", "readers (%)", OVER_SKILLS]
    return f"{table(['method', *judges, 'tokens saved (%)', 'verdicts that agree (%)'], lines)}\n{told}\n"


def one(number: float) -> str:
    """Return a number with one decimal."""
    return f"{number:.1f}"


def ends(found: Interval) -> str:
    """Return the ends of an interval."""
    return f"{found.low:.1f}–{found.high:.1f}"


if __name__ == "__main__":
    main()

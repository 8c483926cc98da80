"""Write the tables of docs/measured.md from published rows: `python docs/generate_benchmark.py`.

A run is a folder of `benchmarks/intraskill` that `python benchmarks/publish.py` wrote. Its tables and figures
are made anew from its rows, and so is every block of the page that is named after it:
`<!-- RUN TABLE -->`, where TABLE is `claim-counts`, `readers:OTHER` (the same pages
under the judge of another run), `nodes:OTHER` (the same methods on nodes of another splitter), or any table
of a report, such as `lambda-sweep`.
"""

from collections import Counter
from functools import cache
from pathlib import Path

from marked_blocks import read_blocks, table, write_blocks

from skillpager.bench.judge.agreement import measure_agreement
from skillpager.bench.report import paper
from skillpager.bench.report.claims import Outcome, check_claims
from skillpager.bench.report.report import FROM_ROWS, Block
from skillpager.bench.report.results import ROWS, PublishedResults
from skillpager.bench.report.statistics import AVERAGE_NODES, MICRO_REDUCTION, SUFFICIENCY, Interval
from skillpager.bench.report.tables import Table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measured.md"
RUNS = ROOT / "benchmarks" / "intraskill"
OVER_SKILLS = "95 % interval, over skills"


def main() -> None:
    """Write tables and figures of every run, then the blocks of the page."""
    for run in published_runs():
        for made in parts_of(run):
            if isinstance(made, Table):
                write(run, f"tables/{made.name}.csv", made.to_csv().encode())
            else:
                write(run, f"figures/{made.name}.png", made.png)
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
def parts_of(run: str) -> list[Block]:
    """Return every table and figure of a report for which rows suffice."""
    made = (make(results_of(run)) for make in FROM_ROWS)
    return [block for block in made if block is not None]


def tables_of(run: str) -> dict[str, Table]:
    """Return every table of a report for which rows suffice, by its name."""
    return {made.name: made for made in parts_of(run) if isinstance(made, Table)}


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
    if kind == "nodes":
        return by_nodes(results_of(run), results_of(other))
    if name == "claim-counts":
        return claim_counts(run)
    tables = tables_of(run)
    if name not in tables:
        known = ", ".join(["claim-counts", "readers:RUN", "nodes:RUN", *tables])
        raise SystemExit(f"docs/measured.md: the run {run} has no table {name}; it has {known}")
    texts = tables[name].texts
    note = results_of(run).trained_note
    return table(list(texts), texts.to_numpy().tolist()) + (f"\n{note}\n" if note else "")


def claim_counts(run: str) -> str:
    """Return how many claims came out as in the paper, in words."""
    outcomes = Counter(check_claims(results_of(run))["outcome"])
    told = [f"{outcomes[each]} {each}" for each in Outcome if outcomes[each]]
    return f"Of {outcomes.total()} claims that can be checked here came out: {', '.join(told)}.\n"


def by_nodes(*runs: PublishedResults) -> str:
    """Return sufficiency by the number of nodes a skill; in parentheses nodes and savings of the pages."""
    methods = [*(f"mmr@lambda={value}" for value in (0.5, 0.7, 0.9)), "topk_dependency", "greedy_graph"]
    told = {row.label: row for each in (paper.MAIN, paper.LAMBDA, paper.CONCEPT) for row in each.rows}
    head = [f"{one(AVERAGE_NODES.of(run.rows('full')))} nodes a skill" for run in runs]
    lines = []
    for label in methods:
        measured = (
            [m.of(run.rows(label)) for m in (SUFFICIENCY, AVERAGE_NODES, MICRO_REDUCTION)] for run in runs
        )
        cells = ["{:.1f} ({:.1f}; {:.1f})".format(*numbers) for numbers in measured]
        lines.append([label, *cells, f"{told[label].sufficiency:.1f} ({told[label].nodes:.1f})"])
    return table(["method", *head, f"paper: {told['full'].nodes:.1f}"], lines)


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

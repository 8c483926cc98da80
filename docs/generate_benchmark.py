"""Write the tables of docs/measured.md from published rows: `python docs/generate_benchmark.py`.

A run is a folder of `benchmarks/intraskill` that `python benchmarks/publish.py` wrote. Its tables and figures
are made again from its rows, and so is every block of the page that is named after it:
`<!-- RUN TABLE -->`, where TABLE is `claim-counts`, `readers:OTHER` (the same pages
under the judge of another run), `nodes:OTHER` (the same methods on nodes of another splitter),
`ceilings:OTHER,…` (MMR of other runs beside the navigator), or any table of a report, such as `lambda-sweep`.
`tried` comes from `benchmarks/tried.csv`, which has what each trial gave.
`reader-votes` comes from `benchmarks/reader_votes.csv`: pages of five methods, whether they hold the
evidence, and the votes of three readers, who saw them with headings (`tokens_read`) that style `plain` leaves
out (`tokens`).
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd
from marked_blocks import read_blocks, table, write_blocks
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from skillpager.bench.judge.agreement import Agreement, measure_agreement
from skillpager.bench.report import paper
from skillpager.bench.report.claims import Outcome, check_claims
from skillpager.bench.report.figures import AXIS, BLUE, DPI, RED, SMALL, new_figure
from skillpager.bench.report.methods import Curve, read_curves
from skillpager.bench.report.report import FROM_ROWS, Block
from skillpager.bench.report.results import ROWS, PublishedResults
from skillpager.bench.report.statistics import (
    AVERAGE_NODES,
    MACRO_REDUCTION,
    MICRO_REDUCTION,
    SUFFICIENCY,
    Interval,
    bootstrap,
)
from skillpager.bench.report.tables import Table, format_cell

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measured.md"
RUNS = ROOT / "benchmarks" / "intraskill"
VOTES = ROOT / "benchmarks" / "reader_votes.csv"
TRIED = ROOT / "benchmarks" / "tried.csv"


def main() -> None:
    """Write tables and figures of every run, then the blocks of the page."""
    for run in published_runs():
        for made in parts_of(run):
            if isinstance(made, Table):
                write(run, f"tables/{made.name}.csv", made.to_csv().encode())
            else:
                write(run, f"figures/{made.name}.png", made.png)
    draw_readers(PAGE.with_name("readers.png"))
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
    """Return the new text of each block of the page that is named after a run, and of votes and trials."""
    runs = published_runs()
    names = [name.split(" ", 1) for name in read_blocks(text)]
    named = {" ".join(name): block(*name) for name in names if len(name) == 2 and name[0] in runs}
    return {**named, "reader-votes": reader_votes(), "tried": tried()}


def block(run: str, name: str) -> str:
    """Return the Markdown of a block."""
    kind, _, other = name.partition(":")
    if kind == "readers":
        return readers(run, other)
    if kind == "nodes":
        return by_nodes(results_of(run), results_of(other))
    if kind == "ceilings":
        return at_ceilings(*map(results_of, (run, *other.split(","))))
    if name == "claim-counts":
        return claim_counts(run)
    tables = tables_of(run)
    if name not in tables:
        known = ", ".join(["claim-counts", "readers:RUN", "nodes:RUN", "ceilings:RUN,…", *tables])
        raise SystemExit(f"docs/measured.md: the run {run} has no table {name}; it has {known}")
    texts = tables[name].texts
    note = results_of(run).trained_note
    return table(list(texts), texts.to_numpy().tolist()) + (f"\n{note}\n" if note else "")


def claim_counts(run: str) -> str:
    """Return how many claims came out as in the paper, and at equal tokens, in words."""
    checked = check_claims(results_of(run))
    default, equal = (Counter(checked[name].dropna()) for name in ("outcome", "equal_outcome"))
    told, at_equal = (
        ", ".join(f"{found[each]} {each}" for each in Outcome if found[each]) for found in (default, equal)
    )
    return (
        f"Of {default.total()} claims that can be checked here came out: {told}. "
        f"Of the {equal.total()} that have curves, at equal tokens: {at_equal}.\n"
    )


def at_ceilings(*runs: PublishedResults) -> str:
    """Return how often pages under equal ceilings suffice: the first run's navigator, MMR of the others."""
    curves = [{curve.method: curve for curve in read_curves(run)} for run in runs]
    best = curves[0]["navigator"]
    told = [f"`navigator` {under_ceilings(best)}"]
    for run, own in zip(runs[1:], (own["mmr@lambda=0.9"] for own in curves[1:]), strict=True):
        both = own.rows.assign(best=best.rows["area"]).dropna()
        gap = bootstrap(both["area"] - both["best"], clusters=list(both["skill"])).scaled(100)
        nodes = one(AVERAGE_NODES.of(run.rows("full")))
        told.append(f"{under_ceilings(own)} on {nodes} nodes a skill (area {format_cell(gap)} points)")
    return "; ".join(told) + ".\n"


def under_ceilings(curve: Curve) -> str:
    """Return the percentages of sufficient pages of a curve at three of its budgets."""
    return "/".join(one(curve.points["sufficiency"][share]) for share in (0.3, 0.5, 0.7))


def by_nodes(*runs: PublishedResults) -> str:
    """Return sufficiency by the number of nodes a skill; in parentheses nodes and savings of the pages.

    For the paper they are nodes of a page and of a skill: its tables are about two sets of skills.
    """
    methods = [*(f"mmr@lambda={value}" for value in (0.5, 0.7, 0.9)), "topk_dependency", "greedy_graph"]
    full = {
        each.is_ablation: row.nodes
        for each in (paper.MAIN, paper.CONCEPT)
        for row in each.rows
        if row.label == "full"
    }
    told = {
        row.label: f"{row.sufficiency:.1f} ({row.nodes:.1f}/{full[each.is_ablation]:.1f})"
        for each in (paper.MAIN, paper.LAMBDA)
        for row in each.rows
    }
    head = [f"{one(AVERAGE_NODES.of(run.rows('full')))} nodes a skill" for run in runs]
    lines = []
    for label in methods:
        measured = (
            [each.of(run.rows(label)) for each in (SUFFICIENCY, AVERAGE_NODES, MICRO_REDUCTION)]
            for run in runs
        )
        cells = ["{:.1f} ({:.1f}; {:.1f})".format(*numbers) for numbers in measured]
        lines.append([label, *cells, told[label]])
    return table(["method", *head, "paper (nodes/all)"], lines)


def readers(run: str, other: str) -> str:
    """Return how far the judges of two runs of the same pages agree, in words."""
    first, second = results_of(run), results_of(other)
    both = [(first.rows(each), second.rows(each)) for each in filter(second.has, second.labels)]
    pages = pd.concat([mine.merge(read, on="query", suffixes=("", "_read")) for mine, read in both])
    mine, read = pages["sufficient"], pages["sufficient_read"]
    agreed = agreement(mine, read)
    return (
        f"Readers and evidence agree on {100 * agreed.rate.value:.1f} % of {agreed.cases:,} pages (κ "
        f"{kappa_of(agreed)}); {sum(read > mine)} of {sum(read != mine)} disagreements are pages that only "
        "readers accept.\n"
    )


def tried() -> str:
    """Return a table of missed aims, what is had and the ways that were tried."""
    lines = []
    for aim, rows in pd.read_csv(TRIED, dtype=str, keep_default_na=False).groupby("aim", sort=False):
        had, *trials = rows.to_dict("records")
        ways = [f"{row['way']}{' (shipped)' * (row['shipped'] == 'yes')}" for row in trials]
        lines.append([aim, had["after"], "; ".join(ways) or "–"])
    return table(["aim", "had", "tried"], lines)


def reader_votes() -> str:
    """Return a table of the pages that three readers judged, and how far the readers agree."""
    lines: list[list[str]] = []
    among = []
    for data, pages in read_pages():
        votes = pages.filter(like="reader_").to_numpy()
        among.append(f"{fleiss_kappa(aggregate_raters(votes)[0]):.2f} on `{data}`")
        for method, own in [*pages.groupby("method", sort=False), ("all", pages)]:
            read = SUFFICIENCY.interval(own, by_skill=True)
            both = agreement(own["evidence"], own["sufficient"])
            judged = [one(100 * own["evidence"].mean()), f"{one(read.value)} ({ends(read)})"]
            only = [sum(own["sufficient"] > own["evidence"]), sum(own["sufficient"] < own["evidence"])]
            agreed = [one(100 * both.rate.value), kappa_of(both), "/".join(map(str, only))]
            median = 100 * (1 - own["tokens"] / own["full_tokens"]).median()
            saved = "/".join(map(one, (MICRO_REDUCTION.of(own), MACRO_REDUCTION.of(own), median)))
            lines.append([str(data), str(method), *judged, *agreed, saved])
    agreed = ["agree (%)", "κ", "only readers/evidence accept"]
    head = ["skills", "method", "evidence (%)", "readers (%)", *agreed, "saved: micro/macro/median (%)"]
    return f"{table(head, lines)}\nFleiss' κ among readers: {', '.join(among)}.\n"


def read_pages() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the pages that readers judged, for each set of skills; two of three votes decide."""
    for data, pages in pd.read_csv(VOTES).groupby("set", sort=False):
        majority = pages.filter(like="reader_").mode(axis=1)[0]
        yield str(data), pages.assign(sufficient=majority, tokens=pages["tokens_read"])


def draw_readers(path: Path) -> None:
    """Write a picture of how often pages of each method suffice, by readers and by the measure."""
    with new_figure(2.2) as figure:
        for axes, (data, pages) in zip(figure.subplots(1, 2, sharex=True), read_pages(), strict=True):
            methods = pages.groupby("method", sort=False)
            for place, (_, own) in enumerate(methods):
                read, label = (
                    SUFFICIENCY.interval(own, by_skill=True),
                    "" if place else "readers, 95 % interval",
                )
                ends = [[read.value - read.low], [read.high - read.value]]
                axes.errorbar(read.value, place, xerr=ends, color=BLUE, marker="o", capsize=2.5, label=label)
            axes.plot(
                100 * methods["evidence"].mean(),
                range(len(methods)),
                "d",
                color=RED,
                label="measure",
                zorder=3,
            )
            axes.set(title=data, yticks=range(len(methods)), yticklabels=methods.groups, xlabel=AXIS)
            axes.tick_params(axis="y", labelsize=SMALL)
            axes.invert_yaxis()
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        figure.savefig(path, dpi=DPI, metadata={"Software": None})


def agreement(evidence: pd.Series, read: pd.Series) -> Agreement:
    """Return how verdicts of readers agree with those of the measure."""
    return measure_agreement(*(list(each.astype(int).astype(str)) for each in (evidence, read)), ["0", "1"])


def kappa_of(both: Agreement) -> str:
    """Return κ with two decimals."""
    return "undefined" if both.kappa is None else f"{both.kappa.value:.2f}"


def one(number: float) -> str:
    """Return a number with one decimal."""
    return f"{number:.1f}"


def ends(found: Interval) -> str:
    """Return the ends of an interval."""
    return f"{found.low:.1f}–{found.high:.1f}"


if __name__ == "__main__":
    main()

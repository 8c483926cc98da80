"""The paper's tables of results, each beside what was measured here."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from skillpager.bench.report import paper
from skillpager.bench.report.measures import (
    AVERAGE_NODES,
    CONCEPT_SHARE,
    COVERAGE,
    FRAGMENT_REDUCTION,
    MICRO_REDUCTION,
    STRONG_VOTES,
    SUFFICIENCY,
    QueryRows,
)
from skillpager.bench.report.paper import PaperRow, PaperTable
from skillpager.bench.report.results import GROUND_TRUTH, Results
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.tables.table import Cell, Column, Row, Table
from skillpager.bench.run.fitted import trained_note

PAPER, HERE = "Paper", "Here"
# what nearly every suite holds, and so no sign that it was run
COMMON = frozenset({"mmr", "full"})


def main_results(results: Results) -> Table | None:
    """Return the comparison with the baselines; None if none of them was run.

    Reference: paper §5.2.1, table tab:main-results.
    """
    table = _compared(
        results,
        paper.MAIN,
        name="main-results",
        title="Main results: SkillPager and its baselines",
        skills=None,
    )
    return table and _with_remark(table, trained_note(results))


def graph_augmentation(results: Results) -> Table | None:
    """Return MMR with and without its neighbours in the graph; None if it was not run.

    Reference: paper §3.3, table tab:graph-augmentation.
    """
    return _compared(
        results,
        paper.GRAPH,
        name="graph-augmentation",
        title="Graph augmentation: one-hop dependency predecessors added to the selection",
        skills=None,
    )


def concept_ablation(results: Results) -> Table | None:
    """Return what concept nodes contribute; None if no variant was run.

    Reference: paper §5.2.2, table tab:concept-ablation.
    """
    table = _compared(
        results,
        paper.CONCEPT,
        name="concept-ablation",
        title="Concept nodes in the candidate pool",
        skills=results.ablation_skills,
    )
    return table and _with_remark(table, _votes_note(results))


def _votes_note(results: Results) -> str:
    """Return how often all votes agree over the variants of the ablation; empty for a judge of one vote."""
    measured = [results.rows(row.label).of_skills(results.ablation_skills) for row in paper.CONCEPT.rows]
    shares = [STRONG_VOTES.per_query(rows) for rows in measured if STRONG_VOTES.known(rows)]
    if not shares:
        return ""
    return (
        f"All votes agree on {np.concatenate(shares).mean():.1f} % of the verdicts, "
        f"in the paper on {paper.STRONG_VOTES} %."
    )


def lambda_sweep(results: Results) -> Table | None:
    """Return the effect of λ; None if it was not swept.

    Reference: paper §5.3.1, table tab:lambda-sweep.
    """
    return _compared(
        results,
        paper.LAMBDA,
        name="lambda-sweep",
        title="Effect of λ, the weight of relevance against redundancy",
        skills=results.ablation_skills,
    )


def node_budget_sweep(results: Results) -> Table | None:
    """Return the effect of k; None if it was not swept.

    Reference: paper §5.3.2, table tab:k-sweep.
    """
    return _compared(
        results,
        paper.NODE_BUDGET,
        name="k-sweep",
        title="Effect of k, the number of nodes that may be selected",
        skills=results.ablation_skills,
    )


def concept_need(results: Results) -> Table | None:
    """Return how many queries need concept nodes: `mmr` succeeds and `exec_only` does not.

    Reference: paper §5.2.2.
    """
    if not (results.has("mmr") and results.has("exec_only")):
        return None
    adaptive, executable = (
        rows.of_skills(results.ablation_skills) for rows in results.common("mmr", "exec_only")
    )
    if not len(adaptive):
        return None
    needed = np.flatnonzero(adaptive.sufficient > executable.sufficient)
    queries = paper.CONCEPT.queries
    rows = (
        Row(("Queries", queries, len(adaptive))),
        Row(("… that mmr answers and exec_only does not", paper.CONCEPT_NEEDED, len(needed))),
        Row(("… as a share (%)", 100 * paper.CONCEPT_NEEDED / queries, 100 * len(needed) / len(adaptive))),
        Row(
            (
                "Concept nodes in the contexts of these (%)",
                paper.CONCEPT_NEEDED_SHARE,
                CONCEPT_SHARE.of(adaptive.take(needed.tolist())),
            )
        ),
        Row(("Concept nodes in all contexts of mmr (%)", None, CONCEPT_SHARE.of(adaptive))),
    )
    return Table(
        "concept-need",
        "Queries that need concept nodes",
        (Column("", digits=1), Column(PAPER, digits=1), Column(HERE, digits=1)),
        rows,
        note=scope_note(results, results.ablation_skills),
        reference="paper §5.2.2",
    )


# ---- the shape that all share


def _compared(
    results: Results, table: PaperTable, *, name: str, title: str, skills: Collection[str] | None
) -> Table | None:
    """Return a table of the paper with our numbers beside it; None if nothing of its own was run."""
    if not any(results.has(row.label) for row in table.rows if row.label not in COMMON):
        return None
    measured = {row.label: _rows(results, row.label, skills) for row in table.rows}
    with_coverage = any(COVERAGE.known(rows) for rows in measured.values())
    with_tokens = any(row.token_reduction is not None for row in table.rows)
    lines = tuple(
        Row(
            (
                row.name,
                *_paper_cells(row, with_tokens=with_tokens),
                *_own_cells(measured[row.label], with_coverage=with_coverage),
            ),
            strong=row.label == table.own,
        )
        for row in table.rows
    )
    return Table(
        name,
        title,
        _columns(with_coverage=with_coverage, with_tokens=with_tokens),
        lines,
        note=" ".join(filter(None, (scope_note(results, skills), _missing_note(table.rows, measured)))),
        reference=table.reference,
    )


def _with_remark(table: Table, remark: str) -> Table:
    return replace(table, note=f"{table.note} {remark}".strip())


def _rows(results: Results, label: str, skills: Collection[str] | None) -> QueryRows:
    rows = results.rows(label)
    return rows if skills is None else rows.of_skills(skills)


def _columns(*, with_coverage: bool, with_tokens: bool) -> tuple[Column, ...]:
    sufficiency = "Suff. (%) [95 % CI]"
    return (
        Column("Method"),
        Column(sufficiency, PAPER),
        Column("Nodes", PAPER),
        *([Column("Fragment red. (%)", PAPER)] if with_tokens else []),
        Column(sufficiency, HERE),
        *([Column("Coverage (%)", HERE, COVERAGE.digits)] if with_coverage else []),
        Column("Nodes", HERE),
        Column("Fragment red. (%)", HERE),
        Column("Token red. (%)", HERE),
    )


def _paper_cells(row: PaperRow, *, with_tokens: bool) -> list[Cell]:
    cells: list[Cell] = [Interval(row.sufficiency, row.low, row.high), row.nodes]
    return [*cells, row.token_reduction] if with_tokens else cells


def _own_cells(rows: QueryRows, *, with_coverage: bool) -> list[Cell]:
    return [
        SUFFICIENCY.interval(rows),
        *([COVERAGE.of(rows)] if with_coverage else []),
        AVERAGE_NODES.of(rows),
        FRAGMENT_REDUCTION.of(rows),
        MICRO_REDUCTION.of(rows),
    ]


def scope_note(results: Results, skills: Collection[str] | None) -> str:
    """Return in words on what part of the data a table was measured here."""
    chosen = [skill for skill in results.skills if skills is None or skill.id in skills]
    ids = {skill.id for skill in chosen}
    queries = sum(query.skill in ids for query in results.queries)
    part = (
        " with curated answers" if skills is not None and {s.subset for s in chosen} == {GROUND_TRUTH} else ""
    )
    return f"Here: {len(chosen):,} skills{part}, {queries:,} queries."


def _missing_note(rows: Sequence[PaperRow], measured: dict[str, QueryRows]) -> str:
    absent = [row.name for row in rows if not len(measured[row.label])]
    return f"Not run here: {', '.join(absent)}." if absent else ""

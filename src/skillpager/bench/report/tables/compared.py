"""The paper's tables of results, each with our measurements beside it, and further ablations."""

from collections.abc import Collection, Sequence

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
)
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import GROUND_TRUTH, Results
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.tables.methods import BASELINE, CI, measured_table
from skillpager.bench.report.tables.table import Cell, Table
from skillpager.bench.run.methods import parse_method

# nearly every suite holds these methods, so they do not show that it was run
COMMON = frozenset({"mmr", "full"})
CHUNKS = "chunk_mmr:"


def main_results(results: Results) -> Table | None:
    """Return the comparison with the baselines; None if none of them was run."""
    title = "Main results: SkillPager and its baselines"
    return _compared(results, paper.MAIN, title)


def graph_augmentation(results: Results) -> Table | None:
    """Return MMR with and without its neighbours in the graph; None if it was not run."""
    title = "Graph augmentation: one-hop dependency predecessors added to the selection"
    return _compared(results, paper.GRAPH, title)


def concept_ablation(results: Results) -> Table | None:
    """Return the effect of concept nodes; None if no variant was run."""
    measured = [results.rows(row.label, results.ablation_skills) for row in paper.CONCEPT.rows]
    agreeing = [STRONG_VOTES.per_query(rows) for rows in measured if STRONG_VOTES.known(rows)]
    remark = (
        f"All votes agree on {np.concatenate(agreeing).mean():.1f} % of the verdicts, in the paper on "
        f"{paper.STRONG_VOTES} %."
        if agreeing
        else ""
    )
    return _compared(results, paper.CONCEPT, "Concept nodes in the candidate pool", remark)


def lambda_sweep(results: Results) -> Table | None:
    """Return the effect of λ; None if it was not swept."""
    return _compared(results, paper.LAMBDA, "Effect of λ, the weight of relevance against redundancy")


def node_budget_sweep(results: Results) -> Table | None:
    """Return the effect of k; None if it was not swept."""
    title = "Effect of k, the number of nodes that may be selected"
    return _compared(results, paper.NODE_BUDGET, title)


def _compared(results: Results, table: PaperTable, title: str, remark: str = "") -> Table | None:
    """Return a table of the paper with our numbers beside it; None if nothing of its own was run."""
    if not any(results.has(row.label) for row in table.rows if row.label not in COMMON):
        return None
    skills = results.ablation_skills if table.is_ablation else None
    measured = {row.label: results.rows(row.label, skills) for row in table.rows}
    with_coverage = any(map(COVERAGE.known, measured.values()))
    with_tokens = any(row.token_reduction is not None for row in table.rows)
    here = (*([COVERAGE] if with_coverage else []), AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION)
    rows: list[dict[str, Cell]] = [
        {
            "Method": row.name,
            f"Paper: Suff. (%) {CI}": Interval(row.sufficiency, row.low, row.high),
            "Paper: Nodes": row.nodes,
            **({"Paper: Fragment red. (%)": row.token_reduction} if with_tokens else {}),
            f"Here: Suff. (%) {CI}": SUFFICIENCY.interval(measured[row.label]),
            **{f"Here: {measure.heading}": measure.of(measured[row.label]) for measure in here},
        }
        for row in table.rows
    ]
    absent = [row.name for row in table.rows if not len(measured[row.label])]
    missing = f"Not run here: {', '.join(absent)}." if absent else ""
    return Table(
        table.label.removeprefix("tab:"),
        title,
        rows,
        note=" ".join(filter(None, (_scope_note(results, skills), missing, remark))),
        reference=table.reference,
        digits={"Here: Coverage (%)": COVERAGE.digits},
        strong={table.row(table.own).name},
    )


def _scope_note(results: Results, skills: Collection[str] | None) -> str:
    """Return a sentence that names the part of the data on which a table was measured here."""
    chosen = [skill for skill in results.skills if skills is None or skill.id in skills]
    ids = {skill.id for skill in chosen}
    queries = sum(query.skill in ids for query in results.queries)
    curated = skills is not None and {skill.subset for skill in chosen} <= GROUND_TRUTH
    part = " with curated answers" if curated else ""
    return f"Here: {len(chosen):,} skills{part}, {queries:,} queries."


# ---- single numbers of the paper's text


def concept_need(results: Results) -> Table | None:
    """Return how many queries need concept nodes: `mmr` succeeds and `exec_only` does not."""
    skills = results.ablation_skills
    adaptive, executable = results.common("mmr", "exec_only", skills=skills)
    if not len(adaptive):
        return None
    needed = adaptive[adaptive["sufficient"].to_numpy() > executable["sufficient"].to_numpy()]
    queries = paper.CONCEPT.queries
    numbers: list[tuple[str, Cell, Cell]] = [
        ("Queries", queries, len(adaptive)),
        ("… that mmr answers and exec_only does not", paper.CONCEPT_NEEDED, len(needed)),
        ("… as a share (%)", 100 * paper.CONCEPT_NEEDED / queries, 100 * len(needed) / len(adaptive)),
        ("Concept nodes in the contexts of these (%)", paper.CONCEPT_NEEDED_SHARE, CONCEPT_SHARE.of(needed)),
        ("Concept nodes in all contexts of mmr (%)", None, CONCEPT_SHARE.of(adaptive)),
    ]
    return Table(
        "concept-need",
        "Queries that need concept nodes",
        [{"": name, "Paper": there, "Here": here} for name, there, here in numbers],
        note=_scope_note(results, skills),
        reference="paper §5.2.2",
        digits={"Paper": 1, "Here": 1},
    )


def size_sweep(results: Results) -> Table | None:
    """Return k = 20 against k = 60 for small and for large skills; None if they were not run."""
    if not (results.has("mmr@k=20") and results.has("mmr@k=60")):
        return None
    counts = results.node_counts
    small = {skill for skill in counts if counts[skill] <= paper.SIZE_BOUNDARY}
    rows: list[dict[str, Cell]] = []
    for sign, skills, at_20, at_60 in (
        ("≤", small, paper.SMALL_AT_20, paper.SMALL_AT_60),
        (">", counts.keys() - small, paper.LARGE_AT_20, paper.LARGE_AT_60),
    ):
        pair = results.common("mmr@k=20", "mmr@k=60", skills=skills & results.ablation_skills)
        rows.append(
            {
                "Skills of": f"{sign} {paper.SIZE_BOUNDARY} nodes",
                "Paper: k = 20, suff. (%)": at_20,
                "Paper: k = 60, suff. (%)": at_60,
                "Here: skills": pair[0]["skill"].nunique(),
                "Here: queries": len(pair[0]),
                f"Here: k = 20, suff. (%) {CI}": SUFFICIENCY.interval(pair[0]),
                f"Here: k = 60, suff. (%) {CI}": SUFFICIENCY.interval(pair[1]),
            }
        )
    return Table(
        "size-sweep",
        "k by size of the skill: why large skills get the larger budget",
        rows,
        note=_scope_note(results, results.ablation_skills),
        reference="paper §5.3.3",
    )


def boundary_sweep(results: Results) -> Table | None:
    """Return the effect of the size from which a skill gets the larger budget; None if it was not swept."""
    boundaries = ("80", "100", "120")
    measured = results.common(*(f"mmr@boundary={boundary}" for boundary in boundaries))
    if not len(measured[0]):
        return None
    middle = SUFFICIENCY.of(measured[1])
    return Table(
        "boundary-sweep",
        "The size up to which k is 20 and above which it is 60",
        [
            {
                "Up to … nodes": boundary,
                f"Here: Suff. (%) {CI}": SUFFICIENCY.interval(rows),
                "Here: against 100 nodes (points)": SUFFICIENCY.of(rows) - middle,
                "Here: Nodes": AVERAGE_NODES.of(rows),
                "Here: Fragment red. (%)": FRAGMENT_REDUCTION.of(rows),
            }
            for boundary, rows in zip(boundaries, measured, strict=True)
        ],
        note=f"Paper: 80 and 120 change the sufficiency by less than {paper.BOUNDARY_CHANGE} points.",
        reference="paper §5.3.3",
        strong={boundaries[1]},
    )


# ---- ablations beyond the paper's


def granularity(results: Results) -> Table | None:
    """Return typed nodes against chunks of several sizes; None if no sizes were run.

    Reference: paper §5.2.1, “Naive chunk + MMR”.
    """
    sizes = [label for label in results.labels if label.startswith(CHUNKS) and "@" not in label]
    note = (
        "Chunks and nodes have the same k, so that larger chunks spend more: see the matched budgets for "
        "equal cost. “Nodes” of a chunk method are chunks."
    )
    title = "Granularity: typed nodes against chunks of fixed length, MMR on both"
    return _ablation(results, [BASELINE, *sizes], "granularity", title, note)


def encoders(results: Results) -> Table | None:
    """Return the effect of the encoder; None if no other than the run's own was tried."""
    labels = [BASELINE, *_variants(results, "encoder")]
    return _ablation(results, labels, "encoder", "The encoder of nodes and queries")


def classifiers(results: Results) -> Table | None:
    """Return the effect of the classifier; None if no other than the run's own was tried."""
    pairs = sorted((parse_method(label).strategy, label) for label in _variants(results, "classifier"))
    labels = list(dict.fromkeys(label for pair in pairs for label in pair))
    note = "“labels” are the annotators' own types: what a perfect parser would do."
    title = "The classifier of nodes, where node types decide what is shown"
    return _ablation(results, labels, "classifier", title, note)


def _variants(results: Results, part: str) -> list[str]:
    """Return the methods that have an encoder or classifier of their own, and no limit of tokens."""
    return [
        label
        for label, method in zip(results.labels, map(parse_method, results.labels), strict=True)
        if getattr(method, part) is not None and method.share is None and method.max_tokens is None
    ]


def _ablation(results: Results, labels: Sequence[str], name: str, title: str, note: str = "") -> Table | None:
    """Return methods with the main measures; None if fewer than two were run."""
    measured = {label: results.rows(label) for label in labels if results.has(label)}
    if len(measured) < 2:
        return None
    measures = (COVERAGE, AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION)
    return measured_table(name, title, measured, measures, note)

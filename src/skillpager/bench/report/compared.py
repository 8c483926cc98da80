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
from skillpager.bench.report.methods import BASELINE, CI, DIGITS, measured
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import GROUND_TRUTH, Results
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.table import Cell, Table, frame, with_ends
from skillpager.bench.run.methods import parse_method

# nearly every suite holds these methods, so they do not show that it was run
COMMON = frozenset({"mmr", "full"})
CHUNKS = "chunk_mmr:"


def beside_paper(table: PaperTable, results: Results) -> Table | None:
    """Return a table of the paper with our numbers beside it; None if nothing of its own was run."""
    if not any(results.has(row.label) for row in table.rows if row.label not in COMMON):
        return None
    skills = results.ablation_skills if table.is_ablation else None
    rows_of = {row.label: results.rows(row.label, skills) for row in table.rows}
    with_coverage = any(map(COVERAGE.known, rows_of.values()))
    with_tokens = any(row.token_reduction is not None for row in table.rows)
    here = (*([COVERAGE] if with_coverage else []), AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION)
    lines: list[dict[str, Cell]] = [
        {
            "Method": row.name,
            **with_ends(f"Paper: Suff. (%) {CI}", Interval(row.sufficiency, row.low, row.high)),
            "Paper: Nodes": row.nodes,
            **({"Paper: Fragment red. (%)": row.token_reduction} if with_tokens else {}),
            **with_ends(f"Here: Suff. (%) {CI}", SUFFICIENCY.interval(rows_of[row.label])),
            **{f"Here: {measure.heading}": measure.of(rows_of[row.label]) for measure in here},
        }
        for row in table.rows
    ]
    absent = [row.name for row in table.rows if not len(rows_of[row.label])]
    note = _scope_note(results, skills) + (f" Not run here: {', '.join(absent)}." if absent else "")
    if table is paper.CONCEPT:
        agreeing = [STRONG_VOTES.per_query(rows) for rows in rows_of.values() if STRONG_VOTES.known(rows)]
        if agreeing:
            note += (
                f" All votes agree on {np.concatenate(agreeing).mean():.1f} % of the verdicts, in the paper "
                f"on {paper.STRONG_VOTES} %."
            )
    return Table(
        table.label.removeprefix("tab:"),
        table.title,
        frame(lines),
        note=note,
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
        frame({"": name, "Paper": there, "Here": here} for name, there, here in numbers),
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
    lines: list[dict[str, Cell]] = []
    for sign, skills, at_20, at_60 in (
        ("≤", small, paper.SMALL_AT_20, paper.SMALL_AT_60),
        (">", counts.keys() - small, paper.LARGE_AT_20, paper.LARGE_AT_60),
    ):
        pair = results.common("mmr@k=20", "mmr@k=60", skills=skills & results.ablation_skills)
        lines.append(
            {
                "Skills of": f"{sign} {paper.SIZE_BOUNDARY} nodes",
                "Paper: k = 20, suff. (%)": at_20,
                "Paper: k = 60, suff. (%)": at_60,
                "Here: skills": pair[0]["skill"].nunique(),
                "Here: queries": len(pair[0]),
                **with_ends(f"Here: k = 20, suff. (%) {CI}", SUFFICIENCY.interval(pair[0])),
                **with_ends(f"Here: k = 60, suff. (%) {CI}", SUFFICIENCY.interval(pair[1])),
            }
        )
    return Table(
        "size-sweep",
        "k by size of the skill: why large skills get the larger budget",
        frame(lines),
        note=_scope_note(results, results.ablation_skills),
        reference="paper §5.3.3",
    )


# ---- ablations beyond the paper's


def granularity(results: Results) -> Table | None:
    """Return typed nodes against chunks of several sizes (paper §5.2.1); None if no sizes were run."""
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
    methods = {label: parse_method(label) for label in results.labels}
    unlimited = {label: m for label, m in methods.items() if m.share is None and m.max_tokens is None}
    return [label for label, method in unlimited.items() if getattr(method, part) is not None]


def _ablation(results: Results, labels: Sequence[str], name: str, title: str, note: str = "") -> Table | None:
    """Return methods with the main measures; None if fewer than two were run."""
    rows_of = {label: results.rows(label) for label in labels if results.has(label)}
    if len(rows_of) < 2:
        return None
    rows = measured(rows_of, (COVERAGE, AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION))
    return Table(name, title, rows, note, digits=DIGITS, strong={BASELINE})

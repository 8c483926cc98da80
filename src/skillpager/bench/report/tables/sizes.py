"""The paper's numbers on the dynamic budget, which depends on the size of the skill."""

from skillpager.bench.report import paper
from skillpager.bench.report.measures import AVERAGE_NODES, FRAGMENT_REDUCTION, SUFFICIENCY
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables.compared import HERE, PAPER, scope_note
from skillpager.bench.report.tables.table import Column, Row, Table


def size_sweep(results: Results) -> Table | None:
    """Return k = 20 against k = 60 for small and for large skills; None if they were not run.

    Reference: paper §5.3.3.
    """
    if not (results.has("mmr@k=20") and results.has("mmr@k=60")):
        return None
    small = {skill for skill, count in results.node_counts.items() if count <= paper.SIZE_BOUNDARY}
    sizes = (
        (f"≤ {paper.SIZE_BOUNDARY} nodes", small, paper.SMALL_AT_20, paper.SMALL_AT_60),
        (
            f"> {paper.SIZE_BOUNDARY} nodes",
            set(results.node_counts) - small,
            paper.LARGE_AT_20,
            paper.LARGE_AT_60,
        ),
    )
    rows = []
    for name, skills, at_20, at_60 in sizes:
        pair = [
            each.of_skills(skills & results.ablation_skills)
            for each in results.common("mmr@k=20", "mmr@k=60")
        ]
        measured = (SUFFICIENCY.interval(each) for each in pair)
        rows.append(Row((name, at_20, at_60, len(set(pair[0].skill)), len(pair[0]), *measured)))
    columns = (
        Column("Skills of"),
        *(Column(f"k = {k}, suff. (%)", PAPER) for k in (20, 60)),
        Column("skills", HERE),
        Column("queries", HERE),
        *(Column(f"k = {k}, suff. (%) [95 % CI]", HERE) for k in (20, 60)),
    )
    return Table(
        "size-sweep",
        "k by size of the skill: why large skills get the larger budget",
        columns,
        tuple(rows),
        note=scope_note(results, results.ablation_skills),
        reference="paper §5.3.3",
    )


def boundary_sweep(results: Results) -> Table | None:
    """Return the effect of the size from which a skill gets the larger budget; None if it was not swept.

    Reference: paper §5.3.3.
    """
    labels = [f"mmr@boundary={boundary}" for boundary in (80, 100, 120)]
    if not all(map(results.has, labels)):
        return None
    measured = results.common(*labels)
    middle = SUFFICIENCY.of(measured[1])
    rows = tuple(
        Row(
            (
                label.partition("=")[2],
                SUFFICIENCY.interval(rows),
                SUFFICIENCY.of(rows) - middle,
                AVERAGE_NODES.of(rows),
                FRAGMENT_REDUCTION.of(rows),
            ),
            strong=label == labels[1],
        )
        for label, rows in zip(labels, measured, strict=True)
    )
    return Table(
        "boundary-sweep",
        "The size up to which k is 20 and above which it is 60",
        (
            Column("Up to … nodes"),
            Column("Suff. (%) [95 % CI]", HERE),
            Column("against 100 nodes (points)", HERE),
            Column("Nodes", HERE),
            Column("Fragment red. (%)", HERE),
        ),
        rows,
        note=f"Paper: 80 and 120 change the sufficiency by less than {paper.BOUNDARY_CHANGE} points.",
        reference="paper §5.3.3",
    )

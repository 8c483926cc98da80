"""Tables of the data and of stage 1, beside the paper's."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median

from skillpager.bench.report import paper
from skillpager.bench.report.preservation import measure_preservation
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables.table import Cell, Column, Row, Table
from skillpager.bench.run.fitted import fitted_note
from skillpager.bench.validate.agreement import Agreement
from skillpager.bench.validate.node_types import parser_quality

_SIDES = (Column("Paper", digits=1), Column("Here", digits=1))


def composition(results: Results) -> Table:
    """Return what the benchmark consists of.

    Reference: paper §4.1, table tab:dataset-composition.
    """
    subsets = Counter(skill.subset for skill in results.skills)
    asked = Counter(query.skill for query in results.queries)
    lengths = [sum(len(text) for _, text in skill.files) for skill in results.skills]
    known = {
        "gt": ("Ground-truth skills", paper.GROUND_TRUTH_SKILLS),
        "pool": ("Pool skills", paper.POOL_SKILLS),
    }
    rows = [Row((title, count, subsets[subset])) for subset, (title, count) in known.items()]
    rows += [
        Row((f"Other skills: {subset}" if subset else "Other skills", None, count))
        for subset, count in subsets.items()
        if subset not in known
    ]
    rows += [
        Row(("Skills in all", paper.SKILLS, len(results.skills)), strong=True),
        Row(
            (
                "Queries per skill, mean",
                float(paper.QUERIES_PER_SKILL),
                fmean(asked.values()) if asked else None,
            )
        ),
        Row(("Queries in all", paper.QUERIES, len(results.queries)), strong=True),
        Row(("Characters of a skill, least", paper.CHARACTERS_MIN, min(lengths))),
        Row(("… median", paper.CHARACTERS_MEDIAN, int(median(lengths)))),
        Row(("… most", paper.CHARACTERS_MAX, max(lengths))),
        *_node_rows(list(results.node_counts.values())),
    ]
    return Table(
        "dataset-composition",
        "Composition of the benchmark",
        (Column("Component"), *_SIDES),
        tuple(rows),
        note="Characters are counted with front matter.",
        reference="paper §4.1, table tab:dataset-composition",
    )


def _node_rows(counts: Sequence[int]) -> list[Row]:
    if not counts:
        return []
    small = 100 * sum(count <= paper.SIZE_BOUNDARY for count in counts) / len(counts)
    return [
        Row(("Nodes in all", paper.NODES, sum(counts)), strong=True),
        Row(("Nodes of a skill, least", paper.NODES_MIN, min(counts))),
        Row(("… median", paper.NODES_MEDIAN, int(median(counts)))),
        Row(("… mean", paper.NODES_MEAN, fmean(counts))),
        Row(("… most", paper.NODES_MAX, max(counts))),
        Row((f"Skills of at most {paper.SIZE_BOUNDARY} nodes (%)", paper.SMALL_SKILLS, small)),
    ]


def node_types(results: Results) -> Table | None:
    """Return how the nodes fall into the six types; None if stage 1 was not run.

    Reference: paper §4.1, table tab:node-dist.
    """
    counts = Counter(node.type for node in results.nodes)
    total = counts.total()
    if not total:
        return None
    rows = [
        Row((kind, *published, counts[kind], 100 * counts[kind] / total))
        for kind, published in paper.NODE_TYPES.items()
    ]
    rows.append(Row(("total", paper.NODES, 100.0, total, 100.0), strong=True))
    columns = [Column(title, group, 1) for group in ("Paper", "Here") for title in ("Nodes", "Share (%)")]
    return Table(
        "node-types",
        "Node types after stage 1",
        (Column("Type"), *columns),
        tuple(rows),
        reference="paper §4.1, table tab:node-dist",
    )


def preservation(results: Results) -> Table | None:
    """Return where the characters of the skills went in stage 1; None if it was not run."""
    if not results.nodes:
        return None
    found = measure_preservation(results.skills, results.nodes)
    places: list[tuple[str, int]] = [
        ("in exactly one node", found.once),
        ("in headings and thematic breaks, kept as structure", found.structure),
        ("in front matter, kept as metadata", found.front_matter),
        ("in more than one node", found.repeated),
        ("nowhere", found.lost),
    ]
    rows = [Row((place, count, 100 * count / found.characters)) for place, count in places]
    rows.append(Row(("all characters but white space", found.characters, 100.0), strong=True))
    share: Cell = 100 * found.kept
    rows.append(Row(("body text preserved (in exactly one node)", None, share), strong=True))
    return Table(
        "preservation",
        "Losslessness of stage 1: where each character of the sources is",
        (Column("Characters"), Column("Count"), Column("Share (%)")),
        tuple(rows),
        note="Body text is all text but front matter, headings, thematic breaks and white space. Preserved "
        "means that it stands in exactly one node: all nodes together repeat nothing and lose nothing.",
    )


def parser_agreement(results: Results) -> Table | None:
    """Return how well the predicted node types match annotators'; None without annotations.

    Reference: paper §5.1.
    """
    quality = parser_quality(results.skills, results.nodes)
    if quality is None:
        return None
    raters = [quality.parser] + ([quality.annotators] if quality.annotators else [])
    rows = [
        Row(("Nodes compared", paper.VALIDATION_SAMPLE, *(each.cases for each in raters))),
        Row(("Accuracy (%)", paper.PARSER_ACCURACY, *(each.rate.scaled(100) for each in raters))),
        Row(("Macro-F1 (%)", paper.PARSER_MACRO_F1, *(100 * each.macro_f1 for each in raters))),
        *(
            Row((f"F1 of {score.label} (%)", None, *(_f1(each, score.label) for each in raters)))
            for score in quality.parser.scores
        ),
    ]
    titles = ("Paper", "Here", "Here: a second annotator")[: 1 + len(raters)]
    return Table(
        "parser-quality",
        "Node types of the parser against annotators' labels",
        (Column(""), *map(Column, titles)),
        tuple(rows),
        note="Paper: a sample balanced over types, sources and sizes, labelled by people. Here: all labelled "
        f"nodes of {quality.skills} skills, in the proportions in which they occur; nodes without a label: "
        f"{quality.unlabelled}. A second annotator is held against the first, as the parser is. "
        f"{fitted_note(results)}".rstrip(),
        reference="paper §5.1",
    )


def _f1(agreement: Agreement, label: str) -> float | None:
    return next((100 * score.f1 for score in agreement.scores if score.label == label), None)


def judge_validation(results: Results) -> Table | None:
    """Return how well the judge agrees with people; None unless a scored validation is in the manifest.

    Reference: paper §4.2.
    """
    scored = results.validation
    if not scored:
        return None
    rows = []
    for name, published in paper.JUDGE_AGREEMENT.items():
        here = scored.get(name)
        cells: tuple[Cell, ...] = (100 * here.rate, here.kappa, here.cases) if here else (None, None, None)
        rows.append(Row((_VOTES[name], published.agreement, published.kappa, *cells), strong=name == "all"))
    columns = [Column("Agreement (%)", "Paper"), Column("Cohen's κ", "Paper", 3)]
    columns += [Column("Agreement (%)", "Here"), Column("Cohen's κ", "Here", 3), Column("Cases", "Here")]
    return Table(
        "judge-validation",
        "The judge against people",
        (Column("Votes"), *columns),
        tuple(rows),
        reference=f"paper §4.2: {paper.VALIDATION_SAMPLE} cases",
    )


_VOTES = {"all": "all", "3-0": "3-0, unanimous", "2-1": "2-1, divided"}

"""Tables of the data, of stage 1 and of agreement with people, beside the paper's."""

from collections import Counter
from statistics import fmean, median

from skillpager.bench.data.skillrouter import POOL
from skillpager.bench.report import paper
from skillpager.bench.report.measures import LATENCY_MEDIAN
from skillpager.bench.report.results import GROUND_TRUTH, Results
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.table import Cell, Table, frame, with_ends
from skillpager.bench.validate.node_types import parser_quality
from skillpager.parsing.frontmatter import find_body
from skillpager.tokens import default_counter

Numbers = list[tuple[str, Cell, Cell]]  # name, the paper's, ours


def composition(results: Results) -> Table:
    """Return the composition of the benchmark: skills, queries, characters and nodes."""
    subsets = Counter(skill.subset for skill in results.skills)
    asked = Counter(query.skill for query in results.queries)
    bodies = ["".join(text[find_body(text) :] for _, text in skill.files) for skill in results.skills]
    lengths = list(map(len, bodies))
    others = {subset: count for subset, count in subsets.items() if subset not in GROUND_TRUTH | {POOL}}
    numbers: Numbers = [
        ("Ground-truth skills", paper.GROUND_TRUTH_SKILLS, sum(map(subsets.__getitem__, GROUND_TRUTH))),
        ("Pool skills", paper.POOL_SKILLS, subsets[POOL]),
        *(
            (f"Other skills: {subset}" if subset else "Other skills", None, others[subset])
            for subset in others
        ),
        ("Skills in all", paper.SKILLS, len(results.skills)),
        ("Queries per skill, mean", float(paper.QUERIES_PER_SKILL), fmean(asked.values()) if asked else None),
        ("Queries in all", paper.QUERIES, len(results.queries)),
        ("Characters of a skill, least", paper.CHARACTERS_MIN, min(lengths)),
        ("… median", paper.CHARACTERS_MEDIAN, int(median(lengths))),
        ("… most", paper.CHARACTERS_MAX, max(lengths)),
    ]
    if counts := list(results.node_counts.values()):
        truth = [results.node_counts[skill.id] for skill in results.skills if skill.subset in GROUND_TRUTH]
        small = 100 * sum(count <= paper.SIZE_BOUNDARY for count in counts) / len(counts)
        numbers += [
            ("Nodes in all", paper.NODES, sum(counts)),
            ("Nodes of a skill, least", paper.NODES_MIN, min(counts)),
            ("… median", paper.NODES_MEDIAN, int(median(counts))),
            ("… mean", paper.NODES_MEAN, fmean(counts)),
            ("… mean of ground-truth skills", paper.GROUND_TRUTH_NODES_MEAN, fmean(truth) if truth else None),
            ("… most", paper.NODES_MAX, max(counts)),
            (f"Skills of at most {paper.SIZE_BOUNDARY} nodes (%)", paper.SMALL_SKILLS, small),
        ]
    return Table(
        "dataset-composition",
        "Composition of the benchmark",
        frame({"Component": name, "Paper": there, "Here": here} for name, there, here in numbers),
        note="Characters are those of the bodies, without front matter.",
        reference="paper §4.1, table tab:dataset-composition",
        digits={"Paper": 1, "Here": 1},
        strong={"Skills in all", "Queries in all", "Nodes in all"},
    )


def node_types(results: Results) -> Table | None:
    """Return the number of nodes of each of the six types; None if stage 1 was not run."""
    counts = Counter(node.type for node in results.nodes)
    if not counts:
        return None
    total = counts.total()
    there = {**paper.NODE_TYPES, "total": (paper.NODES, 100.0)}
    here = {**{kind: counts[kind] for kind in paper.NODE_TYPES}, "total": total}
    shares = ("Paper: Share (%)", "Here: Share (%)")
    return Table(
        "node-types",
        "Node types after stage 1",
        frame(
            {
                "Type": kind,
                "Paper: Nodes": nodes,
                shares[0]: share,
                "Here: Nodes": here[kind],
                shares[1]: 100 * here[kind] / total,
            }
            for kind, (nodes, share) in there.items()
        ),
        reference="paper §4.1, table tab:node-dist",
        digits=dict.fromkeys(shares, 1),
        strong={"total"},
    )


def costs(results: Results) -> Table | None:
    """Return the time of stage 1 and what a query costs, beside the paper's; None if stage 1 was not run."""
    indexes = results.folder.indexes()
    if not indexes:
        return None
    seconds = [each.seconds for each in indexes if each.seconds is not None]
    minutes = paper.STAGE_1_HOURS * 60 * paper.STAGE_1_WORKERS / paper.SKILLS
    tokens = [default_counter().count(query.query) for query in results.queries]
    numbers: Numbers = [
        (
            "Stage 1 of a skill, median (seconds)",
            60 * paper.STAGE_1_MINUTES,
            median(seconds) if seconds else None,
        ),
        ("… mean, of one worker (seconds)", 60 * minutes, fmean(seconds) if seconds else None),
        ("… all skills, work of all workers (minutes)", minutes * paper.SKILLS, sum(seconds) / 60),
        ("Skills whose stage 1 was timed", paper.SKILLS, len(seconds)),
        ("Tokens of a query, mean", paper.QUERY_TOKENS, fmean(tokens)),
        ("… median", None, float(median(tokens))),
        ("Selection and page by mmr, median (ms)", None, LATENCY_MEDIAN.of(results.rows("mmr"))),
    ]
    stored = len(indexes) - len(seconds)
    remark = (
        f" {stored:,} of {len(indexes):,} indexes were stored before: SKILLPAGER_CACHE_DIR names a new store."
    )
    return Table(
        "costs",
        "Cost: stage 1, once for a skill, and a query",
        frame({"": name, "Paper": there, "Here": here} for name, there, here in numbers),
        note="Stage 1 is parsing, embedding, typing and linking; the first skill of a process also loads the "
        f"models. The paper types nodes by a language model, with {paper.STAGE_1_WORKERS} workers. Its "
        "tokens are those of the embedding call: more than its queries, of one to three sentences, can hold."
        f"{remark if stored else ''}",
        reference="paper §3.1, Caching; §3.2, Computational Cost",
    )


def parser_agreement(results: Results) -> Table | None:
    """Return how well the predicted node types match annotators'; None without annotations."""
    quality = parser_quality(results.skills, results.nodes)
    if quality is None:
        return None
    raters = {"Here": quality.parser}
    if quality.annotators:
        raters["Here: a second annotator"] = quality.annotators
    numbers: list[tuple[str, Cell, list[Cell | Interval]]] = [
        ("Nodes compared", paper.VALIDATION_SAMPLE, [each.cases for each in raters.values()]),
        ("Accuracy (%)", paper.PARSER_ACCURACY, [each.rate.scaled(100) for each in raters.values()]),
        ("Macro-F1 (%)", paper.PARSER_MACRO_F1, [100 * each.macro_f1 for each in raters.values()]),
    ]
    scores = [{score.label: 100 * score.f1 for score in each.scores} for each in raters.values()]
    numbers += [(f"F1 of {label} (%)", None, [each.get(label) for each in scores]) for label in scores[0]]
    lines: list[dict[str, Cell]] = []
    for name, there, here in numbers:
        line: dict[str, Cell] = {"": name, "Paper": there}
        for rater, number in zip(raters, here, strict=True):
            line |= with_ends(rater, number)
        lines.append(line)
    return Table(
        "parser-quality",
        "Node types of the parser against annotators' labels",
        frame(lines),
        note="Paper: a sample balanced over types, sources and sizes, labelled by people. Here: all labelled "
        f"nodes of {quality.skills} skills, in the proportions in which they occur; nodes without a label: "
        f"{quality.unlabelled}. A second annotator is held against the first, as the parser is.",
        reference="paper §5.1",
    )


def judge_validation(results: Results) -> Table | None:
    """Return how well the judge agrees with people; None unless a scored validation is in the manifest."""
    if not results.validation:
        return None
    names = {"all": "all", "3-0": "3-0, unanimous", "2-1": "2-1, divided"}
    lines: list[dict[str, Cell]] = []
    for name, there in paper.JUDGE_AGREEMENT.items():
        here = results.validation.get(name)
        lines.append(
            {
                "Votes": names[name],
                "Paper: Agreement (%)": there.agreement,
                "Paper: Cohen's κ": there.kappa,
                "Here: Agreement (%)": 100 * here.rate if here else None,
                "Here: Cohen's κ": here.kappa if here else None,
                "Here: Cases": here.cases if here else None,
            }
        )
    return Table(
        "judge-validation",
        "The judge against people",
        frame(lines),
        reference=f"paper §4.2: {paper.VALIDATION_SAMPLE} cases",
        digits={"Paper: Cohen's κ": 3, "Here: Cohen's κ": 3},
        strong={"all"},
    )

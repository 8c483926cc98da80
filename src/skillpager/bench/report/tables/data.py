"""Tables of the data and of stage 1, beside the paper's."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from itertools import chain
from statistics import fmean, median

import numpy as np

from skillpager.bench.data.languages import MIXED_SHARE, OTHER_SHARE, Language, name_language
from skillpager.bench.data.records import NodeRecord, SkillRecord
from skillpager.bench.data.skillrouter import POOL
from skillpager.bench.report import paper
from skillpager.bench.report.measures import LATENCY_MEDIAN
from skillpager.bench.report.results import GROUND_TRUTH, Results
from skillpager.bench.report.tables.table import Cell, Table
from skillpager.bench.validate.node_types import parser_quality
from skillpager.errors import BenchError
from skillpager.parsing.frontmatter import find_body
from skillpager.parsing.lines import Lines
from skillpager.parsing.markdown import parse_blocks
from skillpager.tokens import default_counter


def composition(results: Results) -> Table:
    """Return the composition of the benchmark: skills, languages, queries, characters and nodes."""
    subsets = Counter(skill.subset for skill in results.skills)
    asked = Counter(query.skill for query in results.queries)
    bodies = ["".join(text[find_body(text) :] for _, text in skill.files) for skill in results.skills]
    lengths, languages = list(map(len, bodies)), Counter(map(name_language, bodies))
    curated = GROUND_TRUTH | {POOL}
    numbers: list[tuple[str, Cell, Cell]] = [
        ("Ground-truth skills", paper.GROUND_TRUTH_SKILLS, sum(map(subsets.__getitem__, GROUND_TRUTH))),
        ("Pool skills", paper.POOL_SKILLS, subsets[POOL]),
        *(
            (f"Other skills: {subset}" if subset else "Other skills", None, count)
            for subset, count in subsets.items()
            if subset not in curated
        ),
        ("Skills in all", paper.SKILLS, len(results.skills)),
        *((f"… {kind}", paper.LANGUAGES[kind], languages[kind]) for kind in Language),
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
        [{"Component": name, "Paper": there, "Here": here} for name, there, here in numbers],
        note="Characters are those of the bodies, without front matter. A skill is English-dominant if less "
        f"than {MIXED_SHARE:.0%} of its words are in another language, mixed if less than {OTHER_SHARE:.0%}; "
        "the paper's rule is not published.",
        reference="paper §4.1, table tab:dataset-composition",
        digits={"Paper": 1, "Here": 1},
        strong={"Skills in all", "Queries in all", "Nodes in all"},
    )


def node_types(results: Results) -> Table | None:
    """Return the number of nodes of each of the six types; None if stage 1 was not run."""
    counts = Counter(node.type for node in results.nodes)
    total = counts.total()
    if not total:
        return None
    rows = [
        (kind, *there, counts[kind], 100 * counts[kind] / total) for kind, there in paper.NODE_TYPES.items()
    ]
    headings = ("Type", "Paper: Nodes", "Paper: Share (%)", "Here: Nodes", "Here: Share (%)")
    return Table(
        "node-types",
        "Node types after stage 1",
        [
            dict(zip(headings, row, strict=True))
            for row in (*rows, ("total", paper.NODES, 100.0, total, 100.0))
        ],
        reference="paper §4.1, table tab:node-dist",
        digits={"Paper: Share (%)": 1, "Here: Share (%)": 1},
        strong={"total"},
    )


# ---- cost


def costs(results: Results) -> Table | None:
    """Return the time of stage 1 and what a query costs, beside the paper's; None if stage 1 was not run."""
    indexes = results.folder.indexes()
    if not indexes:
        return None
    seconds = [each.seconds for each in indexes if each.seconds is not None]
    minutes = paper.STAGE_1_HOURS * 60 * paper.STAGE_1_WORKERS / paper.SKILLS
    count = default_counter().count
    tokens = [count(query.query) for query in results.queries]
    pages = [results.rows(label) for label in ("mmr",) if results.has(label)]
    numbers: list[tuple[str, Cell, Cell]] = [
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
        ("Selection and page by mmr, median (ms)", None, LATENCY_MEDIAN.of(pages[0]) if pages else None),
    ]
    stored = len(indexes) - len(seconds)
    remark = (
        f" {stored:,} of {len(indexes):,} indexes were stored before: SKILLPAGER_CACHE_DIR names a new store."
        if stored
        else ""
    )
    return Table(
        "costs",
        "Cost: stage 1, once for a skill, and a query",
        [{"": name, "Paper": there, "Here": here} for name, there, here in numbers],
        note="Stage 1 is parsing, embedding, typing and linking; the first skill of a process also loads the "
        f"models. The paper types nodes by a language model, with {paper.STAGE_1_WORKERS} workers. Its "
        "tokens are those of the embedding call: more than its queries, of one to three sentences, can hold."
        f"{remark}",
        reference="paper §3.1, Caching; §3.2, Computational Cost",
    )


# ---- losslessness


@dataclass(frozen=True, slots=True)
class Preservation:
    """Where the characters of the sources are; white space is not counted."""

    once: int = 0  # in exactly one node
    repeated: int = 0  # in more than one
    structure: int = 0  # in headings and thematic breaks outside of nodes
    front_matter: int = 0
    lost: int = 0  # in none of these

    @property
    def characters(self) -> int:
        """All characters."""
        return sum(astuple(self))

    @property
    def kept(self) -> float:
        """Share of the body text that is in exactly one node, 0 to 1; 1 if there is none."""
        body = self.once + self.repeated + self.lost
        return self.once / body if body else 1.0


def measure_preservation(skills: Iterable[SkillRecord], nodes: Iterable[NodeRecord]) -> Preservation:
    """Return where the characters of the skills are, by the offsets of their nodes.

    Raises:
        BenchError: A node lies outside of its file.

    Reference: docs/design.md, contract 1; paper §2.3, “preserves the original text boundary”.
    """
    texts = {(skill.id, path): text for skill in skills for path, text in skill.files}
    # of each file, how many nodes begin, less those that end, at each offset
    steps = {place: np.zeros(len(text) + 1, dtype=np.int64) for place, text in texts.items()}
    for node in nodes:
        place = (node.skill, node.file)
        if not 0 <= node.start <= node.end <= len(texts.get(place, "")):
            raise BenchError(
                f"Node {node.id} of skill {node.skill!r} is not in its file {node.file}: the nodes belong to "
                "other texts, so run the methods in a folder of their own."
            )
        steps[place][node.start] += 1
        steps[place][node.end] -= 1
    totals = np.zeros(5, dtype=np.int64)
    for place, text in texts.items():
        count = np.cumsum(steps[place])[:-1]
        body = find_body(text)
        counted = np.fromiter((not character.isspace() for character in text), bool, len(text))
        counted[: text.startswith("\ufeff")] = False
        front = np.arange(len(text)) < body
        structure = np.zeros(len(text), dtype=bool)  # the lines of headings, underlines included, and rules
        lines = Lines(text[body:])
        for token in chain.from_iterable(parse_blocks(text[body:])):
            if token.type in ("heading_open", "hr") and token.map:
                first, behind = token.map
                structure[body + lines.start(first) : body + lines.start(behind)] = True
        inside, outside = counted & ~front, counted & ~front & (count == 0)
        kinds = (inside & (count == 1), inside & (count > 1), outside & structure, counted & front)
        totals += [int(kind.sum()) for kind in (*kinds, outside & ~structure)]
    return Preservation(*totals.tolist())


def preservation(results: Results) -> Table | None:
    """Return where the characters of the skills went in stage 1; None if it was not run."""
    if not results.nodes:
        return None
    found = measure_preservation(results.skills, results.nodes)
    total, preserved = "all characters but white space", "body text preserved (in exactly one node)"
    places = {
        "in exactly one node": found.once,
        "in headings and thematic breaks, kept as structure": found.structure,
        "in front matter, kept as metadata": found.front_matter,
        "in more than one node": found.repeated,
        "nowhere": found.lost,
        total: found.characters,
    }
    shares = [(place, count, 100 * count / found.characters) for place, count in places.items()]
    headings = ("Characters", "Count", "Share (%)")
    return Table(
        "preservation",
        "Losslessness of stage 1: where each character of the sources is",
        [dict(zip(headings, row, strict=True)) for row in (*shares, (preserved, None, 100 * found.kept))],
        note="Body text is all text but front matter, headings, thematic breaks and white space. Preserved "
        "means that it stands in exactly one node: all nodes together repeat nothing and lose nothing.",
        strong={total, preserved},
    )


# ---- agreement with people


def parser_agreement(results: Results) -> Table | None:
    """Return how well the predicted node types match annotators'; None without annotations."""
    quality = parser_quality(results.skills, results.nodes)
    if quality is None:
        return None
    raters = {"Here": quality.parser}
    if quality.annotators:
        raters["Here: a second annotator"] = quality.annotators
    scores = {name: {score.label: 100 * score.f1 for score in each.scores} for name, each in raters.items()}
    numbers: list[tuple[str, Cell, dict[str, Cell]]] = [
        ("Nodes compared", paper.VALIDATION_SAMPLE, {name: each.cases for name, each in raters.items()}),
        ("Accuracy (%)", paper.PARSER_ACCURACY, {n: each.rate.scaled(100) for n, each in raters.items()}),
        ("Macro-F1 (%)", paper.PARSER_MACRO_F1, {n: 100 * each.macro_f1 for n, each in raters.items()}),
    ]
    numbers += [
        (f"F1 of {label} (%)", None, {name: scores[name].get(label) for name in raters})
        for label in scores["Here"]
    ]
    return Table(
        "parser-quality",
        "Node types of the parser against annotators' labels",
        [{"": name, "Paper": there, **here} for name, there, here in numbers],
        note="Paper: a sample balanced over types, sources and sizes, labelled by people. Here: all labelled "
        f"nodes of {quality.skills} skills, in the proportions in which they occur; nodes without a label: "
        f"{quality.unlabelled}. A second annotator is held against the first, as the parser is.",
        reference="paper §5.1",
    )


def parser_confusion(results: Results) -> Table | None:
    """Return which types the parser gives to the nodes of each annotated type; None without annotations."""
    quality = parser_quality(results.skills, results.nodes)
    if quality is None:
        return None
    agreement = quality.parser
    scores = {score.label: score for score in agreement.scores}
    labels = list(scores)
    places = [agreement.labels.index(label) for label in labels]
    rows: list[dict[str, Cell]] = [
        {
            "Annotated as": label,
            **{
                f"Parsed as: {other}": agreement.confusion[row][column]
                for other, column in zip(labels, places, strict=True)
            },
            "Nodes": scores[label].reference,
            "Recall (%)": 100 * scores[label].recall if scores[label].reference else None,
        }
        for label, row in zip(labels, places, strict=True)
    ]
    precision, parsed = "precision (%)", "nodes"
    rows.append(
        {
            "Annotated as": parsed,
            **{f"Parsed as: {label}": scores[label].rated for label in labels},
            "Nodes": agreement.cases,
            "Recall (%)": None,
        }
    )
    rows.append(
        {
            "Annotated as": precision,
            **{
                f"Parsed as: {label}": 100 * scores[label].precision if scores[label].rated else None
                for label in labels
            },
            "Nodes": None,
            "Recall (%)": None,
        }
    )
    return Table(
        "parser-confusion",
        "Confusion of node types: annotators' labels and the parser's",
        rows,
        note="Cells count nodes. The paper gives no matrix; it names concept, param and example as the types "
        "that are confused most.",
        reference="paper §5.1.1",
        digits={f"Parsed as: {label}": 1 for label in labels} | {"Recall (%)": 1},
        strong={parsed, precision},
    )


def judge_validation(results: Results) -> Table | None:
    """Return how well the judge agrees with people; None unless a scored validation is in the manifest."""
    if not results.validation:
        return None
    names = {"all": "all", "3-0": "3-0, unanimous", "2-1": "2-1, divided"}
    rows: list[dict[str, Cell]] = []
    for name, there in paper.JUDGE_AGREEMENT.items():
        here = results.validation.get(name)
        rows.append(
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
        rows,
        reference=f"paper §4.2: {paper.VALIDATION_SAMPLE} cases",
        digits={"Paper: Cohen's κ": 3, "Here: Cohen's κ": 3},
        strong={"all"},
    )

"""Settings and data of a run, and how they differ from the paper's experiment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from skillpager.bench.data.records import QueryRecord
from skillpager.bench.judge.evidence_judge import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.measures import AVERAGE_NODES
from skillpager.bench.report.results import GROUND_TRUTH, Results
from skillpager.bench.report.table import MISSING, Table, frame
from skillpager.parsing.lines import LINE_END

# characters of a digest that are shown
DIGEST = 12

_THEIR_QUERIES = (
    f"{paper.QUERIES:,}, by DeepSeek-V4-Flash from name and body: agents' requests of one to three sentences"
)


def run_facts(results: Results) -> list[tuple[str, str]]:
    """Return name and value of everything that the results depend on."""
    manifest = results.manifest
    data = {**_entry(manifest, "run_data"), **_entry(manifest, "data")}
    parts = ("encoder", "embedded_text", "classifier", "splitter", "token_counter", "baselines")
    return [
        ("Data", _data(results)),
        ("Skills, queries", f"{len(results.skills):,}, {len(results.queries):,}"),
        ("Digest of the skills", _text(data, "skills_sha256")[:DIGEST]),
        ("Judge", results.judge),
        *((name.capitalize().replace("_", " "), _part(results, name)) for name in parts),
        ("Page style", _part(results, "style")),
        ("Methods", f"{sum(map(results.has, results.labels)):,}"),
        ("Seed", _text(manifest, "seed")),
        ("Version", f"skillpager {_text(manifest, 'version')}"),
        ("Command", f"skillpager bench report {results.folder.path.name} --judge {results.judge}"),
    ]


def differences(results: Results) -> Table:
    """Return the differences from the paper's experiment, and their effect on the numbers."""
    on_data = on_classifier = "Skills were not parsed."
    if counts := list(results.node_counts.values()):
        small = 100 * sum(count <= paper.SIZE_BOUNDARY for count in counts) / len(counts)
        on_data = (
            f"A skill has {median(counts):.0f} nodes in the median, there {paper.NODES_MEDIAN}; "
            f"{small:.1f} % have at most {paper.SIZE_BOUNDARY}, there {paper.SMALL_SKILLS:.1f} %. Fewer "
            "queries make intervals wider: an interval of one point there is about "
            f"{(paper.QUERIES / max(len(results.queries), 1)) ** 0.5:.1f} points here."
        )
    if types := Counter(node.type for node in results.nodes):
        on_classifier = (
            f"{100 * types['concept'] / types.total():.1f} % of the nodes are concepts, there "
            f"{paper.NODE_TYPES['concept'][1]:.1f} %. Types decide the concept ablation, and through "
            "condition edges a little of the graph methods; mmr does not read them."
        )
    on_judge = "Another model or prompt may be stricter or milder: compare differences, not levels."
    if results.judge == EVIDENCE:
        on_judge = (
            "The evidence measure is stricter: every part counts that an annotator held to be necessary, and "
            "nothing else. The full document scores 100 % by construction, and every selection less. Compare "
            "the order of methods and the signs of differences, not levels."
        )
    style = _part(results, "style")
    on_style = "Headings, lead-ins and markers are part of the contexts, and are paid for."
    theirs = (
        f"{paper.SKILLS} skills of SkillRouter-Eval-Core (easy), {paper.GROUND_TRUTH_SKILLS} of them curated"
    )
    ours = f"{_data(results)}: {len(results.skills):,} skills"
    rows = (
        ("Data", theirs, ours, on_data),
        ("Judge", paper.JUDGE, results.judge, on_judge),
        ("Queries", _THEIR_QUERIES, *_queries(results)),
        (
            "Encoder",
            f"{paper.ENCODER}, of the nodes alone",
            f"{_part(results, 'encoder')}, node texts {_part(results, 'embedded_text')}",
            _on_encoder(results),
        ),
        ("Classifier", paper.CLASSIFIER, _part(results, "classifier"), on_classifier),
        (
            "Context",
            "nodes in document order, concatenated",
            f"style {style}",
            "The same." if style == "plain" else on_style,
        ),
    )
    headings = ("What", "Paper", "Here", "What it does to the numbers")
    cells = frame(dict(zip(headings, row, strict=True)) for row in (*rows, *_splitter(results)))
    return Table("differences", "Why numbers differ from the paper's", cells)


def _splitter(results: Results) -> list[tuple[str, str, str, str]]:
    """Return the row of the splitter, which data with the paper's ground-truth skills alone can tell."""
    counts = [results.node_counts[skill.id] for skill in results.skills if skill.subset in GROUND_TRUTH]
    if not any(counts):
        return []
    there, here = paper.GROUND_TRUTH_NODES_MEAN, fmean(counts)
    effect = (
        f"A node holds {there / here:.1f} times the text of the paper's, so that the same k shows as much "
        "more of a skill and saves less: compare tokens, not nodes."
    )
    version = _part(results, "splitter")
    return [
        (
            "Splitter",
            f"{there:.1f} nodes a ground-truth skill",
            f"version {version}: {here:.1f} nodes a ground-truth skill",
            effect,
        )
    ]


def _on_encoder(results: Results) -> str:
    """Return which tables the encoder shapes, and where that shows in the numbers of nodes."""
    text = (
        "Its cosines decide how relevance and redundancy weigh against each other: where MMR stops (λ and k "
        "sweeps, main results), how far the greedy walk goes and how many semantic edges there are."
    )
    shown = [
        f"{row.label} shows {AVERAGE_NODES.of(results.rows(row.label, skills)):.1f} nodes here, "
        f"{row.nodes:.1f} there"
        for rows, skills in (
            ((paper.MAIN.row("mmr"), paper.MAIN.row("greedy_graph")), None),
            (paper.LAMBDA.rows, results.ablation_skills),
        )
        for row in rows
        if row.nodes is not None and results.has(row.label)
    ]
    return f"{text} At the same settings {'; '.join(shown)}." if shown else text


def _queries(results: Results) -> tuple[str, str]:
    """Return what the queries here are, and what that does to the numbers."""
    words = median(len(query.query.split()) for query in results.queries)
    effect = (
        "How much of a skill a query needs sets the level of every selection: compare differences between "
        "methods."
    )
    lines_of = {skill.id: LINE_END.split(skill.text) for skill in results.skills}
    shares = [_needed_share(query, lines_of[query.skill]) for query in results.queries if query.critical]
    if shares:
        effect += f" Here a query needs {100 * median(shares):.0f} % of the lines of its skill in the median."
    return f"{len(results.queries):,}, by {_origins(results)}; {words:.0f} words in the median", effect


def _needed_share(query: QueryRecord, lines: Sequence[str]) -> float:
    """Return the share of the lines of a skill that are critical for a query; blank lines do not count."""
    written = {number for number, line in enumerate(lines, 1) if line.strip()}
    needed = {number for first, last in query.critical for number in range(first, last + 1)}
    return len(needed & written) / len(written)


def _origins(results: Results) -> str:
    """Return the writers of the queries."""
    return ", ".join(dict.fromkeys(query.origin for query in results.queries if query.origin)) or MISSING


def _data(results: Results) -> str:
    """Return source, subsets and the writers of the queries."""
    source = _text(_entry(results.manifest, "data"), "source")
    subsets = ", ".join(dict.fromkeys(skill.subset for skill in results.skills if skill.subset))
    origins = _origins(results)
    by = f"queries by {origins}" if origins != MISSING else ""
    parts = (source if source != MISSING else "", subsets, by)
    return "; ".join(filter(None, parts)) or MISSING


def _part(results: Results, name: str) -> str:
    return _text(_entry(results.manifest, "run"), name)


def _entry(manifest: Mapping[str, object], name: str) -> Mapping[str, object]:
    entry = manifest.get(name)
    return entry if isinstance(entry, Mapping) else {}


def _text(entry: Mapping[str, object], name: str) -> str:
    return str(entry[name]) if entry.get(name) is not None else MISSING

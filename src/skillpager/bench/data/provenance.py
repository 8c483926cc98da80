"""Settings and data of a run, and how they differ from the paper's experiment."""

from collections import Counter
from collections.abc import Mapping
from statistics import median

from skillpager.bench.judge.evidence_judge import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.measures import AVERAGE_NODES
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables.table import MISSING, Table

# characters of a digest that are shown
DIGEST = 12


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
    on_encoder = "λ and early stopping depend on how large an encoder's cosines are"
    if results.has("mmr"):
        here = AVERAGE_NODES.of(results.rows("mmr"))
        on_encoder += (
            f": at the same settings mmr shows {here:.1f} nodes a context here, "
            f"{paper.MAIN.row('mmr').nodes:.1f} there"
        )
    style = _part(results, "style")
    on_style = "Headings, lead-ins and markers are part of the contexts, and are paid for."
    theirs = (
        f"{paper.SKILLS} skills of SkillRouter-Eval-Core (easy), {paper.QUERIES:,} queries written by a model"
    )
    ours = f"{_data(results)}: {len(results.skills):,} skills, {len(results.queries):,} queries"
    rows = (
        ("Data", theirs, ours, on_data),
        ("Judge", paper.JUDGE, results.judge, on_judge),
        ("Encoder", paper.ENCODER, _part(results, "encoder"), f"{on_encoder}."),
        ("Classifier", paper.CLASSIFIER, _part(results, "classifier"), on_classifier),
        (
            "Context",
            "nodes in document order, concatenated",
            f"style {style}",
            "The same." if style == "plain" else on_style,
        ),
    )
    headings = ("What", "Paper", "Here", "What it does to the numbers")
    cells = [dict(zip(headings, row, strict=True)) for row in rows]
    return Table("differences", "Why numbers differ from the paper's", cells)


def _data(results: Results) -> str:
    """Return source, subsets and the writers of the queries."""
    source = _text(_entry(results.manifest, "data"), "source")
    subsets = ", ".join(dict.fromkeys(skill.subset for skill in results.skills if skill.subset))
    origins = ", ".join(dict.fromkeys(query.origin for query in results.queries if query.origin))
    parts = (source if source != MISSING else "", subsets, f"queries by {origins}" if origins else "")
    return "; ".join(filter(None, parts)) or MISSING


def _part(results: Results, name: str) -> str:
    return _text(_entry(results.manifest, "run"), name)


def _entry(manifest: Mapping[str, object], name: str) -> Mapping[str, object]:
    entry = manifest.get(name)
    return entry if isinstance(entry, Mapping) else {}


def _text(entry: Mapping[str, object], name: str) -> str:
    return str(entry[name]) if entry.get(name) is not None else MISSING

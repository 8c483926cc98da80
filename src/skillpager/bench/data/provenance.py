"""Provenance of a run: its data, models and settings, and how they differ from the paper's experiment."""

from collections import Counter
from collections.abc import Mapping
from statistics import median

from skillpager.bench.judge.evidence import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.measures import AVERAGE_NODES
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables.table import MISSING, Table

# characters of a digest that are shown
DIGEST = 12


def run_facts(results: Results) -> list[tuple[str, str]]:
    """Return name and value of all that the results depend on."""
    data = _entry(results.manifest, "data")
    return [
        ("Data", _data(results)),
        ("Skills, queries", f"{len(results.skills):,}, {len(results.queries):,}"),
        (
            "Digest of the skills",
            _text({**_entry(results.manifest, "run_data"), **data}, "skills_sha256")[:DIGEST],
        ),
        ("Judge", results.judge),
        ("Encoder", _part(results, "encoder")),
        ("Embedded text", _part(results, "embedded_text")),
        ("Classifier", _part(results, "classifier")),
        ("Splitter", _part(results, "splitter")),
        ("Token counter", _part(results, "token_counter")),
        ("Page style", _part(results, "style")),
        ("Methods", f"{sum(map(results.has, results.labels)):,}"),
        ("Seed", _text(results.manifest, "seed")),
        ("Version", f"skillpager {_text(results.manifest, 'version')}"),
        ("Command", f"skillpager bench report {results.folder.path.name} --judge {results.judge}"),
    ]


def differences(results: Results) -> Table:
    """Return what differs from the paper's experiment, and what that does to the numbers."""
    rows = (
        (
            "Data",
            f"{paper.SKILLS} skills of SkillRouter-Eval-Core (easy), {paper.QUERIES:,} queries written by a "
            "model",
            f"{_data(results)}: {len(results.skills):,} skills, {len(results.queries):,} queries",
            _data_effect(results),
        ),
        ("Judge", paper.JUDGE, results.judge, _judge_effect(results)),
        ("Encoder", paper.ENCODER, _part(results, "encoder"), _encoder_effect(results)),
        ("Classifier", paper.CLASSIFIER, _part(results, "classifier"), _classifier_effect(results)),
        (
            "Context",
            "nodes in document order, concatenated",
            f"style {_part(results, 'style')}",
            _style_effect(_part(results, "style")),
        ),
    )
    headings = ("What", "Paper", "Here", "What it does to the numbers")
    cells = [dict(zip(headings, row, strict=True)) for row in rows]
    return Table("differences", "Why numbers differ from the paper's", cells)


# ---- what it does to the numbers


def _data_effect(results: Results) -> str:
    counts = list(results.node_counts.values())
    if not counts:
        return "Skills were not parsed."
    small = 100 * sum(count <= paper.SIZE_BOUNDARY for count in counts) / len(counts)
    return (
        f"A skill has {median(counts):.0f} nodes in the median, there {paper.NODES_MEDIAN}; {small:.1f} % "
        f"have at most {paper.SIZE_BOUNDARY}, there {paper.SMALL_SKILLS:.1f} %. Fewer queries make "
        "intervals wider: an interval of one point there is about "
        f"{(paper.QUERIES / max(len(results.queries), 1)) ** 0.5:.1f} points here."
    )


def _judge_effect(results: Results) -> str:
    if results.judge != EVIDENCE:
        return "Another model or prompt may be stricter or milder: compare differences, not levels."
    return (
        "The evidence measure is stricter: every part counts that an annotator held to be necessary, and "
        "nothing else. The full document scores 100 % by construction, and every selection less. Compare "
        "the order of methods and the signs of differences, not levels."
    )


def _encoder_effect(results: Results) -> str:
    if not results.has("mmr"):
        return "λ and early stopping depend on how large an encoder's cosines are."
    here = AVERAGE_NODES.of(results.rows("mmr"))
    there = paper.MAIN.row("mmr").nodes
    return (
        "λ and early stopping depend on how large an encoder's cosines are: at the same settings mmr shows "
        f"{here:.1f} nodes a context here, {there:.1f} there."
    )


def _classifier_effect(results: Results) -> str:
    counts = Counter(node.type for node in results.nodes)
    if not counts:
        return "Skills were not parsed."
    share = 100 * counts["concept"] / counts.total()
    return (
        f"{share:.1f} % of the nodes are concepts, there {paper.NODE_TYPES['concept'][1]:.1f} %. Types "
        "decide the concept ablation, and through condition edges a little of the graph methods; mmr does "
        "not read them."
    )


def _style_effect(style: str) -> str:
    if style == "plain":
        return "The same."
    return "Headings, lead-ins and markers are part of the contexts, and are paid for."


# ---- what is in the folder


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

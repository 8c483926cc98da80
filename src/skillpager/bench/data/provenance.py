"""Settings and data of a run, and how they differ from the paper's experiment."""

from collections import Counter
from collections.abc import Mapping
from statistics import median

from skillpager.bench.judge.evidence_judge import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.results import Results
from skillpager.bench.report.table import MISSING, Table, frame

# characters of a digest that are shown
DIGEST = 12

_STRICT = (
    "The evidence measure is stricter: every part counts that an annotator held to be necessary, and nothing "
    "else. The full document scores 100 % by construction, and every selection less. Compare the order of "
    "methods and the signs of differences, not levels."
)
_OTHER_JUDGE = "Another model or prompt may be stricter or milder: compare differences, not levels."


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
    counts = list(results.node_counts.values())
    types = Counter(node.type for node in results.nodes)
    style = _part(results, "style")
    words = median(len(query.query.split()) for query in results.queries)
    rows = (
        (
            "Data",
            f"{paper.SKILLS} skills of SkillRouter-Eval-Core (easy), {paper.GROUND_TRUTH_SKILLS} of them "
            f"curated; {paper.NODES_MEDIAN} nodes in the median",
            f"{_data(results)}: {len(results.skills):,} skills"
            + (f"; {median(counts):.0f} nodes in the median" if counts else ""),
            "Fewer queries make intervals wider: an interval of one point there is about "
            f"{(paper.QUERIES / max(len(results.queries), 1)) ** 0.5:.1f} points here.",
        ),
        ("Judge", paper.JUDGE, results.judge, _STRICT if results.judge == EVIDENCE else _OTHER_JUDGE),
        (
            "Queries",
            f"{paper.QUERIES:,}, by DeepSeek-V4-Flash from name and body: agents' requests of one to three "
            "sentences",
            f"{len(results.queries):,}, by {_origins(results)}; {words:.0f} words in the median",
            "How much of a skill a query needs sets the level of every selection: compare differences "
            "between methods.",
        ),
        (
            "Encoder",
            f"{paper.ENCODER}, of the nodes alone",
            f"{_part(results, 'encoder')}, node texts {_part(results, 'embedded_text')}",
            "Its cosines decide where MMR stops (λ and k sweeps, main results), how far the greedy walk goes "
            "and how many semantic edges there are.",
        ),
        (
            "Classifier",
            f"{paper.CLASSIFIER}; {paper.NODE_TYPES['concept'][1]:.1f} % concepts",
            _part(results, "classifier")
            + (f"; {100 * types['concept'] / types.total():.1f} % concepts" if types else ""),
            "Types decide the concept ablation, and through condition edges a little of the graph methods; "
            "mmr does not read them.",
        ),
        (
            "Context",
            "nodes in document order, concatenated",
            f"style {style}",
            "The same."
            if style == "plain"
            else "Headings, lead-ins and markers are part of the contexts, and are paid for.",
        ),
    )
    headings = ("What", "Paper", "Here", "What it does to the numbers")
    cells = frame(dict(zip(headings, row, strict=True)) for row in rows)
    return Table("differences", "Why numbers differ from the paper's", cells)


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

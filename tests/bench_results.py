"""Result folders for tests: given verdicts of given methods, everything else plain and predictable."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from skillpager.bench.data.folder import NODES, QUERIES, SKILLS, BenchFolder
from skillpager.bench.data.records import (
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
    write_records,
)
from skillpager.bench.report.results import Results
from skillpager.types import NodeType

EVIDENCE = "evidence"
# what a context of the tests costs, and what is selected, unless a test says otherwise
NODES_SHOWN, TOKENS, FULL_TOKENS = 10, 40, 100
DIFFICULTIES = ("easy", "medium", "hard", "medium", "easy")
SUITES = {
    "main": ["full", "topk_dependency", "greedy_graph", "chunk_mmr", "mmr"],
    "offline": ["full", "topk_dependency", "greedy_graph", "chunk_mmr", "mmr", "sections"],
    "graph": ["mmr", "mmr_graph", "full"],
    "concept": ["concept_only", "exec_only", "density:0.3", "density:0.4", "density:0.5", "mmr", "full"],
    "lambda": [f"mmr@lambda={weight}" for weight in (0.3, 0.5, 0.7, 0.9)],
    "k": [*(f"mmr@k={k}" for k in (5, 10, 20, 30, 40, 60)), "full"],
    "boundary": [f"mmr@boundary={nodes}" for nodes in (80, 100, 120)],
    "budget": [f"{name}@tokens={share}%" for name in ("mmr", "sections", "head") for share in (10, 50, 90)],
    "granularity": ["mmr", "chunk_mmr:64", "chunk_mmr:256"],
    "folders": ["entry", "section_bm25@tokens=2000", "full"],
}


def skill_record(place: int, *, subset: str = "dev", name: str = "") -> SkillRecord:
    """Return a skill of three lines, one of them a heading, with labels."""
    text = (
        f"---\nname: skill-{place}\n---\n# Skill {place}\n\nRun `make` in folder {place} now.\n\n"
        f"A folder is a place {place}.\n"
    )
    types = ((6, 6, NodeType.STEP), (8, 8, NodeType.CONCEPT))
    return SkillRecord(f"s{place}", name or f"skill-{place}", "", (("SKILL.md", text),), subset, types=types)


def node_records(skill: str, count: int) -> list[NodeRecord]:
    """Return nodes of one character each, every third of them a concept."""
    kinds = (NodeType.STEP, NodeType.PARAM, NodeType.CONCEPT)
    return [
        NodeRecord(skill, f"n{i}", kinds[i % 3], 0.9, "SKILL.md", 6, 6, 40 + i % 40, 41 + i % 40, 5)
        for i in range(count)
    ]


def selection(query: str, method: str, **changes: object) -> SelectionRecord:
    """Return the selection for a query of `queries`; `changes` replace its fields."""
    fields: dict[str, object] = {
        "query": query,
        "skill": query.partition("-")[0],
        "method": method,
        "nodes": tuple(f"n{i}" for i in range(NODES_SHOWN)),
        "picks": (),
        "types": {"step": 6, "concept": 4},
        "pool_nodes": 20,
        "tokens": TOKENS,
        "full_tokens": FULL_TOKENS,
        "node_tokens": 30,
        "pool_tokens": 90,
        "seconds": 0.002,
        "context": "the text",
        "context_sha256": "c0",
    }
    return SelectionRecord(**{**fields, **changes})  # type: ignore[arg-type]


def judgment(query: str, method: str, sufficient: bool, **changes: object) -> JudgmentRecord:
    """Return the verdict on a `selection`."""
    fields: dict[str, object] = {
        "query": query,
        "skill": query.partition("-")[0],
        "method": method,
        "judge": EVIDENCE,
        "sufficient": sufficient,
        "votes": (sufficient,),
        "coverage": 1.0 if sufficient else 0.5,
        "reason": "",
        "context_sha256": "c0",
    }
    return JudgmentRecord(**{**fields, **changes})  # type: ignore[arg-type]


def write_results(
    path: Path,
    verdicts: Mapping[str, Sequence[bool]],
    *,
    nodes: Sequence[int] = (12, 42, 120, 60),
    subsets: Sequence[str] = ("dev", "dev", "dev", "dev"),
    names: Sequence[str] = ("", "", "", ""),
    judge: str = EVIDENCE,
) -> BenchFolder:
    """Write a folder of skills with five queries each, and a verdict of each method on each query.

    Args:
        path: The folder.
        verdicts: Of each method, repeated until there is one for each query.
        nodes: Number of nodes of each skill.
        subsets: Subset of each skill.
        names: Name of each skill; `skill-<place>` where empty.
        judge: Who judged.
    """
    folder = BenchFolder(path)
    places = range(len(nodes))
    skills = [skill_record(place, subset=subsets[place], name=names[place]) for place in places]
    queries = [
        QueryRecord(
            f"s{place}-q{i}", f"s{place}", f"How to do {i}?", "annotator", level, critical=((line, line),)
        )
        for place in places
        for i, (level, line) in enumerate(zip(DIFFICULTIES, (1, 5, 9, 1, 5), strict=True))
    ]
    write_records(path / SKILLS, skills)
    write_records(path / QUERIES, queries)
    write_records(
        path / NODES, [node for place in places for node in node_records(f"s{place}", nodes[place])]
    )
    for method, given in verdicts.items():
        ids = [query.id for query in queries]
        judged = [given[i % len(given)] for i in range(len(ids))]
        write_records(
            folder.selections_file(method),
            [selection(query, method, picks=(f"n-{method}",)) for query in ids],
        )
        records = [
            judgment(query, method, each, judge=judge) for query, each in zip(ids, judged, strict=True)
        ]
        write_records(folder.judgments_file(judge, method), records)
    recipe = {
        "encoder": "hashing-256",
        "classifier": "local-1",
        "token_counter": "o200k_base",
        "style": "plain",
    }
    folder.update_manifest(
        {"seed": 42, "version": "0.0.0", "run": recipe, "methods": {label: {} for label in verdicts}}
    )
    return folder


def results_of(path: Path, verdicts: Mapping[str, Sequence[bool]], **changes: object) -> Results:
    """Return the results of `write_results`."""
    return Results(write_results(path, verdicts, **changes), EVIDENCE)  # type: ignore[arg-type]


def whole_run() -> dict[str, list[bool]]:
    """Return verdicts on every method of `SUITES`, different ones for each."""
    labels = dict.fromkeys(label for suite in SUITES.values() for label in suite)
    return {label: [i % 7 < 2 + place % 5 for i in range(20)] for place, label in enumerate(labels)}

"""Samples for people: contexts that a judge has judged, and nodes that the parser has typed.

The cases that are drawn from a stratum, and their order, follow from digests of seed and case: the same data
give the same sheet, in any order of recording. `SHEET.key.jsonl` holds what annotators must not see.

Reference: paper §4.2 (contexts), §5.1 (nodes).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from pathlib import Path
from typing import TypeVar

import numpy as np

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import JudgmentRecord, NodeRecord, Record, write_records
from skillpager.bench.judge.sheets import (
    INSUFFICIENT,
    LABEL_STUDIO,
    SEED,
    SPREADSHEET_CELL,
    SUFFICIENT,
    SheetKind,
    drawn_digest,
    in_drawn_order,
    write_sheet,
)
from skillpager.bench.run.methods import parse_method
from skillpager.errors import BenchError
from skillpager.types import NodeType

Item = TypeVar("Item")

# both samples of the paper (§4.2, §5.1)
SAMPLE_SIZE = 96
# the paper names no four; these are its methods without the full document, which it calls a reference (§4.3)
METHODS = ("greedy_graph", "topk_dependency", "chunk_mmr", "mmr")
PER_TYPE = SAMPLE_SIZE // len(NodeType)
# skills are cut into three size classes of equal number, by their nodes
SIZES = ("small", "medium", "large")
# text shown on either side of a node: about a screen
AROUND_CHARS = 600
KEY_SUFFIX = ".key.jsonl"
PARSER = "parser"


@dataclass(frozen=True, slots=True)
class CaseKey(Record):
    """What annotators must not see of a case.

    Attributes:
        rater: Id of the judge, or `parser`.
        rated: The label that the rater gave.
        parts: The parts of the sample that the case is in, such as `{"votes": "2-1", "method": "mmr"}`.
        about: Ids of what it is about.
    """

    case: str
    kind: SheetKind
    rater: str
    rated: str
    parts: Mapping[str, str]
    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stratum:
    """A cell of a sample: the features that its cases share; `drawn` of the `wanted` cases were available."""

    name: tuple[str, ...]
    available: int
    drawn: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A drawn sample.

    Attributes:
        kind: The question.
        cases: The texts of each case, in the order of the sheet.
        keys: Their keys, in the same order.
        strata: Number of cases of each stratum.
        warnings: Its shortcomings, one sentence each.
    """

    kind: SheetKind
    cases: Mapping[str, tuple[str, ...]]
    keys: tuple[CaseKey, ...]
    strata: tuple[Stratum, ...]
    warnings: tuple[str, ...]


def sample_judgments(
    folder: BenchFolder,
    judge: str,
    *,
    methods: Sequence[str] = METHODS,
    per_cell: int | None = None,
    seed: int = SEED,
) -> Sample:
    """Return a sample of contexts, balanced over methods, verdicts and vote patterns.

    The vote patterns are those that the judge's number of votes allows: 3-0 and 2-1 for three votes, 1-0
    alone for one. A stratum with too few cases gives all of them; no other stratum makes up for it.

    Args:
        folder: Benchmark with judgments and the contexts that were judged.
        judge: Id of the judge.
        methods: Labels of the methods.
        per_cell: Cases of each stratum; as many as make 96 in all when not given.
        seed: Another seed draws other cases.

    Raises:
        BenchError: A method is unknown, the judge did not judge it, or the run stored no contexts.

    Reference: paper §4.2.
    """
    methods = list(dict.fromkeys(parse_method(method).label for method in methods))
    # the last verdict, and the last selection, on each query
    found = [v for m in methods for v in _verdicts(folder, judge, m)]
    contexts = {(m, one.query): one for m in methods for one in folder.selections(m)}
    current = [
        v
        for v in found
        if (one := contexts.get((v.method, v.query))) and one.context_sha256 == v.context_sha256
    ]
    # as many votes as most verdicts have
    votes = (Counter(len(v.votes) for v in current).most_common(1) or [(1, 0)])[0][0]
    whole = [v for v in current if len(v.votes) == votes]
    patterns = [f"{more}-{votes - more}" for more in range(votes, votes // 2, -1)]
    cells = {
        cell: [v for v in whole if (v.method, _label(v), v.pattern) == cell]
        for cell in product(methods, (SUFFICIENT, INSUFFICIENT), patterns)
    }
    wanted = max(1, SAMPLE_SIZE // len(cells)) if per_cell is None else per_cell
    skills = {skill.id: skill for skill in folder.skills()}
    queries = {query.id: query.query for query in folder.queries()}

    def identity(verdict: JudgmentRecord) -> tuple[str, ...]:
        return verdict.judge, verdict.method, verdict.query, verdict.context_sha256

    def describe(case: str, verdict: JudgmentRecord) -> tuple[CaseKey, tuple[str, ...]]:
        skill, context = skills.get(verdict.skill), contexts[verdict.method, verdict.query].context
        if verdict.query not in queries or skill is None:
            raise BenchError(
                f"{folder.path} has a verdict on query {verdict.query!r} of skill {verdict.skill!r}, which "
                "it does not have: restore its data, or run again."
            )
        if context is None:
            raise BenchError(
                f"The selections of {verdict.method} in {folder.path} keep no contexts, so that nobody can "
                "read them: run the method again with `--contexts`."
            )
        parts = {"votes": verdict.pattern, "method": verdict.method}
        about = {"query": verdict.query, "skill": skill.id, "context_sha256": verdict.context_sha256}
        key = CaseKey(case, SheetKind.SUFFICIENCY, judge, _label(verdict), parts, about)
        return key, (skill.name, skill.description, queries[verdict.query], context)

    aside = {
        "judged on another context": len(found) - len(current),
        f"not judged by {votes} votes": len(current) - len(whole),
    }
    warnings = [f"{count} set aside: {reason}" for reason, count in aside.items() if count]
    in_order: dict[tuple[str, ...], list[JudgmentRecord]]
    in_order = {cell: in_drawn_order(members, seed, identity) for cell, members in cells.items()}
    return _draw(SheetKind.SUFFICIENCY, in_order, wanted, seed, identity, describe, warnings)


def _label(verdict: JudgmentRecord) -> str:
    return SUFFICIENT if verdict.sufficient else INSUFFICIENT


def _draw(
    kind: SheetKind,
    members: Mapping[tuple[str, ...], Sequence[Item]],
    wanted: int,
    seed: int,
    identity: Callable[[Item], tuple[str, ...]],
    describe: Callable[[str, Item], tuple[CaseKey, tuple[str, ...]]],
    warnings: Sequence[str] = (),
) -> Sample:
    """Return the sample with the first `wanted` members of each stratum, in an order of their own."""
    drawn = [member for stratum in members.values() for member in stratum[:wanted]]
    cases, keys = dict[str, tuple[str, ...]](), list[CaseKey]()
    for row, item in enumerate(in_drawn_order(drawn, seed, identity), 1):
        key, texts = describe(f"c{row:02d}-{drawn_digest(seed, identity(item))[:6]}", item)
        keys.append(key)
        cases[key.case] = texts
    strata = tuple(Stratum(name, len(all_), len(all_[:wanted]), wanted) for name, all_ in members.items())
    short = [
        f"{' '.join(one.name)}: {one.drawn} of {wanted} cases, there are no more"
        for one in strata
        if one.drawn < wanted
    ]
    return Sample(kind, cases, tuple(keys), strata, (*warnings, *short))


def _verdicts(folder: BenchFolder, judge: str, method: str) -> list[JudgmentRecord]:
    """Return a judge's last verdict on each query."""
    if verdicts := {verdict.query: verdict for verdict in folder.judgments(judge, method)}:
        return list(verdicts.values())
    known = ", ".join(folder.judged_methods(judge)) or "none"
    raise BenchError(
        f"Judge {judge} has no verdicts on {method} in {folder.path}: judge it with `skillpager bench "
        f"judge`, or choose --methods among those it has judged ({known})."
    )


def sample_types(folder: BenchFolder, *, per_type: int = PER_TYPE, seed: int = SEED) -> Sample:
    """Return a sample of nodes, `per_type` of each predicted type, or all where there are fewer.

    Within a type the strata of subset and size give one node in turn, so that they are as equal as
    they can be. Another seed draws other nodes.

    Raises:
        BenchError: The folder has no nodes, or nodes of skills that it does not have.

    Reference: paper §5.1.
    """
    nodes = folder.nodes()
    if not nodes:
        raise BenchError(f"{folder.path} has no nodes: make them with `skillpager bench run`.")
    skills = {skill.id: skill for skill in folder.skills()}
    if missing := sorted({node.skill for node in nodes} - skills.keys()):
        raise BenchError(
            f"{folder.path} has nodes of skills that it does not have, such as {missing[0]!r}: restore its "
            "skills.jsonl, or run again."
        )
    sizes = size_classes(Counter(node.skill for node in nodes))

    def identity(node: NodeRecord) -> tuple[str, ...]:
        return node.skill, node.id

    def describe(case: str, node: NodeRecord) -> tuple[CaseKey, tuple[str, ...]]:
        skill = skills[node.skill]
        text = dict(skill.files).get(node.file)
        if text is None:
            raise BenchError(
                f"Skill {skill.id!r} has no file {node.file!r}, which its node {node.id} is from: run again, "
                "or restore skills.jsonl."
            )
        before = text[max(0, node.start - AROUND_CHARS) : node.start]
        after = text[node.end : node.end + AROUND_CHARS]
        parts, about = {"subset": skill.subset, "size": sizes[skill.id]}, {"skill": skill.id, "node": node.id}
        key = CaseKey(case, SheetKind.TYPES, PARSER, node.type, parts, about)
        return key, (skill.name, before, text[node.start : node.end], after)

    members: dict[tuple[str, ...], list[NodeRecord]] = {}
    for kind in NodeType:
        groups: dict[tuple[str, str], list[NodeRecord]] = {}
        for node in in_drawn_order((node for node in nodes if node.type == kind), seed, identity):
            groups.setdefault((skills[node.skill].subset, sizes[node.skill]), []).append(node)
        # the first of each group, then the second of each, and so on
        turns = zip_longest(*groups.values())
        members[(str(kind),)] = [node for turn in turns for node in turn if node is not None]
    return _draw(SheetKind.TYPES, members, per_type, seed, identity, describe)


def size_classes(nodes: Mapping[str, int]) -> dict[str, str]:
    """Return the size class of each skill, given its number of nodes; equal numbers are of one class."""
    bounds = np.quantile(list(nodes.values()), [1 / 3, 2 / 3], method="lower").tolist()
    return {skill: SIZES[bisect_right(bounds, count - 1)] for skill, count in nodes.items()}


def write_sample(path: Path, sample: Sample) -> tuple[Path, tuple[str, ...]]:
    """Write a new sheet and its key; return the key's path, and all warnings.

    Raises:
        BenchError: One of them exists, or there is no case.
    """
    key = key_file(path)
    if not sample.cases:
        raise BenchError("No case could be drawn: run and judge methods first.")
    if key.exists():
        raise BenchError(f"{key} exists, and it may hold answers: name another file, or remove it.")
    write_sheet(path, sample.kind, sample.cases)
    write_records(key, sample.keys)
    long = [case for case, texts in sample.cases.items() if max(map(len, texts)) >= SPREADSHEET_CELL]
    if not long or path.suffix == LABEL_STUDIO:
        return key, sample.warnings
    warning = (
        f"{len(long)} cases have a text too long for a cell of a spreadsheet, such as {long[0]}: "
        f"name a sheet for Label Studio, {path.with_suffix(LABEL_STUDIO).name}"
    )
    return key, (*sample.warnings, warning)


def key_file(sheet: Path) -> Path:
    """Return the path of a sheet's key."""
    return sheet.with_name(f"{sheet.stem}{KEY_SUFFIX}")

"""Samples for people: contexts that a judge has judged, and nodes that the parser has typed.

The cases that are drawn from a stratum, and their order, follow from digests of the cases: the same data
give the same sheet, in any order of recording. `SHEET.key.jsonl` holds what annotators must not see.

Reference: paper §4.2 (contexts), §5.1 (nodes).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import Record, write_records
from skillpager.bench.judge.sheets import (
    INSUFFICIENT,
    LABEL_STUDIO,
    SPREADSHEET_CELL,
    SUFFICIENT,
    SheetKind,
    drawn_digest,
    write_sheet,
)
from skillpager.bench.run.methods import parse_method
from skillpager.errors import BenchError
from skillpager.types import NodeType

# both samples of the paper (§4.2, §5.1)
SAMPLE_SIZE = 96
# the paper names no four; these are its methods without the full document, which it calls a reference (§4.3)
METHODS = ("greedy_graph", "topk_dependency", "chunk_mmr", "mmr")
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


Stratum = tuple[str, ...]
# the stratum of a case, its key without the name that it gets in the sheet, and its texts
Candidate = tuple[Stratum, CaseKey, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """A drawn sample.

    Attributes:
        kind: The question.
        cases: The texts of each case, in the order of the sheet.
        keys: Their keys, in the same order.
        warnings: Its shortcomings, one sentence each.
    """

    kind: SheetKind
    cases: Mapping[str, tuple[str, ...]]
    keys: tuple[CaseKey, ...]
    warnings: tuple[str, ...]


def sample_judgments(
    folder: BenchFolder, judge: str, *, methods: Sequence[str] = METHODS, size: int = SAMPLE_SIZE
) -> Sample:
    """Return a sample of contexts, balanced over methods, verdicts and vote patterns.

    The vote patterns are those that the judge's number of votes allows: 3-0 and 2-1 for three votes, 1-0
    alone for one. A stratum with too few cases gives all of them; no other stratum makes up for it.

    Args:
        folder: Benchmark with judgments and the contexts that were judged.
        judge: Id of the judge.
        methods: Labels of the methods.
        size: Cases in all.

    Raises:
        BenchError: A method is unknown, the judge did not judge it, or the run stored no contexts.

    Reference: paper §4.2.
    """
    methods = list(dict.fromkeys(parse_method(method).label for method in methods))
    candidates, others = _judged(folder, judge, methods)
    # as many votes as most verdicts have
    totals = Counter(sum(map(int, key.parts["votes"].split("-"))) for _, key, _ in candidates)
    votes = totals.most_common(1)[0][0] if totals else 1
    patterns = [f"{more}-{votes - more}" for more in range(votes, votes // 2, -1)]
    aside = {
        "judged on another context": others,
        f"not judged by {votes} votes": totals.total() - totals[votes],
    }
    warnings = [f"{count} set aside: {reason}" for reason, count in aside.items() if count]
    strata = list(product(methods, (SUFFICIENT, INSUFFICIENT), patterns))
    return _draw(SheetKind.SUFFICIENCY, strata, candidates, size, warnings)


def _judged(folder: BenchFolder, judge: str, methods: Sequence[str]) -> tuple[list[Candidate], int]:
    """Return the contexts that a judge judged, and the number of verdicts on contexts that are gone."""
    skills = {skill.id: skill for skill in folder.skills()}
    queries = {query.id: query.query for query in folder.queries()}
    candidates: list[Candidate] = []
    others = 0
    for method in methods:
        # the last selection, and the last verdict, on each query
        chosen = {one.query: one for one in folder.selections(method)}
        verdicts = {verdict.query: verdict for verdict in folder.judgments(judge, method)}
        if not verdicts:
            known = ", ".join(folder.judged_methods(judge)) or "none"
            raise BenchError(
                f"Judge {judge} has no verdicts on {method} in {folder.path}: judge it with "
                f"`skillpager bench judge`, or choose --methods among those it has judged ({known})."
            )
        for verdict in verdicts.values():
            one, skill = chosen.get(verdict.query), skills.get(verdict.skill)
            if one is None or one.context_sha256 != verdict.context_sha256:
                others += 1
                continue
            if verdict.query not in queries or skill is None:
                raise BenchError(
                    f"{folder.path} has a verdict on query {verdict.query!r} of skill {verdict.skill!r}, "
                    "which it does not have: restore its data, or run again."
                )
            if one.context is None:
                raise BenchError(
                    f"The selections of {method} in {folder.path} keep no contexts, so that nobody can "
                    "read them: run the method again with `--contexts`."
                )
            label = SUFFICIENT if verdict.sufficient else INSUFFICIENT
            parts = {"votes": verdict.pattern, "method": method}
            about = {"query": verdict.query, "skill": skill.id, "context_sha256": verdict.context_sha256}
            key = CaseKey("", SheetKind.SUFFICIENCY, judge, label, parts, about)
            texts = skill.name, skill.description, queries[verdict.query], one.context
            candidates.append(((method, label, verdict.pattern), key, texts))
    return candidates, others


def sample_types(folder: BenchFolder, *, size: int = SAMPLE_SIZE) -> Sample:
    """Return a sample of nodes, as many of each predicted type, or all where there are fewer.

    Within a type, subsets of the benchmark and sizes of skills give one node in turn, so that they are as
    equal as they can be.

    Raises:
        BenchError: The folder has no nodes, or nodes of skills that it does not have.

    Reference: paper §5.1.
    """
    nodes = folder.nodes()
    if not nodes:
        raise BenchError(f"{folder.path} has no nodes: make them with `skillpager bench run`.")
    skills = {skill.id: skill for skill in folder.skills()}
    sizes = size_classes(Counter(node.skill for node in nodes))
    candidates: list[Candidate] = []
    for node in nodes:
        skill = skills.get(node.skill)
        text = dict(skill.files).get(node.file) if skill else None
        if skill is None or text is None:
            raise BenchError(
                f"{folder.path} has a node of the file {node.file!r} of skill {node.skill!r}, which it does "
                "not have: restore its skills.jsonl, or run again."
            )
        before = text[max(0, node.start - AROUND_CHARS) : node.start]
        after = text[node.end : node.end + AROUND_CHARS]
        parts, about = {"subset": skill.subset, "size": sizes[skill.id]}, {"skill": skill.id, "node": node.id}
        key = CaseKey("", SheetKind.TYPES, PARSER, node.type, parts, about)
        candidates.append(((node.type,), key, (skill.name, before, text[node.start : node.end], after)))
    return _draw(SheetKind.TYPES, [(str(kind),) for kind in NodeType], candidates, size)


def _draw(
    kind: SheetKind,
    strata: Sequence[Stratum],
    candidates: Sequence[Candidate],
    size: int,
    warnings: Sequence[str] = (),
) -> Sample:
    """Return a sample with as many candidates of each stratum, of whose parts each gives one in turn."""
    wanted = max(1, size // len(strata))
    ranked = sorted(
        (
            (drawn_digest([*key.parts.values(), *key.about.values()]), stratum, key, texts)
            for stratum, key, texts in candidates
        ),
        key=lambda member: member[:2],
    )
    turns = Counter[Stratum]()
    members: dict[Stratum, list[tuple[int, str, CaseKey, tuple[str, ...]]]] = {name: [] for name in strata}
    for digest, stratum, key, texts in ranked:
        if stratum in members:
            part = (*stratum, *key.parts.values())
            turns[part] += 1
            members[stratum].append((turns[part], digest, key, texts))
    drawn, short = [], []
    for stratum, own in members.items():
        drawn += sorted(own, key=lambda member: member[:2])[:wanted]
        if len(own) < wanted:
            short.append(f"{' '.join(stratum)}: {len(own)} of {wanted} cases, there are no more")
    cases, keys = dict[str, tuple[str, ...]](), []
    for row, (_, digest, key, texts) in enumerate(sorted(drawn, key=lambda member: member[1]), 1):
        case = f"c{row:02d}-{digest[:6]}"
        cases[case] = texts
        keys.append(replace(key, case=case))
    return Sample(kind, cases, tuple(keys), (*warnings, *short))


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

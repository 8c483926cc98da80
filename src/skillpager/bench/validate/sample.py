"""Samples for people: contexts that a judge has judged, and nodes that the parser has typed.

The cases that are drawn from a stratum, and their order, follow from digests of seed and case: the same data
give the same sheet, in any order of recording.

Reference: paper §4.2 (contexts), §5.1 (nodes).
"""

import hashlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, zip_longest
from pathlib import Path
from typing import TypeVar

import numpy as np

from skillpager.bench.data import to_skill
from skillpager.bench.data.folder import BenchFolder, write_records
from skillpager.bench.data.records import JudgmentRecord, NodeRecord, SelectionRecord, SkillRecord
from skillpager.bench.run.methods import parse_method
from skillpager.bench.validate.sheet import (
    Case,
    JudgmentKey,
    Key,
    Sheet,
    SheetKind,
    TypeKey,
    key_file,
    overlong_cases,
    verdict_label,
    write_sheet,
)
from skillpager.errors import BenchError
from skillpager.parsing.fragments import split_skill
from skillpager.types import Fragment, NodeType

Item = TypeVar("Item")

SEED = 42
# both samples of the paper (§4.2, §5.1)
SAMPLE_SIZE = 96
# the paper names no four; these are its methods without the full document, which it calls a reference (§4.3)
METHODS = ("greedy_graph", "topk_dependency", "chunk_mmr", "mmr")
PER_TYPE = SAMPLE_SIZE // len(NodeType)
# skills are cut into three size classes of equal number, by their nodes
SIZES = ("small", "medium", "large")
# text shown on either side of a node: about a screen
AROUND_CHARS = 600
HEADING_SEPARATOR = " › "
CUT = "…"


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
        sheet: The sheet of the annotators.
        keys: Their keys, in the order of the sheet.
        strata: Number of cases of each stratum.
        set_aside: Number of cases that could not be drawn from, by the reason.
    """

    sheet: Sheet
    keys: tuple[Key, ...]
    strata: tuple[Stratum, ...]
    set_aside: Mapping[str, int]

    @property
    def short(self) -> tuple[Stratum, ...]:
        """The strata that have too few cases."""
        return tuple(stratum for stratum in self.strata if stratum.drawn < stratum.wanted)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Shortcomings of the sample, one sentence each."""
        found = [f"{count} set aside: {reason}" for reason, count in self.set_aside.items()]
        found += [
            f"{' '.join(stratum.name)}: {stratum.drawn} of {stratum.wanted} cases, there are no more"
            for stratum in self.short
        ]
        if overlong := overlong_cases(self.sheet):
            found.append(
                f"{len(overlong)} cases have a text too long for a cell of a spreadsheet, such as "
                f"{overlong[0]}: answer with `skillpager bench validate serve`"
            )
        return tuple(found)


def in_drawn_order(items: Iterable[Item], seed: int, identity: Callable[[Item], Sequence[str]]) -> list[Item]:
    """Return `items` in an order that depends on seed and identities alone."""
    return sorted(items, key=lambda item: _digest(seed, identity(item)))


def _digest(seed: int, identity: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps([seed, *identity]).encode()).hexdigest()


def _in_case_order(
    items: Iterable[Item], seed: int, identity: Callable[[Item], Sequence[str]]
) -> dict[str, Item]:
    """Return the items of a sheet by case id: the row, and a digest that ties the case to its key."""
    ordered = in_drawn_order(items, seed, identity)
    return {f"c{row:02d}-{_digest(seed, identity(item))[:6]}": item for row, item in enumerate(ordered, 1)}


def _judgment_identity(verdict: JudgmentRecord) -> tuple[str, ...]:
    return verdict.judge, verdict.method, verdict.query, verdict.context_sha256


def _node_identity(node: NodeRecord) -> tuple[str, ...]:
    return node.skill, node.id


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
    found = [verdict for method in methods for verdict in _last_verdicts(folder, judge, method)]
    # the last selection for each query
    selections = {(method, one.query): one for method in methods for one in folder.selections(method)}
    current = [
        verdict
        for verdict in found
        if (chosen := selections.get((verdict.method, verdict.query)))
        and chosen.context_sha256 == verdict.context_sha256
    ]
    # as many votes as most verdicts have
    votes = (Counter(len(verdict.votes) for verdict in current).most_common(1) or [(1, 0)])[0][0]
    whole = [verdict for verdict in current if len(verdict.votes) == votes]
    cells = list(product(methods, (True, False), vote_patterns(votes)))
    wanted = max(1, SAMPLE_SIZE // len(cells)) if per_cell is None else per_cell
    strata, drawn = list[Stratum](), list[JudgmentRecord]()
    for method, sufficient, pattern in cells:
        cell = (method, sufficient, pattern)
        members = [v for v in whole if (v.method, v.sufficient, v.pattern) == cell]
        taken = in_drawn_order(members, seed, _judgment_identity)[:wanted]
        strata.append(Stratum((method, verdict_label(sufficient), pattern), len(members), len(taken), wanted))
        drawn += taken
    reasons = {
        "judged on another context": len(found) - len(current),
        f"not judged by {votes} votes": len(current) - len(whole),
    }
    set_aside = {reason: count for reason, count in reasons.items() if count}
    ordered = _in_case_order(drawn, seed, _judgment_identity)
    cases, keys = _judgment_cases(folder, ordered, selections)
    return Sample(Sheet(SheetKind.SUFFICIENCY, cases), keys, tuple(strata), set_aside)


def _judgment_cases(
    folder: BenchFolder,
    drawn: Mapping[str, JudgmentRecord],
    selections: Mapping[tuple[str, str], SelectionRecord],
) -> tuple[tuple[Case, ...], tuple[JudgmentKey, ...]]:
    """Return the rows of drawn verdicts and their keys, given the selections by method and query."""
    queries = {query.id: query.query for query in folder.queries()}
    skills = _skills_by_id(folder, {verdict.skill for verdict in drawn.values()})
    cases, keys = list[Case](), list[JudgmentKey]()
    for case, verdict in drawn.items():
        if verdict.query not in queries:
            raise BenchError(
                f"{folder.path} has a verdict on query {verdict.query!r}, which it does not have: restore "
                "its queries.jsonl, or run again."
            )
        context = selections[verdict.method, verdict.query].context
        if context is None:
            raise BenchError(
                f"The selections of {verdict.method} in {folder.path} keep no contexts, so that nobody "
                "can read them: run the method again with `--contexts`."
            )
        skill = skills[verdict.skill]
        cases.append(Case(case, (skill.name, skill.description, queries[verdict.query], context)))
        judged = verdict.judge, verdict.sufficient, verdict.pattern, verdict.context_sha256
        keys.append(JudgmentKey(case, verdict.query, verdict.skill, verdict.method, *judged))
    return tuple(cases), tuple(keys)


def _last_verdicts(folder: BenchFolder, judge: str, method: str) -> list[JudgmentRecord]:
    """Return a judge's last verdict on each query.

    Raises:
        BenchError: There is none; the message names the alternatives.
    """
    if verdicts := {verdict.query: verdict for verdict in folder.judgments(judge, method)}:
        return list(verdicts.values())
    if methods := folder.judged_methods(judge):
        raise BenchError(
            f"Judge {judge} has no verdicts on {method} in {folder.path}: judge it with "
            f"`skillpager bench judge`, or choose --methods among {', '.join(methods)}."
        )
    judges = folder.judges()
    known = f"choose --judge among {', '.join(judges)}" if judges else "run `skillpager bench judge` first"
    raise BenchError(f"Judge {judge} has no verdicts in {folder.path}: {known}.")


def vote_patterns(votes: int) -> tuple[str, ...]:
    """Return the patterns that so many votes can have, larger side first and unanimous ones first."""
    return tuple(f"{more}-{votes - more}" for more in range(votes, votes // 2, -1))


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
    skills = _skills_by_id(folder, {node.skill for node in nodes})
    sizes = size_classes(Counter(node.skill for node in nodes))
    strata, drawn = list[Stratum](), list[NodeRecord]()
    for kind in NodeType:
        groups: dict[tuple[str, str], list[NodeRecord]] = {}
        for node in in_drawn_order((node for node in nodes if node.type == kind), seed, _node_identity):
            groups.setdefault((skills[node.skill].subset, sizes[node.skill]), []).append(node)
        # the first of each group, then the second of each, and so on
        turns = [node for turn in zip_longest(*groups.values()) for node in turn if node is not None]
        strata.append(Stratum((str(kind),), len(turns), len(turns[:per_type]), per_type))
        drawn += turns[:per_type]
    fragments = {
        skill: [tile for tile in split_skill(to_skill(skills[skill])) if isinstance(tile, Fragment)]
        for skill in {node.skill for node in drawn}
    }
    cases, keys = list[Case](), list[TypeKey]()
    for case, node in _in_case_order(drawn, seed, _node_identity).items():
        skill = skills[node.skill]
        cases.append(Case(case, _node_texts(node, skill, fragments[node.skill])))
        keys.append(
            TypeKey(case, node.skill, node.id, node.type, node.confidence, skill.subset, sizes[node.skill])
        )
    return Sample(Sheet(SheetKind.TYPES, tuple(cases)), tuple(keys), tuple(strata), {})


def size_classes(nodes: Mapping[str, int]) -> dict[str, str]:
    """Return the size class of each skill, given its number of nodes; equal numbers are of one class."""
    bounds = np.quantile(list(nodes.values()), [1 / 3, 2 / 3], method="lower").tolist()
    return {skill: SIZES[bisect_right(bounds, count - 1)] for skill, count in nodes.items()}


def write_sample(path: Path, sample: Sample) -> Path:
    """Write a new sheet and its key; return the key's path.

    Raises:
        BenchError: One of them exists, or there is no case.
    """
    if not sample.sheet.cases:
        raise BenchError("No case could be drawn: run and judge methods first.")
    key = key_file(path)
    for file in (path, key):
        if file.exists():
            raise BenchError(f"{file} exists, and it may hold answers: name another file, or remove it.")
    write_records(key, sample.keys)
    write_sheet(path, sample.sheet)
    return key


def _skills_by_id(folder: BenchFolder, wanted: Iterable[str]) -> dict[str, SkillRecord]:
    """Return the skills of a folder by id; raise a `BenchError` if one that is wanted is not there."""
    skills = {skill.id: skill for skill in folder.skills()}
    if missing := sorted(set(wanted) - skills.keys()):
        raise BenchError(
            f"{folder.path} has results on skills that it does not have, such as {missing[0]!r}: "
            "restore its skills.jsonl, or run again."
        )
    return skills


def _node_texts(node: NodeRecord, record: SkillRecord, fragments: Sequence[Fragment]) -> tuple[str, ...]:
    """Return the texts of a sheet: skill, headings, text before, the node, text after."""
    file = next((file for file in to_skill(record).files if file.path == node.file), None)
    if file is None:
        raise BenchError(
            f"Skill {record.id!r} has no file {node.file!r}, in which its node {node.id} is said "
            "to stand: run again, or restore skills.jsonl."
        )
    headings = next(
        (
            tile.heading_path
            for tile in fragments
            if tile.span.file == node.file and tile.span.start <= node.start < tile.span.end
        ),
        (),
    )
    before, after = file.text[file.body_start : node.start], file.text[node.end :]
    if len(before) > AROUND_CHARS:
        cut = before[-AROUND_CHARS:]
        before = CUT + (cut.partition("\n")[2] or cut)
    if len(after) > AROUND_CHARS:
        cut = after[:AROUND_CHARS]
        after = (cut.rpartition("\n")[0] or cut) + CUT
    return record.name, HEADING_SEPARATOR.join(headings), before, file.text[node.start : node.end], after

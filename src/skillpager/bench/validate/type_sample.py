"""The sample of nodes that people type after the parser did.

Balanced over predicted types, and within a type over subsets of the benchmark and sizes of skills.

Reference: paper §5.1.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest

import numpy as np

from skillpager.bench.data import to_skill
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.records import NodeRecord, SkillRecord
from skillpager.bench.validate.drawing import (
    SAMPLE_SIZE,
    SEED,
    Identity,
    Sample,
    Stratum,
    case_id,
    in_drawn_order,
    skills_by_id,
)
from skillpager.bench.validate.key import TypeKey
from skillpager.bench.validate.sheet import Case, Sheet, SheetKind
from skillpager.errors import BenchError
from skillpager.parsing.fragments import split_skill
from skillpager.types import Fragment, NodeType

PER_TYPE = SAMPLE_SIZE // len(NodeType)
# skills are cut into three size classes of equal number, by their nodes
SIZES = ("small", "medium", "large")
# text shown on either side of a node: about a screen
AROUND_CHARS = 600
HEADING_SEPARATOR = " › "
CUT = "…"


def sample_types(folder: BenchFolder, *, per_type: int = PER_TYPE, seed: int = SEED) -> Sample:
    """Return a sample of nodes, as many of each predicted type.

    Within a type the strata of subset and size give one node in turn, so that they are as equal as
    they can be. A type with too few nodes gives what it has.

    Args:
        folder: Benchmark with the nodes of a run.
        per_type: Nodes of each type.
        seed: Another seed draws other nodes.

    Raises:
        BenchError: The folder has no nodes, or nodes of skills that it does not have.

    Reference: paper §5.1.
    """
    nodes = folder.nodes()
    if not nodes:
        raise BenchError(f"{folder.path} has no nodes: make them with `skillpager bench run`.")
    skills = skills_by_id(folder, (node.skill for node in nodes))
    sizes = size_classes(Counter(node.skill for node in nodes))
    strata, drawn = list[Stratum](), list[NodeRecord]()
    for kind in NodeType:
        groups: dict[tuple[str, str], list[NodeRecord]] = {}
        for node in in_drawn_order((node for node in nodes if node.type == kind), seed, _identity):
            groups.setdefault((skills[node.skill].subset, sizes[node.skill]), []).append(node)
        taken = take_in_turn(list(groups.values()), per_type)
        strata.append(Stratum((str(kind),), sum(map(len, groups.values())), len(taken), per_type))
        drawn += taken
    documents = {skill: _Document(skills[skill]) for skill in {node.skill for node in drawn}}
    cases, keys = list[Case](), list[TypeKey]()
    for number, node in enumerate(in_drawn_order(drawn, seed, _identity), 1):
        name = case_id(number, seed, _identity(node))
        cases.append(Case(name, documents[node.skill].texts(node)))
        keys.append(_key(name, node, skills[node.skill].subset, sizes[node.skill]))
    return Sample(Sheet(SheetKind.TYPES, tuple(cases)), tuple(keys), tuple(strata), {})


def size_classes(nodes: Mapping[str, int]) -> dict[str, str]:
    """Return the size class of each skill, given its number of nodes; equal numbers are of one class."""
    bounds = np.quantile(list(nodes.values()), [1 / 3, 2 / 3], method="lower").tolist()
    return {skill: SIZES[bisect_right(bounds, count - 1)] for skill, count in nodes.items()}


def take_in_turn(groups: Sequence[Sequence[NodeRecord]], count: int) -> list[NodeRecord]:
    """Return `count` nodes, or all there are: the first of each group, then the second of each, and so on."""
    turns = zip_longest(*groups)
    return [node for turn in turns for node in turn if node is not None][:count]


def _identity(node: NodeRecord) -> Identity:
    return node.skill, node.id


class _Document:
    """A skill, split once for all of its nodes that were drawn."""

    def __init__(self, record: SkillRecord) -> None:
        self._record = record
        skill = to_skill(record)
        self._files = {file.path: file for file in skill.files}
        self._fragments = [tile for tile in split_skill(skill) if isinstance(tile, Fragment)]

    def texts(self, node: NodeRecord) -> tuple[str, ...]:
        """Return what the sheet shows: skill, headings, text before, the node, text after."""
        file = self._files.get(node.file)
        if file is None:
            raise BenchError(
                f"Skill {self._record.id!r} has no file {node.file!r}, in which its node {node.id} is said "
                "to stand: run again, or restore skills.jsonl."
            )
        headings = next((tile.heading_path for tile in self._fragments if _holds(tile, node)), ())
        return (
            self._record.name,
            HEADING_SEPARATOR.join(headings),
            _end_of(file.text[file.body_start : node.start]),
            file.text[node.start : node.end],
            _beginning_of(file.text[node.end :]),
        )


def _holds(tile: Fragment, node: NodeRecord) -> bool:
    return tile.span.file == node.file and tile.span.start <= node.start < tile.span.end


def _end_of(text: str) -> str:
    """Return the last lines of a text."""
    if len(text) <= AROUND_CHARS:
        return text
    cut = text[-AROUND_CHARS:]
    return CUT + (cut.partition("\n")[2] or cut)


def _beginning_of(text: str) -> str:
    """Return the first lines of a text."""
    if len(text) <= AROUND_CHARS:
        return text
    cut = text[:AROUND_CHARS]
    return (cut.rpartition("\n")[0] or cut) + CUT


def _key(case: str, node: NodeRecord, subset: str, size: str) -> TypeKey:
    return TypeKey(
        case=case,
        skill=node.skill,
        node=node.id,
        type=node.type,
        confidence=node.confidence,
        subset=subset,
        size=size,
    )

"""Losslessness of stage 1: is every character of a skill's text in exactly one node?"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from skillpager.bench.data.records import NodeRecord, SkillRecord
from skillpager.errors import BenchError
from skillpager.parsing.frontmatter import find_body
from skillpager.parsing.markdown import Lines, parse_blocks


@dataclass(frozen=True, slots=True)
class Preservation:
    """Where the characters of the sources are; white space is not counted.

    Attributes:
        once: In exactly one node.
        repeated: In more than one.
        structure: In headings and thematic breaks outside of nodes.
        front_matter: In front matter.
        lost: In none of these.
    """

    once: int = 0
    repeated: int = 0
    structure: int = 0
    front_matter: int = 0
    lost: int = 0

    @property
    def characters(self) -> int:
        """All characters."""
        return sum(astuple(self))

    @property
    def kept(self) -> float:
        """Share of the body text that is in exactly one node, 0 to 1; 1 if there is none."""
        body = self.once + self.repeated + self.lost
        return self.once / body if body else 1.0

    def __add__(self, other: "Preservation") -> "Preservation":
        return Preservation(
            *(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True))
        )


def measure_preservation(skills: Iterable[SkillRecord], nodes: Iterable[NodeRecord]) -> Preservation:
    """Return where the characters of the skills are, by the offsets of their nodes.

    Raises:
        BenchError: A node lies outside of its file.

    Reference: docs/design.md, contract 1; paper §2.3, “preserves the original text boundary”.
    """
    spans: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    texts = {(skill.id, path): text for skill in skills for path, text in skill.files}
    for node in nodes:
        if not 0 <= node.start <= node.end <= len(texts.get((node.skill, node.file), "")):
            raise BenchError(
                f"Node {node.id} of skill {node.skill!r} is not in its file {node.file}: the nodes belong to "
                "other texts, so run the methods in a folder of their own."
            )
        spans[node.skill, node.file].append((node.start, node.end))
    return sum((_measure(text, spans[place]) for place, text in texts.items()), Preservation())


def _measure(text: str, spans: Sequence[tuple[int, int]]) -> Preservation:
    nodes = np.zeros(len(text) + 1, dtype=np.int64)
    for start, end in spans:
        nodes[start] += 1
        nodes[end] -= 1
    count = np.cumsum(nodes)[:-1]
    body = find_body(text)
    counted = np.fromiter((not character.isspace() for character in text), bool, len(text))
    counted[: text.startswith("\ufeff")] = False
    front = np.arange(len(text)) < body
    structure = _structure_mask(text, body)
    outside = counted & ~front & (count == 0)
    return Preservation(
        once=int(np.sum(counted & ~front & (count == 1))),
        repeated=int(np.sum(counted & ~front & (count > 1))),
        structure=int(np.sum(outside & structure)),
        front_matter=int(np.sum(counted & front)),
        lost=int(np.sum(outside & ~structure)),
    )


def _structure_mask(text: str, body: int) -> NDArray[np.bool_]:
    """Return which characters are on the lines of headings, underlines included, and of thematic breaks."""
    mask = np.zeros(len(text), dtype=bool)
    lines = Lines(text[body:])
    for token in parse_blocks(text[body:]):
        if token.type in ("heading_open", "hr") and token.map:
            first, behind = token.map
            mask[body + lines.start(first) : body + lines.start(behind)] = True
    return mask

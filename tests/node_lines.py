"""Nodes from a line each: a small language for the documents of tests."""

import re
from collections.abc import Sequence

import numpy as np

from skillpager.types import FloatArray, ListContext, Node, NodeType, Span, TileKind

TYPES = {f"{kind}:": kind for kind in NodeType}
KINDS = {"code:": TileKind.CODE, "item:": TileKind.LIST_ITEM}


def document(source: str) -> tuple[Node, ...]:
    """Return a node per line of `source`.

    `# Title` opens a heading and `=== path` a file; a line may begin with a node type, such as
    `step:`, or a tile kind; `(lead-in) ` before its text makes it an item of a list.
    """
    nodes: list[Node] = []
    file = "SKILL.md"
    path: tuple[str, ...] = ()
    for number, line in enumerate((line.strip() for line in source.strip().splitlines()), start=1):
        if line.startswith("=== "):
            file, path = line[4:], ()
        elif heading := re.fullmatch(r"(#+) (.*)", line):
            path = (*path[: len(heading[1]) - 1], heading[2])
        elif line:
            nodes.append(_node(line, len(nodes), number, file, path))
    return tuple(nodes)


def _node(line: str, ordinal: int, number: int, file: str, path: tuple[str, ...]) -> Node:
    prefix, _, rest = line.partition(" ")
    text = rest if prefix in TYPES or prefix in KINDS else line
    lead_in = re.match(r"\((.*?)\) ", text)
    return Node(
        kind=KINDS.get(prefix, TileKind.SENTENCE),
        span=Span(file, number, number, number, number + len(text)),
        text=text[lead_in.end() :] if lead_in else text,
        ordinal=ordinal,
        heading_path=path,
        list_context=ListContext(lead_in[1], None, 0, 1) if lead_in else None,
        id=f"n{ordinal}",
        type=TYPES.get(prefix, NodeType.CONCEPT),
        type_confidence=1.0,
        tokens=len(text) // 4 + 1,
    )


def bag_of_words(nodes: Sequence[Node], dim: int = 64) -> FloatArray:
    """Return `(len(nodes), dim)` unit rows that are equal for equal words."""
    rows = np.zeros((len(nodes), dim), dtype=np.float32)
    for row, node in zip(rows, nodes, strict=True):
        for word in node.text.lower().split():
            row[sum(word.encode()) % dim] += 1
    unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit

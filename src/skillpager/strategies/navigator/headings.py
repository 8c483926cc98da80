"""Sections of an index."""

from bisect import bisect_right
from itertools import groupby

from skillpager.types import Node, SkillIndex


def sections_of(index: SkillIndex) -> list[list[int]]:
    """Return the ordinals of each section: the nodes between two headings of one file, in document order.

    Two headings of the same title are two sections; nodes before the first heading of a file are one.
    """
    starts: dict[str, list[int]] = {}
    for heading in index.headings:
        starts.setdefault(heading.span.file, []).append(heading.span.start)

    def section(node: Node) -> tuple[str, int]:
        return node.span.file, bisect_right(starts.get(node.span.file, []), node.span.start)

    return [[node.ordinal for node in nodes] for _, nodes in groupby(index.nodes, key=section)]

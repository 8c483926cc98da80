"""Which nodes stand under which headings: the only implementation.

Headings say it exactly, by level and offset: `heading_paths` and `sections_of`, for which two headings of one
title are two sections. The others read no headings but the path of titles that each fragment carries.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from skillpager.types import Fragment, Heading, Node, SkillIndex, Span

Trail = tuple[str, ...]  # a file and the titles of the headings that are open in it, outermost first


@dataclass(frozen=True, slots=True)
class Section:
    """The nodes of one file, or under one heading with its subsections.

    Attributes:
        trail: The file alone, or the file and the titles down to this heading.
        first: Position of the first node.
        end: Position behind the last node.
    """

    trail: Trail
    first: int
    end: int

    def holds(self, node: Node) -> bool:
        """Return whether `node` stands in this section."""
        return trail_of(node)[: len(self.trail)] == self.trail


def open_headings(before: tuple[Heading, ...], heading: Heading) -> tuple[Heading, ...]:
    """Return the headings that are open behind `heading`, given those `before` it, outermost first."""
    return (*(outer for outer in before if outer.level < heading.level), heading)


def heading_paths(headings: Iterable[Heading], spans: Iterable[Span]) -> list[tuple[Heading, ...]]:
    """Return for each span the headings that are open where it begins, outermost first.

    Args:
        headings: All headings of a skill, in document order; those that begin before a span are above it.
        spans: Places in its files, in any order.
    """
    by_file: dict[str, tuple[list[int], list[tuple[Heading, ...]]]] = {}
    for heading in headings:
        starts, paths = by_file.setdefault(heading.span.file, ([], [()]))
        starts.append(heading.span.start)
        paths.append(open_headings(paths[-1], heading))
    found = []
    for span in spans:
        starts, paths = by_file.get(span.file, ([], [()]))
        found.append(paths[bisect_left(starts, span.start)])
    return found


def sections_of(index: SkillIndex) -> list[list[int]]:
    """Return the ordinals of each section: the nodes between two headings of one file, in document order.

    Nodes before the first heading of a file are a section, too.
    """
    paths = heading_paths(index.headings, [node.span for node in index.nodes])
    nodes = zip(index.nodes, paths, strict=True)
    runs = groupby(nodes, key=lambda pair: (pair[0].span.file, pair[1][-1:]))
    return [[node.ordinal for node, _ in run] for _, run in runs]


def trail_of(fragment: Fragment) -> Trail:
    """Return the file of a fragment and the titles of the headings above it."""
    return (fragment.span.file, *fragment.heading_path)


def section_numbers(fragments: Sequence[Fragment]) -> NDArray[np.intp]:
    """Return `(len(fragments),)`: the number of the section of each fragment, from 0 in document order.

    Neighbours of one file and one path of titles are one section.
    """
    begins = [before != after for before, after in pairwise(map(trail_of, fragments))]
    return np.cumsum([0, *begins], dtype=np.intp)[: len(fragments)]


def find_sections(nodes: Sequence[Node]) -> list[Section]:
    """Return every file and every heading that has nodes: in document order, outer before inner."""
    trails = [trail_of(node) for node in nodes]
    sections: list[Section] = []
    for depth in range(1, max(map(len, trails), default=0) + 1):
        cut = [trail[:depth] for trail in trails]
        for trail, run in groupby(range(len(nodes)), key=cut.__getitem__):
            if len(trail) == depth:
                first, *others = run
                sections.append(Section(trail, first, first + len(others) + 1))
    return sorted(sections, key=lambda section: (section.first, len(section.trail)))


def nodes_under(nodes: Sequence[Node], title: str) -> list[int]:
    """Return the ordinals of the nodes under every heading of a title, in document order.

    Args:
        nodes: Nodes of one skill, in document order.
        title: A heading's title, or neighbouring titles of a path such as `Restore > Restore one table`; case
            and the amount of white space do not matter.
    """
    # a title may itself hold a `>`
    wanted = [[folded(title)], [folded(part) for part in re.split(r"\s>\s", title)]]

    def stands_under(titles: list[str]) -> bool:
        starts = range(len(titles))
        return any(titles[start : start + len(path)] == path for path in wanted for start in starts)

    return [node.ordinal for node in nodes if stands_under([folded(part) for part in node.heading_path])]


def folded(title: str) -> str:
    """Return a title for comparison: case and the amount of white space do not matter."""
    return " ".join(title.split()).casefold()

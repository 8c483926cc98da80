"""Sections of a skill: which nodes are under which headings; and the text of a node that models read.

`heading_paths` and `sections_of` read the headings, by level and offset, so two headings with the same title
are two sections. The other functions read only the path of titles that each fragment has.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from skillpager.types import TEXT_FORMS, Fragment, Heading, Node, SkillIndex, Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Trail = tuple[str, ...]  # a file, and the titles of the headings down to a section, outermost first


@dataclass(frozen=True, slots=True)
class Section:
    """The nodes of one file, or under one heading with its subsections.

    `trail` is the file, and the titles down to this heading; `end` the position after the last node.
    """

    trail: Trail
    first: int
    end: int

    def holds(self, node: Node) -> bool:
        """Return whether `node` is in this section."""
        return trail_of(node)[: len(self.trail)] == self.trail


def open_headings(before: tuple[Heading, ...], heading: Heading) -> tuple[Heading, ...]:
    """Return the headings that contain what follows `heading`, outermost first, given those `before` it."""
    return (*(outer for outer in before if outer.level < heading.level), heading)


def heading_paths(headings: Iterable[Heading], spans: Iterable[Span]) -> list[tuple[Heading, ...]]:
    """Return for each span the headings that contain its start, outermost first.

    `headings` are all headings of a skill, in document order; `spans` are in any order.
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
    """Return the ordinals of each section, in document order: the nodes between two headings of a file.

    Nodes before the first heading of a file are a section, too.
    """
    paths = heading_paths(index.headings, [node.span for node in index.nodes])
    nodes = zip(index.nodes, paths, strict=True)
    runs = groupby(nodes, key=lambda pair: (pair[0].span.file, pair[1][-1:]))
    return [[node.ordinal for node, _ in run] for _, run in runs]


def trail_of(fragment: Fragment) -> Trail:
    """Return the file of a fragment and the titles of the headings above it."""
    return (fragment.span.file, *fragment.heading_path)


def section_numbers(fragments: Sequence[Fragment]) -> "NDArray[np.intp]":
    """Return `(len(fragments),)`, from 0: neighbours with the same trail have the same number."""
    import numpy as np  # here, so that `skillpager --help` does not import it

    begins = [before != after for before, after in pairwise(map(trail_of, fragments))]
    return np.cumsum([0, *begins], dtype=np.intp)[: len(fragments)]


def find_sections(nodes: Sequence[Node]) -> list[Section]:
    """Return the section of each file and heading that has nodes, in document order, outer before inner."""
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
    """Return the ordinals of the nodes under every heading with this title, in document order.

    It may be a part of a path such as `Restore > Restore one table`; case and the amount of white space do
    not matter.
    """
    # a title may itself contain ` > `
    wanted = [[folded(title)], [folded(part) for part in re.split(r"\s>\s", title)]]
    found = []
    for node in nodes:
        titles = [folded(part) for part in node.heading_path]
        starts = range(len(titles))
        if any(titles[start : start + len(path)] == path for path in wanted for start in starts):
            found.append(node.ordinal)
    return found


def folded(title: str) -> str:
    """Return a title in a form for comparison: case folded, white space collapsed."""
    return " ".join(title.split()).casefold()


def embedded_text(fragment: Fragment, form: str) -> str:
    """Return the text that an encoder embeds for a fragment, unless it reads documents as a whole.

    The form is `bare` for its text; `heading` for its heading path, a line break and its text; `context`
    for the same with the lead-in of its list or table in between, unless the text contains it.
    """
    if form not in TEXT_FORMS:
        raise ValueError(f"form must be one of {', '.join(TEXT_FORMS)}, not {form!r}")
    if form == "bare":
        return fragment.text
    context = fragment.list_context if form == "context" else None
    lead_in = context.lead_in.strip() if context else ""
    shown = "" if lead_in in fragment.text else lead_in
    return "\n".join(filter(None, (" > ".join(fragment.heading_path), shown, fragment.text)))

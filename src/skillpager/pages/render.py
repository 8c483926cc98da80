"""Render chosen nodes as a page: document order, headings, lead-ins, marks for omitted lines.

A page is nodes and the joints between them. If two shown nodes are adjacent in the source, their joint
is the source between them, so the page repeats the author's own text. Any other joint is a gap: a mark,
the headings that the reader needs to see, and the lead-in if the next node is in the middle of a list.
Omitted nodes that take no more tokens than their gap are shown instead. A joint depends only on its two
nodes, so `PageMeter` can count the tokens of a growing page without rendering it.

A mark says where the omitted lines are and which sections they hold; how to read them is said once, in the
legend. A heading is shown once, over the first node below it; a mark names the outermost sections of which
nothing is shown. The title of a file, a heading over all of its nodes, is left out of both.

Reference: paper §3.2, Context Assembly; contract 5 of `docs/design.md`.
"""

import json
import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import count, pairwise

from skillpager.caches import LRUCache
from skillpager.display_text import is_plain
from skillpager.pages.gaps import (
    END,
    SAMPLE_ADDRESS,
    START,
    command_for,
    covers,
    file_mark,
    mark_of,
    not_covered,
    notice_of,
    omissions_of,
    rule_of,
    skill_tag,
    source_between,
    whole_text,
)
from skillpager.sections import heading_paths
from skillpager.types import Heading, Node, Omission, Page, Selection, SkillIndex, Span, Style, TokenCounter

# of all joints that the renderers of a pager cache; those of a page of 100 nodes take about 0.3 MB
MAX_JOINT_BYTES = 48_000_000
# a joint besides its text and the ids of its gaps: objects, dictionaries and its place in the cache
JOINT_BYTES = 1_000
# fewer nodes than this have no gap between them
MIN_GAP_NODES = 3
# in style `xml`, text of a skill that could close the element of the page or open another
_ELEMENT = re.compile(r"<(?=\s*/?\s*skill_content)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Joint:
    """The text between two shown nodes, its tokens, its gaps, and the ordinals of nodes that fill a gap."""

    text: str
    tokens: int = 0
    omitted: tuple[Omission, ...] = ()
    filled: tuple[int, ...] = ()


JointCache = LRUCache[tuple[int, int, int], _Joint]
_numbers = count()


def joint_cache() -> JointCache:
    """Return an empty cache of joints, which any number of renderers may share."""
    return LRUCache(MAX_JOINT_BYTES, _joint_bytes)


def _joint_bytes(joint: _Joint) -> int:
    return JOINT_BYTES + len(joint.text) + sum(8 * len(gap.nodes) for gap in joint.omitted)


class PageRenderer:
    """Renders pages of one index in one style. Thread-safe; joints are cached.

    Args:
        index: The skill's index.
        counter: Counts tokens of the rendered text.
        style: `marked` or `xml` for marks in place of gaps, `plain` for the paper's concatenation.
        show: Command that reads omitted lines; their address follows it, or replaces `{ids}` in it. Empty
            for none.
        folder: Line that names the skill's folder, see `gaps.folder_line`; empty for none.
        joints: The cache of its joints, to share one among renderers; default: a cache of its own.
        part_tag: For a part of a page of several skills, which says its skill's name even if the command
            does: the tag of their true marks. None for a page of its own.
    """

    def __init__(
        self,
        index: SkillIndex,
        counter: TokenCounter,
        *,
        style: Style = Style.MARKED,
        show: str = "",
        folder: str = "",
        joints: JointCache | None = None,
        part_tag: str | None = None,
    ) -> None:
        self.index = index
        self.counter = counter
        self.style = style
        # a command that is no line of text, such as one with the path of an oddly named folder, breaks marks
        self._show = show if is_plain(show) else ""
        self._folder = folder
        self._known: frozenset[int] = frozenset()  # ordinals of nodes that the reader has
        self._part_tag = part_tag
        self._paths = _without_titles(index)
        self._joints = joint_cache() if joints is None else joints
        self._number = next(_numbers)  # of its joints in the cache

    def render(self, ordinals: Iterable[int], *, selection: Selection | None = None) -> Page:
        """Return the page that shows the given nodes, in any order, without a limit on its tokens.

        A page that its marks make no shorter than the skill is the whole skill, except in style `plain`.
        """
        chosen = sorted(set(ordinals))
        page = self._framed(chosen, selection)
        if self.style is Style.PLAIN or self._known or page.complete or page.tokens < self.index.full_tokens:
            return page
        whole = self._framed(range(len(self.index.nodes)), selection)
        return whole if whole.tokens <= page.tokens else page

    def excerpt(self, ordinals: Iterable[int]) -> Page:
        """Return a page fault: the nodes as `render` shows them, without legend and outer marks."""
        chosen = sorted(set(ordinals))
        opening = self._opening(START, chosen[0]) if chosen and self.style is not Style.PLAIN else ()
        between = [self.joint(before, after) for before, after in pairwise(chosen)]
        ends = [_Joint("")] if chosen else []
        first = notice_of(self.tag if chosen else "") + "".join(opening)
        return self._page(chosen, [_Joint(first), *between, *ends], None)

    def empty(self, selection: Selection | None) -> Page:
        """Return the page for a budget that is too small even for marks: no text, everything omitted."""
        page = self._page([], [_Joint("", omitted=omissions_of(self.index.nodes, self._known))], selection)
        return replace(page, complete=False)  # nothing is shown of a skill of headings either

    def knowing(self, known: frozenset[int]) -> "PageRenderer":
        """Return a renderer of the same index for a reader who has these nodes already."""
        other = copy(self)
        other._known, other._number = known, next(_numbers)  # its joints are others
        return other

    def joint(self, before: int, after: int) -> _Joint:
        """Return the joint of two shown nodes; `START` and `END` are the ends of the page."""
        key = (self._number, before, after)
        return self._joints.get_or_make(key, lambda: self._make_joint(before, after))

    @cached_property
    def tag(self) -> str:
        """What tells true marks from text of the skill that looks like one; empty for nearly all skills."""
        if self.style is Style.PLAIN:
            return ""
        return skill_tag(self.index.skill) if self._part_tag is None else self._part_tag

    @cached_property
    def node_tokens(self) -> Sequence[int]:
        """Tokens that the text of each node takes on a page."""
        nodes = self.index.nodes
        if self.style is not Style.XML:
            return [node.tokens for node in nodes]
        return [self._count(node.text) if _ELEMENT.search(node.text) else node.tokens for node in nodes]

    @cached_property
    def gap_tokens(self) -> int:
        """Tokens that a gap takes, about: that of all nodes but the first and last of the first file."""
        nodes = self.index.nodes
        first = sum(node.span.file == nodes[0].span.file for node in nodes)
        total = first if first >= MIN_GAP_NODES else len(nodes)
        return self.joint(0, total - 1).tokens if total >= MIN_GAP_NODES else 0

    def frame_tokens(self, covered: float | None = None) -> int:
        """Return the tokens of what stands around a page, for a chance that the skill covers the query."""
        most = len(self.index.nodes) - 1
        return self.counter.count(self._frame("", most, covered)) if self.index.nodes else 0

    def _framed(self, chosen: Sequence[int], selection: Selection | None) -> Page:
        joints = [self.joint(before, after) for before, after in pairwise([START, *chosen, END])]
        return self._page(chosen, joints, selection, framed=True)

    def _page(
        self,
        chosen: Sequence[int],
        joints: Sequence[_Joint],
        selection: Selection | None,
        *,
        framed: bool = False,
    ) -> Page:
        """Return the page of the chosen nodes, each between two joints."""
        nodes = self.index.nodes
        shown = sorted({*chosen, *(ordinal for joint in joints for ordinal in joint.filled)})
        complete = len(shown) == len(nodes)
        pairs = zip(chosen, joints[1:], strict=True)
        text = joints[0].text + "".join(nodes[ordinal].text + joint.text for ordinal, joint in pairs)
        covered = selection.covered if selection else None
        if framed:
            whole = complete and self.style is not Style.PLAIN
            text = self._frame(whole_text(self.index, self.tag) if whole else text, len(shown), covered)
        else:
            text = self._escaped(text)
        return Page(
            text=text,
            style=self.style,
            nodes=tuple(nodes[ordinal] for ordinal in shown),
            tokens=self.counter.count(text),
            full_tokens=self.index.full_tokens,
            tokens_exact=self.counter.exact,
            omitted=tuple(omission for joint in joints for omission in joint.omitted),
            complete=complete,
            selection=selection,
            covered=covered,
        )

    def _frame(self, body: str, shown: int, covered: float | None) -> str:
        """Return a page with its legend, its tags or both; with a notice if `covered` is low."""
        if self.style is Style.PLAIN:
            return body
        name, rule = self.index.skill.name, rule_of(self.tag)
        # in style `xml` the element says the name
        is_part = self._part_tag is not None and self.style is Style.MARKED
        legend, flag = "", ' complete="true"'
        quoted = f"skill {json.dumps(name, ensure_ascii=False)}"  # a quote in the name does not end it
        if shown != len(self.index.nodes):
            how = f"; read: {command_for(self._show, SAMPLE_ADDRESS)}" if self._show else ""
            named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._show)  # by the command
            about = "a skill" if named and not is_part else quoted
            legend = f"[Page{self.tag} of {about}.{rule} […{self.tag}] = omitted lines{how}]\n\n"
            flag = ""
        elif self.tag or is_part:
            legend = f"[Page{self.tag} of {quoted}: the whole.{rule}]\n\n"
        if self._folder:
            legend = f"{legend.rstrip()}\n{self._folder}\n\n".lstrip()
        if said := not_covered(covered):
            legend = f"[This skill{self.tag} {said}.]\n\n{legend}"
        if self.style is Style.MARKED:
            return legend + body
        inner = self._escaped(legend + body.rstrip())
        return f'<skill_content name="{escape(name)}"{flag}>\n{inner}\n</skill_content>'

    def _make_joint(self, before: int, after: int) -> _Joint:
        hidden = self.index.nodes[before + 1 : None if after == END else after]
        omitted = omissions_of(hidden, self._known)
        if self.style is Style.PLAIN:
            text = "\n\n" if before != START and after != END else ""
            return _Joint(text, self._count(text), omitted)
        if not hidden:
            return self._filled_joint(before, after)
        lead = "\n\n" if before != START else ""
        opening = "" if after == END else f"\n{''.join(self._opening(before, after))}"
        ordinals = {node.id: node.ordinal for node in hidden}
        marks = "\n\n".join(
            mark_of(
                self.index, gap, self._titles([ordinals[name] for name in gap.nodes], before, after), self.tag
            )
            for gap in omitted
        )
        text = f"{lead}{marks}\n{opening}"
        gap = _Joint(text, self._count(text), omitted)
        # pages with gaps of up to three times these tokens filled suffice as often at equal tokens
        if any(omission.known for omission in omitted) or sum(node.tokens for node in hidden) > gap.tokens:
            return gap
        filled = self._filled_joint(before, after, tuple(node.ordinal for node in hidden))
        return gap if filled.tokens > gap.tokens else filled

    def _titles(self, ordinals: Sequence[int], before: int, after: int) -> list[str]:
        """Return the titles of the outermost sections in a gap whose headings the page does not show."""
        previous = self.index.nodes[before] if before != START else None
        below = {heading.span for heading in self._paths[after]} if after != END else ()
        found: dict[Span, str] = {}
        for ordinal in ordinals:
            for heading in self._paths[ordinal]:
                span = heading.span
                if span not in below and not (previous and covers(previous, span.file, span.start)):
                    found[span] = heading.title
                    break
        return [title for title in found.values() if title]

    def _filled_joint(self, before: int, after: int, filled: tuple[int, ...] = ()) -> _Joint:
        """Return the source between two nodes as a joint."""
        source = source_between(self.index, before, after, self.tag)
        source = source.lstrip("\r\n") if before == START else source
        return _Joint(source, self._count(source), filled=filled)

    def _opening(self, before: int, after: int) -> Iterable[str]:
        """Yield the file name, headings and lead-in that a node needs after a gap."""
        node = self.index.nodes[after]
        previous = self.index.nodes[before] if before != START else None
        file = previous.span.file if previous else self.index.skill.files[0].path
        if node.span.file != file:
            yield f"{file_mark(node.span.file, self.tag)}\n\n"
        for heading in self._paths[after]:
            if previous is None or not covers(previous, heading.span.file, heading.span.start):
                yield f"{heading.text}\n\n"
        context = node.list_context
        lead_in = context.lead_in_span if context else None
        if context and lead_in and (previous is None or not covers(previous, lead_in.file, lead_in.start)):
            yield f"{context.lead_in}\n"

    def _escaped(self, text: str) -> str:
        """Return a text of a page without tags that could pass for those around the page."""
        return _ELEMENT.sub("&lt;", text) if self.style is Style.XML else text

    def _count(self, text: str) -> int:
        return self.counter.count(self._escaped(text))


def _without_titles(index: SkillIndex) -> list[tuple[Heading, ...]]:
    """Return for each node the headings that contain it, outermost first, but not the title of its file."""
    paths = heading_paths(index.headings, [node.span for node in index.nodes])
    tops: dict[str, set[Span | None]] = {}
    for node, path in zip(index.nodes, paths, strict=True):
        tops.setdefault(node.span.file, set()).add(path[0].span if path else None)
    return [
        path[1:] if len(tops[node.span.file]) == 1 else path
        for node, path in zip(index.nodes, paths, strict=True)
    ]


class PageMeter:
    """A `TokenMeter` for rendered pages, with marks, headings and what a page says of a low `covered`."""

    def __init__(self, renderer: PageRenderer, *, covered: float | None = None) -> None:
        """Start with an empty page."""
        self._renderer = renderer
        self.gap_tokens = renderer.gap_tokens
        self._shown: list[int] = []
        self.tokens = renderer.frame_tokens(covered) + renderer.joint(START, END).tokens

    def cost(self, ordinal: int) -> int:
        """Return the tokens of the page if node `ordinal` were added."""
        place = bisect_left(self._shown, ordinal)
        before = self._shown[place - 1] if place else START
        after = self._shown[place] if place < len(self._shown) else END
        joint = self._renderer.joint
        added = joint(before, ordinal).tokens + joint(ordinal, after).tokens - joint(before, after).tokens
        return self.tokens + self._renderer.node_tokens[ordinal] + added

    def add(self, ordinal: int) -> None:
        """Add node `ordinal` to the page."""
        self.tokens = self.cost(ordinal)
        insort(self._shown, ordinal)


class NodeMeter:
    """A `TokenMeter` that counts only the tokens of the nodes; `gap_tokens` is what a gap takes, about."""

    def __init__(self, nodes: Sequence[Node], *, gap_tokens: int = 0) -> None:
        """Start with an empty page."""
        self.gap_tokens = gap_tokens
        self._nodes = nodes
        self.tokens = 0

    def cost(self, ordinal: int) -> int:
        """Return the tokens of the page if node `ordinal` were added."""
        return self.tokens + self._nodes[ordinal].tokens

    def add(self, ordinal: int) -> None:
        """Add node `ordinal` to the page."""
        self.tokens = self.cost(ordinal)

"""Render chosen nodes as a page: document order, headings, lead-ins, marks for omitted lines.

A page is nodes and the joints between them. If two shown nodes are adjacent in the source, their joint is
the source between them. Any other joint is a gap: a mark, the headings that the reader needs to see, and the
lead-in if the next node is in the middle of a list. Omitted nodes that take no more tokens than their gap are
shown instead. A joint depends only on its two nodes, so that a growing page can be counted unrendered.

A mark says where the omitted lines are and names the outermost sections of which nothing is shown; how to
read the first of them is said once, in the legend. A heading is shown once, over the first node below it.

Reference: paper §3.2, Context Assembly; contract 5 of `docs/design.md`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from html import escape
from io import StringIO
from itertools import accumulate, count, groupby, pairwise
from pathlib import Path

from skillpager.display_text import is_plain, not_covered, quoted_place
from skillpager.pages import marks
from skillpager.pages.marks import END, START, covers, file_mark, omissions_of
from skillpager.sections import heading_paths
from skillpager.types import (
    SKILL_DIR,
    Heading,
    Node,
    Omission,
    Page,
    Selection,
    Skill,
    SkillIndex,
    SourceFile,
    Span,
    Style,
    TokenCounter,
)

HINT = "for the page nevertheless: `force`"  # of a short answer whose caller gives no other

# text that a reader could take for a mark, the name of a file or a legend: `[… L2`, `[... 9 tokens`, `[… cut
# here`, `[file:`, `[Page of skill`, with or without a tag; `[...rest]` of a program is none
_IMITATION = re.compile(
    r"\[[^\w\[\]]{0,8}?(?:"
    r"(?:[…⋯]|\.\.\.(?=[^\w\]]|L\d))[^\[\]]{0,200}?"
    r"\b(?:L\s?\d|\d+\s+files\s*:"
    r"|(?:lines?|tokens?|omitted|in context|sent (?:earlier|before)|cut here|go on|read on)\b)"
    r"|(?:page|parts)\W{0,3}\d*\s*of\s+(?:a\s+|\d+\s+)?skill|file\W{0,3}\d*\s*:|line\s+\d+\s+of\b"
    r"|variants\W{0,3}\d*\s*:|page\W{0,3}\d*\s*holds\b|this\s+skill\W{0,3}\d*\s*seems\b|skill\s+folder\b)",
    re.IGNORECASE,
)
_TAG = re.compile(r"#\s?([0-9]{1,9})")
MAX_FILES = 6  # of the folder, that a page names
# fewer nodes than this have no gap between them
MIN_GAP_NODES = 3
MAX_KEPT_INDEXES = 4  # the headings above whose nodes are kept
# in style `xml`, text of a skill that could close the element of the page or open another
_ELEMENT = re.compile(r"<(?=\s*/?\s*skill_content)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Joint:
    """The text between two shown nodes, its tokens, its gaps, and the ordinals of nodes that fill a gap."""

    text: str
    tokens: int = 0
    omitted: tuple[Omission, ...] = ()
    filled: tuple[int, ...] = ()


class PageRenderer:
    """Renders pages of one index in one style; its joints are cached.

    `show` is the command that reads omitted lines: their address follows it, or replaces `{ids}` in it.
    `folder` is the skill's folder, as `folder_words` returns it; `files` returns path and size of what nodes
    mention of it. `part_tag` is the tag of the true marks of a page of several skills; its parts say
    their skill's name even if the command does. None for another page.
    """

    def __init__(
        self,
        index: SkillIndex,
        counter: TokenCounter,
        *,
        style: Style = Style.MARKED,
        show: str = "",
        folder: str = "",
        files: Callable[[Sequence[Node]], Sequence[tuple[str, int]]] = lambda _: (),
        part_tag: str | None = None,
    ) -> None:
        self.index = index
        self.counter = counter
        self.style = style
        # a command that is no line of text, such as one with the path of an oddly named folder, breaks marks
        self.show = show if is_plain(show) else ""
        self._folder, self._files = folder, files
        self._known: frozenset[int] = frozenset()  # ordinals of nodes that the reader has
        self._part_tag = part_tag
        self._paths = _without_titles(index)
        self._joints: dict[tuple[int, int], _Joint] = {}

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

    def verbatim(self, file: SourceFile, numbers: Sequence[int]) -> Page:
        """Return adjacent lines of a file as they are, below headings and lead-in of the first node there."""
        first, last = (numbers[0], numbers[-1]) if numbers else (1, 0)
        nodes = [node for node in self.index.nodes if node.span.file == file.path]
        here = [node for node in nodes if node.span.start_line <= last and node.span.end_line >= first]
        above = [each for node in here[:1] for span, each in self._above(node) if span.end_line < first]
        named = f"{notice_of(self.tag)}{file_mark(file.path, self.tag, file.same_as)}\n\n{''.join(above)}"
        lines = StringIO(file.text, newline="").readlines()[first - 1 : last]
        text = ("" if self.style is Style.PLAIN or not numbers else named) + "".join(lines)
        whole = tuple(n.ordinal for n in here if first <= n.span.start_line and n.span.end_line <= last)
        page = self._page([], [_Joint(text, filled=whole)], None)
        return page if whole else replace(page, complete=False)

    def empty(self, selection: Selection | None, least_tokens: int | None = None) -> Page:
        """Return the page for a budget that is too small even for marks: no text, everything omitted."""
        page = self._page([], [_Joint("", omitted=omissions_of(self.index.nodes, self._known))], selection)
        # nothing is shown of a skill of headings either
        return replace(page, complete=False, least_tokens=least_tokens)

    def knowing(self, known: frozenset[int]) -> "PageRenderer":
        """Return a renderer of the same index for a reader who has these nodes already."""
        other = copy(self)
        other._known, other._joints = known, {}
        return other

    def joint(self, before: int, after: int) -> _Joint:
        """Return the joint of two shown nodes; `START` and `END` are the ends of the page."""
        found = self._joints.get((before, after))
        if found is None:
            found = self._joints[before, after] = self._make_joint(before, after)
        return found

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

    def frame_tokens(self, selection: Selection | None = None) -> int:
        """Return the tokens of what stands around the page of a selection, at most."""
        nothing = omissions_of(self.index.nodes, ())
        legend = self._legend(nothing, selection, self.index.nodes)
        return self.counter.count(self._framed_text("", legend, selection, complete=False)) if nothing else 0

    def name_files(self, page: Page, limit: int | None) -> Page:
        """Return a page that names files of the folder that its nodes mention, as many as fit `limit`."""
        is_free = limit is None or self._part_tag is None  # what a part leaves is for the next
        is_named = self._folder and page.nodes and self.style is not Style.PLAIN
        files, other = self._files(page.nodes) if is_named and is_free else (), copy(self)
        for size in range(min(len(files), MAX_FILES), 0, -1):
            words = [f"{path} {-(-of_file // 1000):,} kB" for path, of_file in files[:size]]
            words += [f"and {len(files) - size} more"] * (size < len(files))
            other._folder = f"{self._folder} ({', '.join(words)})"
            old, new = (each._legend(page.omitted, page.selection, page.nodes) for each in (self, other))
            text = page.text.replace(self._escaped(old), self._escaped(new))
            tokens = self.counter.count(text)
            if limit is None or tokens <= limit:
                return replace(page, text=text, tokens=tokens)
        return page

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
        omitted = tuple(omission for joint in joints for omission in joint.omitted)
        if framed:
            whole = complete and self.style is not Style.PLAIN
            body = marks.whole_text(self.index, self.tag) if whole else text
            legend = self._legend(omitted, selection, [nodes[ordinal] for ordinal in shown])
            text = self._framed_text(body, legend, selection, complete=not omitted)
        else:
            text = self._escaped(text)
        return Page(
            text=text,
            style=self.style,
            nodes=tuple(nodes[ordinal] for ordinal in shown),
            tokens=self.counter.count(text),
            full_tokens=self.index.full_tokens,
            tokens_exact=self.counter.exact,
            omitted=omitted,
            complete=complete,
            selection=selection,
            covered=selection.covered if selection else None,
        )

    def short_answer(self, about: str, hint: str, selection: Selection) -> Page:
        """Return what is shown in place of a page: `about` the skill, and how it is read."""
        legend = f"[In place of a page{self.tag}: what the skill is about; {hint}]\n\n"
        text = self._framed_text(about, legend, selection, complete=False)
        return replace(self.empty(selection), text=text, tokens=self.counter.count(text), sufficiency=0.0)

    @property
    def outermost_titles(self) -> Sequence[str]:
        """Titles of the outermost sections in document order, without those of whole files."""
        return [*dict.fromkeys(path[0].title for path in self._paths if path and path[0].title)]

    def _legend(self, omitted: Sequence[Omission], selection: Selection | None, shown: Iterable[Node]) -> str:
        name, rule = self.index.skill.name, rule_of(self.tag)
        # in style `xml` the element says the name
        is_part = self._part_tag is not None and self.style is Style.MARKED
        legend = ""
        quoted = f"skill {json.dumps(name, ensure_ascii=False)}"  # a quote in the name does not end it
        folder = f" in {self._folder}" if self._folder else ""
        if omitted:
            read = marks.read_address(self.index, omitted) if self.show else ""
            how = f"; read: {marks.command_for(self.show, read)}" if read else ""
            named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.show)  # by the command
            about = "a skill" if named and not is_part else quoted
            legend = f"[Page{self.tag} of {about}{folder}.{rule} […{self.tag}] = omitted lines{how}]\n\n"
            files = {node.span.file for node in shown}
            for taken, others in selection.variants.items() if selection else ():
                if any(file.startswith(f"{taken}/") for file in files):
                    legend += f"{marks.variants_mark(taken, others, self.tag)}\n\n"
        elif self.tag or is_part:
            legend = f"[Page{self.tag} of {quoted}{folder}: the whole.{rule}]\n\n"
        elif folder:
            legend = f"[Skill folder{self.tag}: {self._folder}]\n\n"
        return legend

    def _framed_text(self, body: str, legend: str, selection: Selection | None, *, complete: bool) -> str:
        """Return a page with its legend, its tags or both, and notices on its selection."""
        if self.style is Style.PLAIN:
            return body
        if selection and (said := not_covered(selection.covered)):
            legend = f"[This skill{self.tag} {said}.]\n\n{legend}"
        if self.style is Style.MARKED:
            return legend + body
        inner, flag = self._escaped(legend + body.rstrip()), ' complete="true"' if complete else ""
        return f'<skill_content name="{escape(self.index.skill.name)}"{flag}>\n{inner}\n</skill_content>'

    def _make_joint(self, before: int, after: int) -> _Joint:
        hidden = self.index.nodes[before + 1 : None if after == END else after]
        omitted = omissions_of(hidden, self._known)
        if self.style is Style.PLAIN:
            text = "\n\n" if before != START and after != END else ""
            return _Joint(text, self._count(text), omitted)
        if not hidden:
            return self._filled_joint(before, after)
        lead = "\n\n" if before != START else ""
        named = omitted[-1].file  # by its mark
        opening = "" if after == END else f"\n{''.join(self._opening(before, after, named))}"
        named_gaps = "\n\n".join(self._marks(hidden, omitted, before, after))
        text = f"{lead}{named_gaps}\n{opening}"
        gap = _Joint(text, self._count(text), omitted)
        # pages with gaps of up to three times these tokens filled suffice as often at equal tokens
        if any(omission.known for omission in omitted) or sum(node.tokens for node in hidden) > gap.tokens:
            return gap
        filled = self._filled_joint(before, after, tuple(node.ordinal for node in hidden))
        return gap if filled.tokens > gap.tokens else filled

    def _marks(
        self, hidden: Sequence[Node], omitted: Sequence[Omission], before: int, after: int
    ) -> Iterator[str]:
        """Yield the marks of gaps, one for many whole files in a row."""
        ordinals, nodes = {node.id: node.ordinal for node in hidden}, self.index.nodes

        def is_file(gap: Omission) -> bool:
            first, last = ordinals[gap.nodes[0]], ordinals[gap.nodes[-1]]
            beside = (*nodes[max(0, first - 1) : first], *nodes[last + 1 : last + 2])
            return not gap.known and first > 0 and all(node.span.file != gap.file for node in beside)

        for whole, run in groupby(omitted, is_file):
            gaps = list(run)
            if whole and len(gaps) >= marks.MIN_FILES:
                yield marks.files_mark([(gap.file, self._words[gap.file]) for gap in gaps], self.tag)
                continue
            for gap in gaps:
                titles = self._titles([ordinals[name] for name in gap.nodes], before, after)
                yield marks.mark_of(self.index, gap, titles, self.tag)

    @cached_property
    def _words(self) -> Mapping[str, str]:
        return marks.words_of_files(self.index)

    def _titles(self, ordinals: Sequence[int], before: int, after: int) -> list[str]:
        """Return the titles of the outermost sections in a gap whose headings the page does not show.

        What stands there of sections whose headings it shows is named by the texts that introduce its parts.
        """
        previous = self.index.nodes[before] if before != START else None
        below = {heading.span for heading in self._paths[after]} if after != END else ()

        def heading_of(ordinal: int) -> Heading | None:
            titled = (h for h in self._paths[ordinal] if h.span not in below and not covers(previous, h.span))
            return next(titled, None)

        found: dict[Span, str] = {}
        for heading, run in groupby(ordinals, heading_of):
            if heading and heading.title:
                found[heading.span] = heading.title
            else:
                hidden = [self.index.nodes[ordinal] for ordinal in run]
                found |= marks.part_names(hidden, self._introduction, previous)
        return [title for title in found.values() if title]

    @cached_property
    def _introduction(self) -> Callable[[int], tuple[Span, str]]:
        nodes = self.index.nodes  # not `self`: a circle would keep the renderer until garbage is collected
        return cache(lambda ordinal: marks.introduction(nodes[ordinal]))

    def _filled_joint(self, before: int, after: int, filled: tuple[int, ...] = ()) -> _Joint:
        """Return the source between two nodes as a joint."""
        source = marks.source_between(self.index, before, after, self.tag)
        source = source.lstrip("\r\n") if before == START else source
        return _Joint(source, self._count(source), filled=filled)

    def _opening(self, before: int, after: int, named: str = "") -> Iterable[str]:
        """Yield the file name, unless it is named, headings and lead-in that a node needs after a gap."""
        node = self.index.nodes[after]
        previous = self.index.nodes[before] if before != START else None
        if node.span.file not in (self.index.skill.files[0].path, named):
            yield f"{file_mark(node.span.file, self.tag)}\n\n"
        yield from (text for span, text in self._above(node) if not covers(previous, span))

    def _above(self, node: Node) -> Iterator[tuple[Span, str]]:
        """Yield place and text of the headings and the lead-in of a node."""
        yield from ((heading.span, f"{heading.text}\n\n") for heading in self._paths[node.ordinal])
        if (context := node.list_context) and context.lead_in_span:
            yield context.lead_in_span, f"{context.lead_in}\n"

    def _escaped(self, text: str) -> str:
        """Return a text of a page without tags that could pass for those around the page."""
        return _ELEMENT.sub("&lt;", text) if self.style is Style.XML else text

    def _count(self, text: str) -> int:
        return self.counter.count(self._escaped(text))


@lru_cache(MAX_KEPT_INDEXES)
def _without_titles(index: SkillIndex) -> list[tuple[Heading, ...]]:
    """Return for each node the headings that contain it, outermost first, but not the title of its file."""
    paths = heading_paths(index.headings, [node.span for node in index.nodes])
    shown: list[tuple[Heading, ...]] = []
    for _, nodes in groupby(index.nodes, lambda node: node.span.file):
        of_file = [paths[node.ordinal] for node in nodes]
        titled = all(path[:1] == of_file[0][:1] for path in of_file)
        shown += [path[1:] for path in of_file] if titled else of_file
    return shown


def tag_of(*texts: str) -> str:
    """Return the tag that tells true marks from text that looks like one, such as `#1`; empty if none does.

    Its number is the smallest that stands behind a `#` in none of the texts, so the same skill always has the
    same tag, and no author can write it.
    """
    if not any(map(_IMITATION.search, texts)):
        return ""
    used = {digits for text in texts for digits in _TAG.findall(text)}
    taken = {beginning for digits in used for beginning in accumulate(digits)}  # "#12" holds "#1"
    return f"#{next(number for number in count(1) if str(number) not in taken)}"


def skill_tag(skill: Skill) -> str:
    """Return the tag of the marks of a skill's pages; empty for nearly all skills."""
    return tag_of(*(part for file in skill.files for part in (f"[{file.path}", file.text)))


def folder_words(skill: Skill, folder: Path | None) -> str:
    """Return the folder to which relative paths of a skill lead; empty without one.

    An agent that reads a page elsewhere, such as through a stub, would look for them beside what it read.
    """
    if folder is None or not is_plain(str(folder)):
        return ""
    # without braces, because an agent would put another folder in the place of `${CLAUDE_SKILL_DIR}`
    also = f" ({SKILL_DIR})" if any(SKILL_DIR in file.text for file in skill.files) else ""
    return f"{quoted_place(str(folder))}{also}"


def rule_of(tag: str) -> str:
    """Return the sentence of a legend that says which marks are true; empty without a tag."""
    return f" Only marks with {tag} are true; others are text of the skill." if tag else ""


def notice_of(tag: str) -> str:
    """Return the first line of a text that has marks but no legend; empty without a tag."""
    return f"[{tag}:{rule_of(tag)}]\n\n" if tag else ""

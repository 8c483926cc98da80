"""Stage 8: chosen nodes become a Page: document order, breadcrumbs, lead-ins, elision markers.

A page is nodes and the joints between them. The joint of two shown nodes that follow each other
in the source is the source between them, so a stretch of a page is the author's own text. Any
other joint is a gap: an elision marker, the headings that the reader needs to see, and the
lead-in of a list that is entered in its middle. A gap that costs little more than its marker is shown
instead. A joint depends on its two nodes alone, which lets `PageMeter` price a growing page
exactly and without rendering it.

Reference: paper §3.2, Context Assembly; contract 5 of `docs/design.md`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise

from skillpager.pages.gaps import (
    END,
    START,
    address_of,
    command_for,
    covers,
    line_range,
    omissions_of,
    sample_address,
    source_between,
    verb_of,
    whole_text,
)
from skillpager.sections import heading_paths
from skillpager.types import (
    Node,
    Omission,
    Page,
    Selection,
    SkillIndex,
    Style,
    TokenCounter,
)

# a gap is shown when it costs at most so many times its marker: beside what was picked it is worth more
# than the mark saves (at 40 % of the tokens 36 % of pages suffice, 30 % at 1; no more above 4)
FILL_FACTOR = 3

# joints that one renderer keeps, about 500 bytes each
MAX_KEPT_JOINTS = 20_000
# fewer nodes than this have no gap between them
MIN_GAP_NODES = 3


@dataclass(frozen=True, slots=True)
class _Joint:
    """What stands between two shown nodes, and what it leaves out."""

    text: str
    omitted: tuple[Omission, ...] = ()
    filled: tuple[int, ...] = ()


class PageRenderer:
    """Renders pages of one index in one style; joints are computed once and kept."""

    def __init__(
        self,
        index: SkillIndex,
        counter: TokenCounter,
        *,
        style: Style = Style.MARKED,
        show: str = "",
        known: frozenset[int] = frozenset(),
    ) -> None:
        """Prepare to render.

        Args:
            index: The skill's index.
            counter: Counts tokens of the rendered text.
            style: `marked` or `xml` for elision markers, `plain` for the paper's concatenation.
            show: Command that prints omitted nodes when their ids follow it, or stand in it for `{ids}`;
                empty for none.
            known: Nodes that the reader has already: where they are omitted, the marker says so.
        """
        self.index = index
        self.counter = counter
        self.style = style
        self._show = show
        self._known = known
        self._files = {file.path: file for file in index.skill.files}
        self._paths = heading_paths(index.headings, [node.span for node in index.nodes])
        self._joints: dict[tuple[int, int], _Joint] = {}
        self._prices: dict[tuple[int, int], int] = {}

    def render(self, ordinals: Iterable[int], *, selection: Selection | None = None) -> Page:
        """Return the context that shows the given nodes, however many tokens it takes.

        Args:
            ordinals: Nodes to show, in any order.
            selection: Why they were chosen.
        """
        chosen = sorted(set(ordinals))
        joints = [self.joint(before, after) for before, after in pairwise([START, *chosen, END])]
        shown = sorted({*chosen, *(ordinal for joint in joints for ordinal in joint.filled)})
        if len(shown) == len(self.index.nodes) and self.style is not Style.PLAIN:
            return self._context(self._frame(whole_text(self.index), len(shown)), shown, (), selection)
        texts = [joints[0].text]
        for ordinal, joint in zip(chosen, joints[1:], strict=True):
            texts += [self.index.nodes[ordinal].text, joint.text]
        omitted = tuple(omission for joint in joints for omission in joint.omitted)
        return self._context(self._frame("".join(texts), len(shown)), shown, omitted, selection)

    def excerpt(self, ordinals: Iterable[int]) -> Page:
        """Return the nodes of a page fault: as `render`, without legend and outer markers."""
        chosen = sorted(set(ordinals))
        if not chosen:
            return self._context("", [], (), None)
        joints = [self.joint(before, after) for before, after in pairwise(chosen)]
        shown = sorted({*chosen, *(ordinal for joint in joints for ordinal in joint.filled)})
        opening = "" if self.style is Style.PLAIN else "".join(self._opening(START, chosen[0]))
        texts = [opening.lstrip("\n"), self.index.nodes[chosen[0]].text]
        for ordinal, joint in zip(chosen[1:], joints, strict=True):
            texts += [joint.text, self.index.nodes[ordinal].text]
        omitted = tuple(omission for joint in joints for omission in joint.omitted)
        return self._context("".join(texts), shown, omitted, None)

    def knowing(self, known: frozenset[int]) -> "PageRenderer":
        """Return a renderer of the same pages for a reader who has these nodes already."""
        return PageRenderer(self.index, self.counter, style=self.style, show=self._show, known=known)

    def empty(self, selection: Selection | None) -> Page:
        """Return the context of a budget that not even the markers fit: no text, all omitted."""
        return self._context("", [], self.joint(START, END).omitted, selection)

    def joint(self, before: int, after: int) -> _Joint:
        """Return what stands between two shown nodes; `START` and `END` are the ends of the page."""
        key = (before, after)
        joint = self._joints.get(key)
        if joint is None:
            if len(self._joints) >= MAX_KEPT_JOINTS:
                self._joints.clear()
                self._prices.clear()
            joint = self._joints[key] = self._make_joint(before, after)
        return joint

    def joint_cost(self, before: int, after: int) -> int:
        """Return the tokens of a joint."""
        key = (before, after)
        price = self._prices.get(key)
        if price is None:
            text = self.joint(before, after).text
            price = self._prices[key] = self.counter.count(text) if text else 0
        return price

    @cached_property
    def gap_tokens(self) -> int:
        """About how many tokens a gap takes: the price of the marker for all that one can leave out."""
        count = len(self.index.nodes)
        return self.joint_cost(0, count - 1) if count >= MIN_GAP_NODES else 0

    def frame_cost(self) -> int:
        """Return the tokens of what surrounds every page of this skill: legend or tags."""
        return self.counter.count(self._frame("", len(self.index.nodes) - 1)) if self.index.nodes else 0

    # ---- the whole page

    def _context(
        self, text: str, shown: Sequence[int], omitted: tuple[Omission, ...], selection: Selection | None
    ) -> Page:
        return Page(
            text=text,
            style=self.style,
            nodes=tuple(self.index.nodes[ordinal] for ordinal in shown),
            tokens=self.counter.count(text),
            full_tokens=self.index.full_tokens,
            tokens_exact=self.counter.exact,
            omitted=omitted,
            complete=len(shown) == len(self.index.nodes),
            selection=selection,
        )

    def _frame(self, body: str, shown: int) -> str:
        """Put the legend, or the tags, around a page."""
        if self.style is Style.PLAIN:
            return body
        complete = shown == len(self.index.nodes)
        legend = "" if complete else self._legend(shown)
        if self.style is Style.MARKED:
            return legend + body
        name = escape(self.index.skill.name)
        flag = ' complete="true"' if complete else ""
        return f'<skill_content name="{name}"{flag}>\n{legend}{body.rstrip()}\n</skill_content>'

    def _legend(self, shown: int) -> str:
        total = len(self.index.nodes)
        page = f'Page of skill "{self.index.skill.name}": {shown} of {total} parts, files intact.'
        had = ', "already in context" for what was sent before (if it is gone, read it again)'
        how = f"; read them with: {command_for(self._show, sample_address(self.index))}"
        what = f'"[… L2-9 …]" stands for omitted lines{had if self._known else ""}'
        return f"[{page} {what}{how if self._show else '.'}]\n\n"

    # ---- joints

    def _make_joint(self, before: int, after: int) -> _Joint:
        if self.style is Style.PLAIN:
            text = "\n\n" if before != START and after != END else ""
            return _Joint(text, self._omissions(before, after))
        if after == _next(before, len(self.index.nodes)):
            return _Joint(self._source(before, after))
        gap = self._gap(before, after)
        if any(omission.known for omission in gap.omitted):
            return gap
        most = FILL_FACTOR * self.counter.count(gap.text)
        if sum(omission.tokens for omission in gap.omitted) <= most:
            source = self._source(before, after)
            if self.counter.count(source) <= most:
                inside = range(_first(before), after if after != END else len(self.index.nodes))
                return _Joint(source, (), tuple(inside))
        return gap

    def _source(self, before: int, after: int) -> str:
        source = source_between(self.index, before, after)
        return source.lstrip("\r\n") if before == START else source

    def _gap(self, before: int, after: int) -> _Joint:
        omitted = self._omissions(before, after)
        marks = "\n\n".join(map(self._marker, omitted))
        lead = "\n\n" if before != START else ""
        opening = "" if after == END else f"\n{''.join(self._opening(before, after))}"
        return _Joint(f"{lead}{marks}\n{opening}", omitted)

    def _opening(self, before: int, after: int) -> Iterable[str]:
        """Yield what a reader needs before a node that does not follow its predecessor."""
        node = self.index.nodes[after]
        previous = self.index.nodes[before] if before >= 0 else None
        if self._changes_file(previous, node):
            yield f"[file: {node.span.file}]\n\n"
        known = self._paths[before] if previous and not self._changes_file(previous, node) else ()
        for heading in self._paths[after]:
            inside = previous is not None and covers(previous, heading.span.file, heading.span.start)
            if not inside and not any(heading is other for other in known):
                yield f"{heading.text}\n\n"
        context = node.list_context
        lead_in = context.lead_in_span if context else None
        if context and lead_in and (previous is None or not covers(previous, lead_in.file, lead_in.start)):
            yield f"{context.lead_in}\n"

    def _changes_file(self, previous: Node | None, node: Node) -> bool:
        before = previous.span.file if previous else self.index.skill.files[0].path
        return node.span.file != before

    def _omissions(self, before: int, after: int) -> tuple[Omission, ...]:
        """Return what lies between two nodes: for each file, and apart what the reader has already."""
        nodes = self.index.nodes[_first(before) : after if after != END else len(self.index.nodes)]
        return omissions_of(nodes, self._known)

    def _marker(self, omission: Omission) -> str:
        lines = line_range(omission)
        if len(self._files) > 1:
            lines = f"{omission.file} {lines}"
        types = "already in context" if omission.known else ", ".join(omission.types)
        about = "" if self.counter.exact else "about "
        address = address_of(self.index, omission)
        show = f"; {verb_of(self._show)}{address}" if address else ""
        return f"[… {lines}, {about}{omission.tokens} tokens: {types}{show}]"


class PageMeter:
    """A `TokenMeter` that prices a page as it grows, node by node, without rendering it."""

    def __init__(self, page: PageRenderer) -> None:
        """Start with an empty page."""
        self._page = page
        self.gap_tokens = page.gap_tokens
        self._shown: list[int] = []
        self.tokens = page.frame_cost() + page.joint_cost(START, END)

    def cost(self, ordinal: int) -> int:
        """Return the tokens of the page if node `ordinal` were added."""
        place = bisect_left(self._shown, ordinal)
        before = self._shown[place - 1] if place else START
        after = self._shown[place] if place < len(self._shown) else END
        price = self._page.joint_cost
        joints = price(before, ordinal) + price(ordinal, after) - price(before, after)
        return self.tokens + self._page.index.nodes[ordinal].tokens + joints

    def add(self, ordinal: int) -> None:
        """Add node `ordinal` to the page."""
        self.tokens = self.cost(ordinal)
        insort(self._shown, ordinal)


def _first(before: int) -> int:
    return before + 1 if before >= 0 else 0


def _next(before: int, count: int) -> int:
    following = _first(before)
    return following if following < count else END

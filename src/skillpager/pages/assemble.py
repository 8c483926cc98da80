"""Assemble a page within the budget: from the nodes that a strategy selects, or from a whole skill."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, cast

from typing_extensions import TypeIs

from skillpager.errors import SettingsError
from skillpager.pages.marks import END, START
from skillpager.pages.render import PageRenderer
from skillpager.pages.short_answer import LEAST_FOR_PAGE, MAX_TOKENS, short_answer
from skillpager.settings import Settings
from skillpager.types import (
    Budget,
    EstimatingStrategy,
    Node,
    Page,
    PageOptions,
    Query,
    Selection,
    SkipReason,
    Strategy,
    Style,
    TokenMeter,
)


def estimates(strategy: Strategy) -> TypeIs[EstimatingStrategy]:
    """Return whether a strategy estimates sufficiency."""
    return hasattr(strategy, "reasons")


def choose_budget(options: PageOptions, settings: Settings, strategy: Strategy) -> Budget:
    """Return the budget of a call, each limit from the options, else from the settings, if it is in range."""
    asked = cast(Mapping[str, Any], options)
    names = [each.name for each in fields(Budget)]
    limits = {name: getattr(settings, name) if asked.get(name) is None else asked[name] for name in names}
    for name in ("max_nodes", "max_tokens"):
        value = limits[name]
        if value is not None and (type(value) is not int or value < 0):
            raise SettingsError(f"{name} is {value!r}: it must be a whole number, 0 or more.")
    least = limits["sufficiency"]
    if isinstance(least, bool) or not (least is None or (isinstance(least, (int, float)) and 0 < least <= 1)):
        raise SettingsError(f"sufficiency is {least!r}: it must be above 0 and at most 1, such as 0.9.")
    if estimates(strategy):
        return Budget(**limits)
    if asked.get("sufficiency") is not None:
        raise SettingsError(
            f"The strategy {strategy.name} does not estimate sufficiency: leave sufficiency out, or use "
            "the strategy navigator."
        )
    return Budget(**{**limits, "sufficiency": None})


def make_page(
    renderer: PageRenderer,
    strategy: Strategy,
    query: Query,
    budget: Budget,
    *,
    whole: Strategy | None = None,
    hint: str | None = None,
) -> Page:
    """Return the page that a strategy selects; it never exceeds `max_tokens`.

    A page that ends by itself is the same with a limit that it is within. `whole` selects every node, if the
    budget allows that, for a skill within `max_tokens` and no style `plain`. `hint` is that of a short
    answer; None for a page of what the skill hardly covers, too.
    """
    index, limit = renderer.index, budget.max_tokens
    estimated = estimates(strategy)
    fills = estimated and budget.fill and budget.sufficiency is None
    most, unlimited = limit, None
    if estimated:
        # the page that ends by itself, or at its target
        free = replace(budget, max_tokens=None, fill=budget.fill and not fills)
        unlimited = strategy.select(index, query, budget=free, meter=_meter(renderer, None))
        unlimited = replace(unlimited, budget=replace(unlimited.budget, max_tokens=limit))
        if hint is not None and _is_hardly_covered(renderer, unlimited.covered):
            return short_answer(renderer, unlimited, hint, limit)
        page = renderer.render([pick.node.ordinal for pick in unlimited.picks], selection=unlimited)
        if limit is None or page.tokens <= limit:
            if not fills:
                return _with_chance(page, len(unlimited.picks))
            most = None if limit is None else _room_to_fill(renderer, unlimited, limit)
    entire = None if whole is None else _whole_page(renderer, whole, query, budget, unlimited)
    if entire is not None:
        return replace(entire, sufficiency=1.0 if estimated else None)
    meter = _meter(renderer, limit, unlimited)
    selection = strategy.select(index, query, budget=replace(budget, max_tokens=most), meter=meter)
    selection = replace(selection, budget=replace(selection.budget, max_tokens=limit))
    chosen = [pick.node.ordinal for pick in selection.picks]
    page = renderer.render(chosen, selection=selection)
    while limit is not None and page.tokens > limit:
        if not chosen:
            page = renderer.empty(selection)
            break
        chosen.pop()  # the limit is for the rendered page: remove the last pick
        page = renderer.render(chosen, selection=selection)
    if limit is not None and not page.nodes:
        page = replace(page, least_tokens=_least_tokens(renderer, selection))
    return _with_chance(page, len(chosen)) if estimated else page


def _is_hardly_covered(renderer: PageRenderer, covered: float | None) -> bool:
    """Return whether a query gets a short answer; not of a shorter skill, nor in style `plain`."""
    is_long = renderer.index.full_tokens > MAX_TOKENS and renderer.style is not Style.PLAIN
    return is_long and covered is not None and covered < LEAST_FOR_PAGE


def _meter(renderer: PageRenderer, limit: int | None, selection: Selection | None = None) -> TokenMeter:
    """Return a meter of the nodes alone, or of the whole page if that has a limit."""
    if limit is None:
        return NodeMeter(renderer.index.nodes, gap_tokens=renderer.gap_tokens)
    return PageMeter(renderer, selection)


def _whole_page(
    renderer: PageRenderer, whole: Strategy, query: Query, budget: Budget, unlimited: Selection | None
) -> Page | None:
    """Return the page of the whole skill; None if that exceeds `max_tokens`, or the style is `plain`."""
    index, limit = renderer.index, budget.max_tokens
    if renderer.style is Style.PLAIN or (limit is not None and index.full_tokens > limit):
        return None
    # without the limit: the meter sums the tokens of parts, which is more than those of the whole
    every, told = Budget(len(index.nodes)), replace(unlimited, variants={}) if unlimited else None
    selection = whole.select(index, query, budget=every, meter=_meter(renderer, limit, told))
    every = replace(every, max_tokens=limit, fill=budget.fill)
    selection = replace(selection, budget=every, covered=unlimited.covered if unlimited else None)
    page = renderer.render(range(len(index.nodes)), selection=selection)
    # tags and file names add to the tokens of the skill
    return page if limit is None or page.tokens <= limit else None


def _room_to_fill(renderer: PageRenderer, selection: Selection, limit: int) -> int:
    """Return what the parts of a filled page may add up to: over the limit if one that is not fits it."""
    meter, most = PageMeter(renderer, selection), limit
    for pick in selection.picks:
        meter.add(pick.node.ordinal)
        most = max(most, meter.tokens)  # a pick that closes a gap may make the page shorter
    return most


def _with_chance(page: Page, shown: int) -> Page:
    """Return a page with the chance of sufficiency that was estimated after the pick with this number."""
    if page.complete:
        return replace(page, sufficiency=1.0)
    picks = page.selection.picks if page.selection else ()
    return replace(page, sufficiency=picks[shown - 1].sufficiency or 0.0 if shown else 0.0)


def _least_tokens(renderer: PageRenderer, selection: Selection) -> int | None:
    """Return the tokens of the smallest page with one of the nodes that did not fit; None if all did."""
    refused = [skip.node.ordinal for skip in selection.skipped if skip.reason is SkipReason.MAX_TOKENS]
    refused += [pick.node.ordinal for pick in selection.picks]
    if not refused:
        return None
    meter = PageMeter(renderer, selection)
    cost, ordinal = min((meter.cost(ordinal), ordinal) for ordinal in refused)
    return max(cost, renderer.render([ordinal], selection=selection).tokens)


def make_whole(renderer: PageRenderer, known: Collection[str], limit: int | None) -> Page:
    """Return the whole skill or, if that exceeds `limit`, the beginning of the part that the reader lacks.

    `known` are the ids of the nodes that the reader has.
    """
    nodes = renderer.index.nodes
    page = leave_out(renderer.render(range(len(nodes))), renderer, known)
    if limit is None or page.tokens <= limit:
        return page
    had = frozenset(node.ordinal for node in nodes if node.id in known and renderer.style is not Style.PLAIN)
    rest = [node.ordinal for node in nodes if node.ordinal not in had]
    page = longest(renderer.knowing(had).render, rest, limit)
    return page if page.tokens <= limit else replace(renderer.empty(None), least_tokens=page.least_tokens)


def leave_out(page: Page, renderer: PageRenderer, known: Collection[str]) -> Page:
    """Return a page with marks in place of nodes that the reader has, if that makes it shorter.

    Style `plain` has no marks and shows these nodes.

    `renderer` is that of the page, `known` are the ids of the nodes that the reader has.
    """
    had = frozenset(node.ordinal for node in page.nodes if node.id in known)
    if not had or renderer.style is Style.PLAIN:
        return page
    rest = [node.ordinal for node in page.nodes if node.ordinal not in had]
    shorter = renderer.knowing(had).render(rest, selection=page.selection)
    return replace(shorter, sufficiency=page.sufficiency) if shorter.tokens < page.tokens else page


def longest(render: Callable[[Sequence[int]], Page], ordinals: Sequence[int], limit: int) -> Page:
    """Return the page of as many of the first `ordinals` as fit `limit` tokens, possibly none.

    A page of none says in `least_tokens` what that of the first takes.
    """
    page = render(ordinals)
    if page.tokens <= limit:
        return page
    # a page does not always grow with each node, because marks appear and vanish; but the size before the
    # place that the search returns was tried, and fits
    place = bisect_right(range(len(ordinals)), limit, key=lambda size: render(ordinals[:size]).tokens)
    if place > 1:
        return render(ordinals[: place - 1])
    return replace(render(()), least_tokens=render(ordinals[:1]).tokens)


class PageMeter:
    """A `TokenMeter` for rendered pages, with marks, headings and what a page of a selection says first."""

    def __init__(self, renderer: PageRenderer, selection: Selection | None = None) -> None:
        self._renderer = renderer
        self.gap_tokens = renderer.gap_tokens
        self._shown: list[int] = []
        self.tokens = renderer.frame_tokens(selection) + renderer.joint(START, END).tokens

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
        self.gap_tokens = gap_tokens
        self._nodes = nodes
        self.tokens = 0

    def cost(self, ordinal: int) -> int:
        """Return the tokens of the page if node `ordinal` were added."""
        return self.tokens + self._nodes[ordinal].tokens

    def add(self, ordinal: int) -> None:
        """Add node `ordinal` to the page."""
        self.tokens = self.cost(ordinal)

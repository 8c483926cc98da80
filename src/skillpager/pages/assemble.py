"""One page: what a strategy chooses from a pool, rendered within the budget."""

from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from skillpager.errors import SettingsError
from skillpager.pages.render import PageMeter, PageRenderer
from skillpager.settings import Settings
from skillpager.strategies.baselines.full import Full
from skillpager.strategies.picking import NodeMeter, resolve
from skillpager.types import Budget, Page, Query, Selection, SkillIndex, Strategy, Style, TokenMeter


def choose_budget(
    settings: Settings,
    max_nodes: int | None,
    max_tokens: int | None,
    sufficiency: float | None,
    strategy: Strategy,
) -> Budget:
    """Return the limits of a call; what is None comes from the settings.

    Raises:
        SettingsError: A limit is negative, `sufficiency` is not a chance, or the strategy cannot estimate it.
    """
    nodes = settings.max_nodes if max_nodes is None else max_nodes
    tokens = settings.max_tokens if max_tokens is None else max_tokens
    for name, value in (("max_nodes", nodes), ("max_tokens", tokens)):
        if value is not None and value < 0:
            raise SettingsError(f"{name} is {value}: it must be 0 or more.")
    target = settings.sufficiency if sufficiency is None else sufficiency
    if target is not None and not 0.0 < target <= 1.0:
        raise SettingsError(f"sufficiency is {target}: it must be above 0 and at most 1, such as 0.9.")
    if not estimates(strategy):
        if sufficiency is not None:
            raise SettingsError(
                f"The strategy {strategy.name} does not estimate sufficiency: leave sufficiency out, or use "
                "the strategy navigator."
            )
        return Budget(nodes, tokens)
    return Budget(nodes, tokens, target)


def estimates(strategy: Strategy) -> bool:
    """Tell whether it is an `EstimatingStrategy`."""
    return hasattr(strategy, "reasons")


def make_page(renderer: PageRenderer, strategy: Strategy, query: Query, budget: Budget) -> Page:
    """Return the page that a strategy chooses, within `max_tokens` to the last token.

    A pool that fits `max_nodes` and `max_tokens` passes through whole, except in style `plain`. The strategy
    is not asked then, and `full` takes its place in the selection.

    Args:
        renderer: Renders pages of the pool.
        strategy: Chooses.
        query: The query.
        budget: How much the page may hold.
    """
    pool = renderer.index
    estimated = estimates(strategy)
    limit = budget.max_tokens
    meter = (
        PageMeter(renderer) if limit is not None else NodeMeter(pool.nodes, gap_tokens=renderer.gap_tokens)
    )
    if renderer.style is not Style.PLAIN and _fits_whole(pool, budget, estimated=estimated):
        whole = renderer.render(range(len(pool.nodes)))
        if limit is None or whole.tokens <= limit:  # tags and names of files come on top of the skill
            selection = _all_of(pool, query, meter, limit)
            return replace(whole, selection=selection, sufficiency=1.0 if estimated else None)
    selection = strategy.select(pool, query, budget=budget, meter=meter)
    chosen = [pick.node.ordinal for pick in selection.picks]
    page = renderer.render(chosen, selection=selection)
    while limit is not None and page.tokens > limit:
        if not chosen:
            return renderer.empty(selection)
        chosen.pop()  # the meter prices parts, the limit holds for the whole: give back the last pick
        page = renderer.render(chosen, selection=selection)
    return replace(page, sufficiency=_chance(page, len(chosen))) if estimated else page


def make_whole(renderer: PageRenderer, known: Collection[str], limit: int | None) -> Page:
    """Return the whole pool, or the beginning of what the reader does not have of it, within `limit` tokens.

    Args:
        renderer: Renders pages of the pool.
        known: Ids of the nodes that the reader has.
        limit: Ceiling on the tokens; None for none.
    """
    nodes = renderer.index.nodes
    page = leave_out(renderer.render(range(len(nodes))), renderer, known)
    if limit is None or page.tokens <= limit:
        return page
    had = frozenset(node.ordinal for node in nodes if node.id in known and renderer.style is not Style.PLAIN)
    rest = [node.ordinal for node in nodes if node.ordinal not in had]
    page = longest(renderer.knowing(had).render, rest, limit)
    return page if page.tokens <= limit else renderer.empty(None)


def leave_out(page: Page, renderer: PageRenderer, known: Collection[str]) -> Page:
    """Return a page with a marker in place of the nodes that the reader has; as it is if that is no shorter.

    Style `plain` has no markers and shows them.

    Args:
        page: The page.
        renderer: What rendered it.
        known: Ids of the nodes that the reader has.
    """
    had = frozenset(node.ordinal for node in page.nodes if node.id in known)
    if not had or renderer.style is Style.PLAIN:
        return page
    rest = [node.ordinal for node in page.nodes if node.ordinal not in had]
    shorter = renderer.knowing(had).render(rest, selection=page.selection)
    return replace(shorter, sufficiency=page.sufficiency) if shorter.tokens < page.tokens else page


def longest(render: Callable[[Sequence[int]], Page], ordinals: Sequence[int], limit: int) -> Page:
    """Return the page of the longest beginning of `ordinals` that takes at most `limit` tokens.

    Of none of them when not even the first fits.
    """
    whole = render(ordinals)
    if whole.tokens <= limit:
        return whole
    count = bisect_right(range(len(ordinals)), limit, key=lambda size: render(ordinals[:size]).tokens)
    # a page need not grow with every node: markers come and go
    while count and render(ordinals[:count]).tokens > limit:
        count -= 1
    return render(ordinals[:count])


def _all_of(pool: SkillIndex, query: Query, meter: TokenMeter, limit: int | None) -> Selection:
    # without the limit: the meter prices parts, and these together cost more than the whole
    every = Budget(len(pool.nodes))
    selection = Full().select(pool, query, budget=every, meter=meter)
    return replace(selection, budget=replace(every, max_tokens=limit))


def _chance(page: Page, shown: int) -> float:
    """Return the estimated chance that a page suffices which shows the first `shown` picks."""
    if page.complete:
        return 1.0
    picks = page.selection.picks if page.selection else ()
    return (picks[shown - 1].sufficiency or 0.0) if shown else 0.0


def _fits_whole(pool: SkillIndex, budget: Budget, *, estimated: bool) -> bool:
    """Tell whether the whole skill is within the limits; what is only to suffice is no limit to fill."""
    if estimated and (budget.sufficiency is not None or budget == Budget()):
        return False
    within_tokens = budget.max_tokens is None or pool.full_tokens <= budget.max_tokens
    if estimated and budget.max_nodes is None:
        return within_tokens
    return resolve(budget, len(pool.nodes)).max_nodes == len(pool.nodes) and within_tokens

"""One page: what a strategy chooses from a pool, rendered within the budget."""

from skillpager.context import Page, PageMeter
from skillpager.errors import SettingsError
from skillpager.settings import Settings
from skillpager.strategies.budget import NodeMeter, resolve
from skillpager.strategies.full import Full
from skillpager.types import Budget, Context, Query, SkillIndex, Strategy, Style


def choose_budget(settings: Settings, max_nodes: int | None, max_tokens: int | None) -> Budget:
    """Return the limits of a call; what is None comes from the settings.

    Raises:
        SettingsError: A limit is negative.
    """
    nodes = settings.max_nodes if max_nodes is None else max_nodes
    tokens = settings.max_tokens if max_tokens is None else max_tokens
    for name, value in (("max_nodes", nodes), ("max_tokens", tokens)):
        if value is not None and value < 0:
            raise SettingsError(f"{name} is {value}: it must be 0 or more.")
    return Budget(nodes, tokens)


def make_page(page: Page, strategy: Strategy, query: Query, budget: Budget) -> Context:
    """Return the page that a strategy chooses, within `max_tokens` to the last token.

    A pool that fits the budget passes through whole, except in style `plain`.

    Args:
        page: Renders pages of the pool.
        strategy: Chooses.
        query: The query.
        budget: How much the page may hold.
    """
    pool = page.index
    if page.style is not Style.PLAIN and _fits_whole(pool, budget):
        strategy, budget = Full(), Budget(len(pool.nodes), budget.max_tokens)
    limit = budget.max_tokens
    meter = PageMeter(page) if limit is not None else NodeMeter(pool.nodes)
    selection = strategy.select(pool, query, budget=budget, meter=meter)
    chosen = [pick.node.ordinal for pick in selection.picks]
    context = page.render(chosen, selection=selection)
    while limit is not None and context.tokens > limit:
        if not chosen:
            return page.empty(selection)
        chosen.pop()  # the meter prices parts, the limit holds for the whole: give back the last pick
        context = page.render(chosen, selection=selection)
    return context


def _fits_whole(pool: SkillIndex, budget: Budget) -> bool:
    """Tell whether the whole skill is within the budget."""
    limit = resolve(budget, len(pool.nodes))
    within_tokens = limit.max_tokens is None or pool.full_tokens <= limit.max_tokens
    return limit.max_nodes == len(pool.nodes) and within_tokens

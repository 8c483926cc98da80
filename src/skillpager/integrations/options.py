"""What every adapter is told: a pager, and the keyword arguments of `SkillPager.page`.

All frameworks bring pydantic; adapters that are pydantic models inherit the fields, so that a misspelled
name is refused and options can be written down and configured as the framework does it.
"""

from functools import cache
from typing import TypedDict, cast

from pydantic import BaseModel, ConfigDict, Field

from skillpager.pager import SkillPager


class PageKeywords(TypedDict, total=False):
    """The keyword arguments of `SkillPager.page`, a strategy by its name alone."""

    max_nodes: int | None
    max_tokens: int | None
    sufficiency: float | None
    strategy: str | None
    mmr_lambda: float | None
    scope: str | None
    style: str | None
    show: str


class PagerOption(BaseModel):
    """The pager of an adapter.

    Attributes:
        pager: Pages; None for the one that all adapters of the process share. It is not written down with
            the adapter.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    pager: SkillPager | None = Field(default=None, exclude=True, repr=False)


class PageOptions(PagerOption):
    """The keyword arguments of `SkillPager.page` as fields, and the pager.

    Attributes:
        max_nodes: Most nodes to pick.
        max_tokens: Ceiling on a page's tokens, markers included.
        sufficiency: Estimated chance of holding all that the query needs at which a page ends.
        strategy: A name of `docs/strategies.md`.
        mmr_lambda: Weight of relevance against redundancy, 0 to 1.
        scope: `skill` or `body`.
        style: `marked`, `plain` or `xml`.
        show: Command or tool that reads omitted nodes, named by the markers of a page.
    """

    max_nodes: int | None = None
    max_tokens: int | None = None
    sufficiency: float | None = None
    strategy: str | None = None
    mmr_lambda: float | None = None
    scope: str | None = None
    style: str | None = None
    show: str = ""

    def keywords(self) -> PageKeywords:
        """Return the keyword arguments for `SkillPager.page`."""
        return cast(PageKeywords, {name: getattr(self, name) for name in PageKeywords.__annotations__})


@cache
def shared_pager() -> SkillPager:
    """Return the pager that adapters share when they are given none, with the settings of the process."""
    return SkillPager()

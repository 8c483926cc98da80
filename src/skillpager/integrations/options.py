"""Options of every adapter, as pydantic fields: a pager, and the options of a page.

Adapters that are pydantic models inherit the fields: misspelled names are refused, and the framework can save
and configure the options in its own way.
"""

from functools import cache
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from skillpager.pager import SkillPager
from skillpager.types import PageOptions


class PagerOption(BaseModel):
    """The pager of an adapter; None for the one that all adapters share. It is not saved with the adapter."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    pager: SkillPager | None = Field(default=None, exclude=True, repr=False)


class PageFields(PagerOption):
    """The pager and the options of `types.PageOptions` as fields, a strategy by its name.

    `known` is not among them, because it changes from call to call; nor is `folder`: a path helps only an
    agent that reads files with tools of its own, and its instructions can name one.
    """

    max_nodes: int | None = None
    max_tokens: int | None = None
    sufficiency: float | None = None
    fill: bool | None = None
    strategy: str | None = None
    mmr_lambda: float | None = None
    scope: str | None = None
    style: str | None = None
    show: str = ""

    def page_options(self) -> PageOptions:
        """Return the keyword arguments for `SkillPager.page`."""
        names = PageOptions.__annotations__.keys() & PageFields.model_fields.keys()
        return cast(PageOptions, {name: getattr(self, name) for name in names})


def page_fields(pager: SkillPager | None, options: PageOptions) -> PageFields:
    """Return the keyword arguments of an adapter as fields; raise `ValueError` for a wrong name or type."""
    return PageFields.model_validate({"pager": pager, **options})


@cache
def shared_pager() -> SkillPager:
    """Return the pager that adapters without one share; it has the settings of the process."""
    return SkillPager()

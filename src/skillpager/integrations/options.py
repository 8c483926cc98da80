"""Options of every adapter: a pager, and the options of a page.

All frameworks bring pydantic; adapters that are pydantic models inherit the fields, so that a misspelled
name is refused and options can be written down and configured as the framework does it.
"""

from functools import cache
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from skillpager.pager import SkillPager
from skillpager.types import PageOptions


class PagerOption(BaseModel):
    """The pager of an adapter.

    Attributes:
        pager: Makes the pages; None for the one that all adapters of the process share. It is not written
            down with the adapter.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    pager: SkillPager | None = Field(default=None, exclude=True, repr=False)


class PageFields(PagerOption):
    """The options of `types.PageOptions` as fields, a strategy by its name, and the pager.

    `known` is no option of an adapter, because it changes from call to call.
    """

    max_nodes: int | None = None
    max_tokens: int | None = None
    sufficiency: float | None = None
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
    """Return the fields that an adapter was given as keyword arguments.

    Raises:
        ValueError: An option is unknown or of a wrong type.
    """
    return PageFields.model_validate({"pager": pager, **options})


@cache
def shared_pager() -> SkillPager:
    """Return the pager that adapters share when they are given none, with the settings of the process."""
    return SkillPager()

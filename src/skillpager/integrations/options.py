"""Options of every adapter, as pydantic fields: a pager, and the options of a page.

Adapters that are pydantic models inherit the fields: misspelled names are refused, and the framework can save
and configure the options in its own way.
"""

import os
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TypedDict, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from skillpager.library import Library, LibraryPageOptions
from skillpager.library.several.choosing import MAX_SKILLS
from skillpager.pager import SkillPager
from skillpager.types import PageOptions

# libraries that are kept, with what they know of their skills
MAX_LIBRARIES = 8


class PagerOption(BaseModel):
    """The pager of an adapter; None for the one that all adapters share. It is not saved with the adapter."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    pager: SkillPager | None = Field(default=None, exclude=True, repr=False)


class SharedFields(PagerOption):
    """The pager, and the options of pages of one skill and of several alike, a strategy by its name."""

    max_tokens: int | None = None
    sufficiency: float | None = None
    fill: bool | None = None
    strategy: str | None = None
    scope: str | None = None
    style: str | None = None
    show: str = ""


class PageFields(SharedFields):
    """The pager and the options of `types.PageOptions` as fields, a strategy by its name.

    `known` is not among them, because it changes from call to call; nor is `folder`: a path helps only an
    agent that reads files with tools of its own, and its instructions can name one.
    """

    max_nodes: int | None = None
    mmr_lambda: float | None = None

    def page_options(self) -> PageOptions:
        """Return the keyword arguments for `SkillPager.page`."""
        names = PageOptions.__annotations__.keys() & PageFields.model_fields.keys()
        return cast(PageOptions, {name: getattr(self, name) for name in names})


def page_fields(pager: SkillPager | None, options: PageOptions) -> PageFields:
    """Return the keyword arguments of an adapter as fields; raise `ValueError` for a wrong name or type."""
    return PageFields.model_validate({"pager": pager, **options})


class LibraryOptions(TypedDict, total=False):
    """Options of a page from several skills, a strategy by its name; see `library.LibraryPageOptions`.

    `show` is text: the command that reads omitted lines when a skill's name and an address follow it.
    """

    max_skills: int
    max_tokens: int | None
    sufficiency: float | None
    fill: bool | None
    strategy: str | None
    scope: str | None
    style: str | None
    show: str


class LibraryFields(SharedFields):
    """The pager, the folders of a library, and the options of its pages as fields."""

    folders: tuple[str, ...] | None = None
    max_skills: int = MAX_SKILLS

    @field_validator("folders", mode="before")
    @classmethod
    def _as_texts(cls, folders: Sequence[str | Path] | None) -> tuple[str, ...] | None:
        # frameworks save no paths
        return None if folders is None else tuple(os.fspath(folder) for folder in folders)

    @property
    def library(self) -> Library:
        """The skills of the folders."""
        return library_of(self.pager or shared_pager(), self.folders)

    def page_options(self) -> LibraryPageOptions:
        """Return the keyword arguments for `Library.page`."""
        names = LibraryOptions.__annotations__.keys() - {"show"}
        options = cast(LibraryPageOptions, {name: getattr(self, name) for name in names})
        if self.show:
            options["show"] = lambda skill: f"{self.show} {skill.name}"
        return options


def library_fields(
    folders: Sequence[str | Path] | None, pager: SkillPager | None, options: LibraryOptions
) -> LibraryFields:
    """Return the keyword arguments of an adapter as fields; raise `ValueError` for a wrong name or type."""
    return LibraryFields.model_validate({"folders": folders, "pager": pager, **options})


@lru_cache(maxsize=MAX_LIBRARIES)
def library_of(pager: SkillPager, folders: tuple[str, ...] | None) -> Library:
    """Return a library, the same for the same pager and folders: it remembers what it has read of skills."""
    return Library(pager, None if folders is None else [Path(folder) for folder in folders])


@cache
def shared_pager() -> SkillPager:
    """Return the pager that adapters without one share; it has the settings of the process."""
    return SkillPager()

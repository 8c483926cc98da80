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

from skillpager.errors import SettingsError
from skillpager.library import Library, LibraryPageOptions, settings_filter
from skillpager.library.several.choosing import MAX_SKILLS
from skillpager.pager import SkillPager
from skillpager.settings import NO_LIBRARY, check_library
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
    """The pager, the folders of a library, its published skills, and the options of its pages as fields.

    Attributes:
        folders: Folders to search for skills; None for those of the settings and the conventional ones.
        published: Library in the pager's PostgreSQL store, whose skills are offered beside those of the
            folders; None for the one of the settings, `none` for none.
    """

    folders: tuple[str, ...] | None = None
    published: str | None = None
    max_skills: int = MAX_SKILLS

    @field_validator("folders", mode="before")
    @classmethod
    def _as_texts(cls, folders: Sequence[str | Path] | None) -> tuple[str, ...] | None:
        # frameworks save no paths
        return None if folders is None else tuple(os.fspath(folder) for folder in folders)

    @field_validator("published")
    @classmethod
    def _as_name(cls, published: str | None) -> str | None:
        return None if published is None else check_library(published)

    @property
    def library(self) -> Library:
        """The skills of the folders and of the store's library."""
        return library_of(self.pager or shared_pager(), self.folders, self.published)

    def page_options(self) -> LibraryPageOptions:
        """Return the keyword arguments for `Library.page`."""
        names = LibraryOptions.__annotations__.keys() - {"show"}
        options = cast(LibraryPageOptions, {name: getattr(self, name) for name in names})
        if self.show:
            options["show"] = lambda skill: f"{self.show} {skill.name}"
        return options


def library_fields(
    folders: Sequence[str | Path] | None,
    published: str | None,
    pager: SkillPager | None,
    options: LibraryOptions,
) -> LibraryFields:
    """Return the keyword arguments of an adapter as fields; raise `ValueError` for a wrong name or type."""
    given = {"folders": folders, "published": published, "pager": pager, **options}
    return LibraryFields.model_validate(given)


@lru_cache(maxsize=MAX_LIBRARIES)
def library_of(pager: SkillPager, folders: tuple[str, ...] | None, published: str | None) -> Library:
    """Return a library, the same for the same arguments: it remembers what it has read of skills.

    As with the command line, the settings `trusted`, `licences` and `library` hold.

    Raises:
        SettingsError: `published` names a library, and the store has none.
    """
    name = published or pager.settings.library
    library = Library(
        pager,
        None if folders is None else [Path(folder) for folder in folders],
        keep=settings_filter(pager.settings),
        published=None if name == NO_LIBRARY else name,
    )
    if published not in (None, NO_LIBRARY) and not library.place:
        raise SettingsError(
            f"published is {published!r}, but the store has no libraries: name a PostgreSQL database with "
            'SKILLPAGER_STORE or `pager=SkillPager(store="postgresql://…")`.'
        )
    return library


@cache
def shared_pager() -> SkillPager:
    """Return the pager that adapters without one share; it has the settings of the process."""
    return SkillPager()

"""Options of every adapter, as pydantic fields, and the records that these retrieve.

Adapters that are pydantic models inherit the fields, others hold them (`HasOptions`): misspelled names are
refused, and the framework can save and configure the options in its own way.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from skillpager.errors import SettingsError
from skillpager.integrations.records import (
    Record,
    index_sources,
    library_records,
    page_records,
    skill_of,
)
from skillpager.library import Library, LibraryPageOptions, settings_filter
from skillpager.library.library_page import MAX_SKILLS
from skillpager.pager import SkillPager
from skillpager.settings import NO_LIBRARY, check_library
from skillpager.types import Page, PageOptions

# libraries that are kept, with what they know of their skills
MAX_LIBRARIES = 8


class PagerOption(BaseModel):
    """The pager of an adapter; None for the one that all adapters share. It is not saved with the adapter."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    pager: SkillPager | None = Field(default=None, exclude=True, repr=False)

    @property
    def chosen_pager(self) -> SkillPager:
        """The pager, or the one that all adapters share."""
        return self.pager or shared_pager()


Options = TypeVar("Options", bound=PagerOption)


class HasOptions(Generic[Options]):
    """An adapter that is not a pydantic model itself; each of its options is also an attribute."""

    options: Options

    def __getattr__(self, name: str) -> Any:
        """Return an option."""
        options = self.__dict__.get("options")
        if options is not None and name in type(options).model_fields:
            return getattr(options, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class IndexOptions(PagerOption):
    """The pager with which many skills are indexed, and where the work is done.

    Attributes:
        jobs: Number of workers; None for one for each processor.
        ray: Address of a Ray cluster, `auto` or `local`; None to work on this machine.
    """

    jobs: int | None = None
    ray: str | None = None

    def index(self, sources: Sequence[str | Path]) -> tuple[list[Record], dict[str, str]]:
        """Return a record for each skill that is indexed now, its entry file, and the errors by place."""
        return index_sources(self.chosen_pager, sources, jobs=self.jobs, ray=self.ray)


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

    def page_of(self, text: str, metadata: Mapping[str, object], query: str) -> Page | None:
        """Return the page of a Markdown document with metadata; None for a blank text."""
        skill = skill_of(self.chosen_pager, text, metadata)
        return None if skill is None else self.chosen_pager.page(skill, query, **self.page_options())


class SkillOptions(PageOptions, total=False):
    """Keyword arguments of a retriever over one skill: the pager, and options of its page.

    `as_page` returns the page with headings and marks as one document.
    """

    as_page: bool
    pager: SkillPager | None


class SkillFields(PageFields):
    """A skill, and how it is paged.

    Attributes:
        skill: A path, or Markdown text (a string with a line break).
        as_page: Return the page with headings and marks as one document.
    """

    skill: str | Path
    as_page: bool = False

    @field_validator("skill")
    @classmethod
    def _as_text(cls, skill: str | Path) -> str:
        return os.fspath(skill)  # frameworks save no paths

    def records(self, query: str) -> list[Record]:
        """Return the page of the skill: its nodes in document order, or as one record."""
        index = self.chosen_pager.index(self.skill, scope=self.scope)
        page = self.chosen_pager.page(index, query, **self.page_options())
        return page_records(index, page, as_page=self.as_page)


class LibraryOptions(TypedDict, total=False):
    """Keyword arguments of a retriever over a library: its skills, and options of `Library.page`.

    Attributes are those of `LibraryFields` and `library.LibraryPageOptions`, but `show` is text: the command
    that reads omitted lines when a skill's name and an address follow it. A strategy is named.
    """

    published: str | None
    as_page: bool
    pager: SkillPager | None
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
        as_page: Return the page, with the names of its skills, as one document.
    """

    folders: tuple[str, ...] | None = None
    published: str | None = None
    as_page: bool = False
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
        return library_of(self.chosen_pager, self.folders, self.published)

    def page_options(self) -> LibraryPageOptions:
        """Return the keyword arguments for `Library.page`."""
        names = LibraryPageOptions.__annotations__.keys() & LibraryFields.model_fields.keys() - {"show"}
        options = cast(LibraryPageOptions, {name: getattr(self, name) for name in names})
        if self.show:
            options["show"] = lambda skill: f"{self.show} {skill.name}"
        return options

    def records(self, query: str) -> list[Record]:
        """Return the page of the skills that a query needs: its nodes, or the page; none if none fits."""
        library = self.library
        page = library.page(query, **self.page_options())
        return library_records(library, page, scope=self.scope, as_page=self.as_page)


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

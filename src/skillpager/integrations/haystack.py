"""Haystack: retrievers over one skill and over a library, and a store of skills for `SkillToolset`."""

import base64
import mimetypes
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, Unpack

from skillpager.display_text import one_line
from skillpager.errors import NodeNotFoundError, SettingsError, SkillError, UnknownSkillError, require_extra

require_extra("haystack.skill_stores.types", extra="haystack", purpose="skillpager.integrations.haystack")

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.dataclasses import FileContent, ImageContent, SkillInfo

from skillpager.files import SKIPPED_FOLDERS
from skillpager.integrations.options import (
    HasOptions,
    IndexOptions,
    LibraryFields,
    LibraryOptions,
    Options,
    SkillFields,
    SkillOptions,
)
from skillpager.integrations.records import Record
from skillpager.library import FoundSkill, Library
from skillpager.pager import SkillPager
from skillpager.parsing.skill import ENTRY_FILE, MAX_DESCRIPTION

# longest recommended body of a skill (Agent Skills specification)
DEFAULT_MAX_TOKENS = 5_000

READ_TOOL = "read_skill_file"


class _Saved(HasOptions[Options]):
    """A component with options, which it writes into a pipeline's file and reads from it."""

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dict for a pipeline's file.

        Raises:
            SettingsError: It has its own pager.
        """
        if self.options.pager is not None:
            raise SettingsError(
                "A pipeline with its own pager cannot be saved: leave pager out and choose its parts with "
                "the settings SKILLPAGER_*."
            )
        return default_to_dict(self, **self.options.model_dump(mode="json", exclude_defaults=True))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the component that `to_dict` wrote."""
        return default_from_dict(cls, data)


@component
class SkillPagerRetriever(_Saved[SkillFields]):
    """Retrieves the page of a skill: a document for each of its nodes, in document order.

    `meta` holds the node's type, file, lines, heading path, tokens and scores; `score` is the relevance.
    """

    def __init__(self, skill: str | Path, **options: Unpack[SkillOptions]) -> None:
        """Choose a skill and how it is paged.

        Args:
            skill: A path, or Markdown text (a string with a line break).
            **options: See `SkillOptions`.

        Raises:
            ValueError: An option is unknown or of a wrong type.
        """
        self.options = SkillFields.model_validate({"skill": skill, **options})

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, max_tokens: int | None = None, max_nodes: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the page for a query as `{"documents": [...]}`; limits given here replace the component's.

        Raises:
            SkillPagerError: As for `SkillPager.page`.
        """
        return _retrieved(self.options, query, max_tokens=max_tokens, max_nodes=max_nodes)


@component
class SkillLibraryRetriever(_Saved[LibraryFields]):
    """Retrieves the page of the skills that a query needs, among all: a document for each of its nodes.

    `meta` holds the same as with `SkillPagerRetriever`, and the skill's `chance`. If no skill
    fits there is no document.
    """

    def __init__(
        self, folders: Sequence[str | Path] | None = None, **options: Unpack[LibraryOptions]
    ) -> None:
        """Choose the skills and how they are paged; nothing is read yet.

        Args:
            folders: Folders to search for skills; None for those of the settings and the conventional ones.
            **options: See `LibraryOptions`.

        Raises:
            ValueError: An option is unknown or of a wrong type.
        """
        self.options = LibraryFields.model_validate({"folders": folders, **options})

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, max_tokens: int | None = None, max_skills: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the page for a query as `{"documents": [...]}`; limits given here replace the component's.

        Raises:
            SkillPagerError: As for `Library.page`.
        """
        return _retrieved(self.options, query, max_tokens=max_tokens, max_skills=max_skills)


@component
class SkillIndexer(_Saved[IndexOptions]):
    """Indexes many skills ahead of their first use, in parallel: on this machine or on a Ray cluster."""

    def __init__(
        self, *, jobs: int | None = None, ray: str | None = None, pager: SkillPager | None = None
    ) -> None:
        """Choose where the work is done.

        Args:
            jobs: Number of workers; None for one for each processor.
            ray: Address of a Ray cluster, `auto` or `local`; None to work on this machine.
            pager: Its encoder, classifier and store are used; None for the one that all adapters share.
        """
        self.options = IndexOptions(jobs=jobs, ray=ray, pager=pager)

    @component.output_types(documents=list[Document], failed=dict[str, str])
    def run(self, sources: list[str | Path]) -> dict[str, object]:
        """Return a document for each indexed skill, its entry file, and the message for each that failed.

        Args:
            sources: Folders, Markdown files, archives, tables and addresses, as for `skillpager index`.

        Raises:
            SkillPagerError: A fault that would fail every skill, such as a wrong setting.
        """
        records, failed = self.options.index(sources)
        return {"documents": _documents(records), "failed": failed}


def _retrieved(
    options: SkillFields | LibraryFields, query: str, **limits: int | None
) -> dict[str, list[Document]]:
    changes = {name: value for name, value in limits.items() if value is not None}
    return {"documents": _documents(options.model_copy(update=changes).records(query))}


def _documents(records: Sequence[Record]) -> list[Document]:
    return [
        Document(id=record.id, content=record.text, meta=dict(record.metadata), score=record.score)
        for record in records
    ]


class UnknownSkillKeyError(UnknownSkillError, KeyError):
    """No skill has this name; a `KeyError`, as Haystack's protocol requires."""

    __str__ = Exception.__str__  # a KeyError shows its message as a quoted string


class SkillFileNotFoundError(NodeNotFoundError, FileNotFoundError):
    """A skill has neither this file nor these nodes; a `FileNotFoundError`, as the protocol requires."""


class SkillPagerStore(_Saved[LibraryFields]):
    """A `haystack.skill_stores.types.SkillStore` of the skills of a library, for `SkillToolset`.

    `load_skill` returns the whole skill if it fits `max_tokens`, else its page for its own description. The
    marks of that page name `read_skill_file`, which reads files, nodes (`n12-n16`) and lines (`L30-57`).
    """

    def __init__(
        self,
        folders: Sequence[str | Path] | None = None,
        *,
        published: str | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        pager: SkillPager | None = None,
    ) -> None:
        """Choose the skills; nothing is read yet.

        Args:
            folders: Folders to search for skills; None for those of the settings and the conventional ones.
            published: Library in the pager's PostgreSQL store, whose skills are offered, too; None for the
                one of the settings, `none` for none. Of these the Markdown files alone can be read.
            max_tokens: Ceiling on the tokens of a skill that `load_skill` returns.
            pager: Makes the pages; None for the one that all adapters share.
        """
        given = {"folders": folders, "published": published, "max_tokens": max_tokens, "pager": pager}
        self.options = LibraryFields.model_validate(given)

    @cached_property
    def _library(self) -> Library:
        return self.options.library

    def list_skills(self) -> dict[str, SkillInfo]:
        """Return the skills by name."""
        return {
            skill.name: SkillInfo(name=skill.name, description=one_line(skill.description, MAX_DESCRIPTION))
            for skill in self._library.skills(for_model=True)
        }

    def load_skill(self, name: str) -> tuple[str, list[str]]:
        """Return a skill, or its page if it is too long, and the paths of its other files.

        Raises:
            UnknownSkillKeyError: The skill is unknown.
            SkillPagerError: As for `SkillPager.page`.
        """
        skill = self._skill(name)
        page = self._library.pager.page(
            self._library.index(name, scope="body"),  # linked files are read by their paths
            skill.description or skill.name,
            max_tokens=self.options.max_tokens,
            fill=True,
            show=f"{READ_TOOL} {skill.name}",
        )
        return page.text, _files(skill)

    def read_skill_file(self, name: str, path: str) -> str | ImageContent | FileContent:
        """Return a file of a skill by its path in the skill's folder, or nodes or lines by addresses.

        Raises:
            UnknownSkillKeyError: The skill is unknown.
            SkillFileNotFoundError: It has neither this file nor these nodes; the message lists the files.
            SkillError: The file is too large, or not text, image or PDF.
            SkillPagerError: As for `SkillPager.expand`.
        """
        skill = self._skill(name)
        files = _files(skill)
        pager = self._library.pager
        if path in (*files, ENTRY_FILE):
            return _content(skill, path, max_bytes=pager.settings.max_bytes)
        try:
            return pager.expand(self._library.index(name, scope="body"), path).text
        except NodeNotFoundError as error:
            raise SkillFileNotFoundError(
                f"{path!r} is not a file of skill {name!r}, which has {', '.join(files) or 'none'}. {error}"
            ) from error

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the library, which holds a lock; a copy searches for skills itself."""
        return {name: value for name, value in self.__dict__.items() if name != "_library"}

    def _skill(self, name: str) -> FoundSkill:
        try:
            return self._library.skill(name, for_model=True)
        except UnknownSkillError as error:
            raise UnknownSkillKeyError(str(error)) from error


def _files(skill: FoundSkill) -> list[str]:
    """Return a skill's files except its entry file and links to places outside of its folder."""
    if skill.published is not None:
        return [file.path for file in skill.read(scope="skill").files[1:]]
    folder = skill.path
    root = folder.resolve()
    found = [path for path in folder.rglob("*") if path.is_file() and path.resolve().is_relative_to(root)]
    files = [path.relative_to(folder) for path in found if path != folder / ENTRY_FILE]
    return sorted(path.as_posix() for path in files if SKIPPED_FOLDERS.isdisjoint(path.parts))


def _content(skill: FoundSkill, name: str, *, max_bytes: int) -> str | ImageContent | FileContent:
    """Return a file of a skill; `name` is one that `_files` returns, or the entry file."""
    if skill.published is not None:
        entry, *others = skill.read(scope="skill").files
        return next((file.text for file in others if file.path == name), entry.text)
    path = skill.path / name
    size = path.stat().st_size
    if size > max_bytes:
        raise SkillError(f"{path} has {size} bytes, more than the limit of {max_bytes}.")
    data = path.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or ""
    encoded = base64.b64encode(data).decode("ascii")
    if kind == "application/pdf":
        return FileContent(encoded, mime_type=kind, filename=path.name, validation=False)
    if kind.startswith("image/"):
        return ImageContent(encoded, mime_type=kind, validation=False)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SkillError(f"{path} is not UTF-8 text, an image or a PDF: it cannot be read.") from error

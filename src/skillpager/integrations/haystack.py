"""Haystack: retrievers over one skill and over a library, and a store of skills for `SkillToolset`."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from skillpager.display_text import one_line
from skillpager.errors import NodeNotFoundError, SettingsError, SkillError, UnknownSkillError, require_extra

require_extra("haystack.skill_stores.types", extra="haystack", purpose="skillpager.integrations.haystack")

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.dataclasses import SkillInfo

from skillpager.files import SKIPPED_FOLDERS, read_bounded
from skillpager.integrations.retrieval import LibraryFields, SkillFields
from skillpager.library import FoundSkill, Library
from skillpager.pager import SkillPager
from skillpager.parsing.skill import ENTRY_FILE, MAX_DESCRIPTION

# longest recommended body of a skill (Agent Skills specification)
DEFAULT_MAX_TOKENS = 5_000

READ_TOOL = "read_skill_file"


class _Saved:
    """A component with options, which it writes into a pipeline's file and reads from it."""

    options: SkillFields | LibraryFields

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

    def _retrieve(self, query: str, **limits: int | None) -> dict[str, list[Document]]:
        changes = {name: value for name, value in limits.items() if value is not None}
        records = self.options.model_copy(update=changes).records(query)
        return {
            "documents": [
                Document(id=record.id, content=record.text, meta=record.metadata, score=record.score)
                for record in records
            ]
        }


@component
class SkillPagerRetriever(_Saved):
    """Retrieves the page of a skill: a document for each of its nodes, in document order.

    `meta` holds the node's type, file, lines, heading path, tokens and scores; `score` is the relevance.

    Args:
        skill: A path, or Markdown text (a string with a line break).
        **options: Fields of `SkillFields`; an unknown one, or one of a wrong type, is a `ValueError`.
    """

    def __init__(self, skill: str | Path, **options: Any) -> None:
        self.options = SkillFields(skill=skill, **options)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, max_tokens: int | None = None, max_nodes: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the page for a query as `{"documents": [...]}`; limits given here replace the component's.

        Raises:
            SkillPagerError: As for `SkillPager.page`.
        """
        return self._retrieve(query, max_tokens=max_tokens, max_nodes=max_nodes)


@component
class SkillLibraryRetriever(_Saved):
    """Retrieves the page of the skills that a query needs, among all: a document for each of its nodes.

    `meta` holds the same as with `SkillPagerRetriever`, and the skill's `chance`. If no skill
    fits there is no document. Nothing is read before the first query.

    Args:
        folders: Folders to search for skills; None for those of the settings and the conventional ones.
        **options: Fields of `LibraryFields`; an unknown one, or one of a wrong type, is a `ValueError`.
    """

    def __init__(self, folders: Sequence[str | Path] | None = None, **options: Any) -> None:
        self.options = LibraryFields.model_validate({"folders": folders, **options})

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, max_tokens: int | None = None, max_skills: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the page for a query as `{"documents": [...]}`; limits given here replace the component's.

        Raises:
            SkillPagerError: As for `Library.page`.
        """
        return self._retrieve(query, max_tokens=max_tokens, max_skills=max_skills)


class UnknownSkillKeyError(UnknownSkillError, KeyError):
    """No skill has this name; a `KeyError`, as Haystack's protocol requires."""

    __str__ = Exception.__str__  # a KeyError shows its message as a quoted string


class SkillFileNotFoundError(NodeNotFoundError, FileNotFoundError):
    """A skill has neither this file nor these nodes; a `FileNotFoundError`, as the protocol requires."""


class SkillPagerStore(_Saved):
    """A `haystack.skill_stores.types.SkillStore` of the skills of a library, for `SkillToolset`.

    `load_skill` returns the whole skill if it fits `max_tokens`, else its page for its own description. The
    marks of that page name `read_skill_file`, which reads text files, nodes (`n12-n16`) and lines (`L30-57`).

    Args:
        folders: Folders to search for skills; None for those of the settings and the conventional ones.
        published: Library in the pager's PostgreSQL store, whose skills are offered, too; None for the
            one of the settings, `none` for none. Of these the Markdown files alone can be read.
        max_tokens: Ceiling on the tokens of a skill that `load_skill` returns.
        pager: Makes the pages; None for the one that all adapters share.
    """

    def __init__(
        self,
        folders: Sequence[str | Path] | None = None,
        *,
        published: str | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        pager: SkillPager | None = None,
    ) -> None:
        given = {"folders": folders, "published": published, "max_tokens": max_tokens, "pager": pager}
        self.options: LibraryFields = LibraryFields.model_validate(given)

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

    def read_skill_file(self, name: str, path: str) -> str:
        """Return a text file of a skill by its path in the skill's folder, or nodes or lines by addresses.

        Raises:
            UnknownSkillKeyError: The skill is unknown.
            SkillFileNotFoundError: It has neither this file nor these nodes; the message lists the files.
            SkillError: The file is too large, or not text.
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


def _content(skill: FoundSkill, name: str, *, max_bytes: int) -> str:
    """Return a file of a skill; `name` is one that `_files` returns, or the entry file."""
    if skill.published is not None:
        entry, *others = skill.read(scope="skill").files
        return next((file.text for file in others if file.path == name), entry.text)
    data = read_bounded(skill.path / name, max_bytes)
    try:
        if len(data) > max_bytes:
            raise ValueError(f"it has more than {max_bytes} bytes")
        return data.decode("utf-8")
    except ValueError as error:
        raise SkillError(f"{skill.path / name} cannot be read as text: {error}.") from error

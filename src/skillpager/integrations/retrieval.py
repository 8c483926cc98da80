"""Options of the retrievers of all frameworks, as pydantic fields, and the records that they retrieve.

Adapters that are pydantic models inherit the fields, others hold them as `options`: misspelled names are
refused, and the framework can save and configure the options in its own way. Metadata of a node is flat, text
and numbers only, because vector stores accept nothing else.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, field_validator

from skillpager.json_types import to_json
from skillpager.library import Library, LibraryPageOptions, settings_filter
from skillpager.library.library_page import MAX_SKILLS
from skillpager.pager import SkillPager
from skillpager.settings import NO_LIBRARY
from skillpager.types import Page, PageOptions, Pick, SkillIndex, Skip

# libraries that are kept, with what they know of their skills
MAX_LIBRARIES = 8
PATH_SEPARATOR = " > "
# length of the digests that distinguish versions of a skill, and pages
DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True)
class Record:
    """A node of a page, or a whole page, from which an adapter makes its framework's document.

    `id` is unique among skills, versions and pages, `source` that of the skill. `score` is the cosine of
    query and node, of a page its estimated sufficiency. Offsets of a node are those in its file.
    """

    id: str
    text: str
    metadata: dict[str, object]
    score: float | None
    source: str
    start: int | None = None
    end: int | None = None


class SharedFields(BaseModel):
    """The pager, and the options of pages of one skill and of several alike, a strategy by its name.

    Attributes:
        pager: None for the one that all adapters share. It is not saved with the adapter.
        as_page: Return the page, with headings and marks, as one document.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    pager: SkillPager | None = Field(default=None, exclude=True, repr=False)
    as_page: bool = False
    max_tokens: int | None = None
    sufficiency: float | None = None
    fill: bool | None = None
    strategy: str | None = None
    scope: str | None = None
    style: str | None = None
    show: str = ""
    force: bool = False
    context: str = ""

    @property
    def chosen_pager(self) -> SkillPager:
        """The pager, or the one that all adapters share."""
        return self.pager or shared_pager()


class PageFields(SharedFields):
    """The options of `types.PageOptions` as fields.

    `known` is not among them, because it changes from call to call; nor is `folder`: a path helps only an
    agent that reads files with tools of its own, and its instructions can name one.
    """

    max_nodes: int | None = None
    mmr_lambda: float | None = None

    def page_options(self) -> PageOptions:
        """Return the keyword arguments for `SkillPager.page`."""
        names = PageOptions.__annotations__.keys() & PageFields.model_fields.keys()
        return cast(PageOptions, {name: getattr(self, name) for name in names})


class SkillFields(PageFields):
    """A skill, and how it is paged.

    Attributes:
        skill: A path, or Markdown text (a string with a line break).
    """

    skill: str | Path

    @field_validator("skill")
    @classmethod
    def _as_text(cls, skill: str | Path) -> str:
        return os.fspath(skill)  # frameworks save no paths

    def records(self, query: str) -> list[Record]:
        """Return the page of the skill: its nodes in document order, or as one record."""
        index = self.chosen_pager.index(self.skill, scope=self.scope)
        page = self.chosen_pager.page(index, query, **self.page_options())
        if not self.as_page:
            return node_records(index, page)
        left_out = {"text", "nodes", "selection"}
        metadata: dict[str, object] = {"skill": index.skill.name}
        metadata |= {key: value for key, value in to_json(page).items() if key not in left_out}
        metadata["nodes"] = [node.id for node in page.nodes]
        return [_page_record(page.text, metadata, page.sufficiency, _source(index.skill.name, index.key))]


class LibraryFields(SharedFields):
    """The folders of a library, its published skills, and the options of its pages as fields.

    Attributes:
        folders: Folders to search for skills; None for those of the settings and the conventional ones.
        max_skills: Most skills of a page.
    """

    folders: tuple[str, ...] | None = None
    max_skills: int = MAX_SKILLS

    @field_validator("folders", mode="before")
    @classmethod
    def _as_texts(cls, folders: Sequence[str | Path] | None) -> tuple[str, ...] | None:
        return None if folders is None else tuple(os.fspath(folder) for folder in folders)

    @property
    def library(self) -> Library:
        """The skills of the folders and of the store's library."""
        return library_of(self.chosen_pager, self.folders)

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
        if not page.parts:
            return []
        if not self.as_page:
            records: list[Record] = []
            for part in page.parts:
                index = library.index(part.skill.name, scope=self.scope)
                records += node_records(index, part.page, chance=part.chance)
            return records
        metadata: dict[str, object] = {
            "skill": ", ".join(part.skill.name for part in page.parts),
            "chance": max(part.chance for part in page.parts),
            "complete": all(part.page.complete for part in page.parts),
        }
        shared = ("tokens", "full_tokens", "tokens_exact", "sufficiency", "covered")
        metadata |= {name: getattr(page, name) for name in shared}
        source = "+".join(_source(part.skill.name, part.key) for part in page.parts)
        return [_page_record(page.text, metadata, page.sufficiency, source)]


@lru_cache(maxsize=MAX_LIBRARIES)
def library_of(pager: SkillPager, folders: tuple[str, ...] | None) -> Library:
    """Return a library, the same for the same arguments: it remembers what it has read of skills.

    As with the command line, the settings `trusted`, `licences` and `library` hold.
    """
    name = pager.settings.library
    published = None if name == NO_LIBRARY else name
    return Library(pager, folders, keep=settings_filter(pager.settings), published=published)


@cache
def shared_pager() -> SkillPager:
    """Return the pager that adapters without one share; it has the settings of the process."""
    return SkillPager()


def node_records(index: SkillIndex, page: Page, **more: object) -> list[Record]:
    """Return a record for every node of a page, in document order, with its scores and more metadata."""
    # nodes of a small gap that is shown were skipped, not picked
    selection, skill = page.selection, index.skill
    entries: list[Pick | Skip] = [*selection.picks, *selection.skipped] if selection else []
    found = {entry.node.id: entry for entry in entries}
    records = []
    for node in page.nodes:
        known = {key: value for key, value in to_json(node).items() if key != "text"}
        metadata = {"skill": skill.name, **known, "heading_path": PATH_SEPARATOR.join(node.heading_path)}
        if skill.root:
            metadata["source"] = str(skill.root / node.span.file)
        if selection and (entry := found.get(node.id)):
            metadata |= {"picked": isinstance(entry, Pick), "score_kind": str(selection.score_kind)}
            metadata |= {name: getattr(entry, name) for name in ("relevance", "redundancy", "marginal")}
            metadata |= {"rank": entry.rank} if isinstance(entry, Pick) else {}
        source = _source(skill.name, index.key)
        score = cast("float | None", metadata.get("relevance"))
        place = node.span.start, node.span.end
        records.append(Record(f"{source}/{node.id}", node.text, metadata | more, score, source, *place))
    return records


def _page_record(text: str, metadata: dict[str, object], sufficiency: float | None, source: str) -> Record:
    digest = sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
    return Record(f"{source}/page-{digest}", text, metadata, sufficiency, source)


def _source(name: str, key: str) -> str:
    return f"{name}@{key[:DIGEST_CHARS]}"

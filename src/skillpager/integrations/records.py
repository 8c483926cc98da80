"""Pages as the records that every framework has in some form: id, text, metadata, score.

Metadata of a node is flat, texts and numbers alone, because vector stores take nothing else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from skillpager.integrations.options import PageOptions, shared_pager
from skillpager.output.json import JsonObject, context_json, node_json
from skillpager.pager import SkillPager
from skillpager.parsing.skill import MAX_NAME, is_blank, skill_from_text
from skillpager.types import Node, Page, Pick, Skill, SkillIndex, Skip

PATH_SEPARATOR = " > "

# where other tools put the name of a document, the most telling first
TITLE_KEYS = ("name", "title", "file_name", "source", "file_path")

# letters of a digest that tell versions of a skill, and pages, apart
DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True)
class Record:
    """A node of a page, or a whole page, for a framework to take over.

    Attributes:
        id: Unique among skills, their versions and their pages.
        text: What the agent is to read.
        metadata: What is known about it; JSON-ready.
        score: Cosine of query and node; for a page the estimated chance that it suffices, or None.
        source: Id of the skill it comes from.
        start: Offset of its first character in its file; None for a page.
        end: Offset behind its last character; None for a page.
    """

    id: str
    text: str
    metadata: JsonObject
    score: float | None
    source: str
    start: int | None = None
    end: int | None = None


def retrieve(options: PageOptions, skill: str | Path, query: str, *, as_page: bool) -> list[Record]:
    """Return the page of a skill: its nodes in document order, or the page as one record.

    Args:
        options: Pager and keyword arguments of `SkillPager.page`.
        skill: A path or Markdown text.
        query: What the agent is about to do.
        as_page: Whether to return one record, the rendered page.

    Raises:
        SkillPagerError: As for `SkillPager.page`.
    """
    pager = options.pager or shared_pager()
    index = pager.index(skill, scope=options.scope)
    context = pager.page(index, query, **options.keywords())
    return [page_record(index, context)] if as_page else node_records(index, context)


def page_text(options: PageOptions, text: str, metadata: Mapping[str, object], query: str) -> Page | None:
    """Return the page of a Markdown text that came with metadata; None for a blank text.

    Raises:
        SkillPagerError: As for `SkillPager.page`.
    """
    pager = options.pager or shared_pager()
    skill = skill_of(pager, text, metadata)
    return None if skill is None else pager.page(skill, query, **options.keywords())


def skill_of(pager: SkillPager, text: str, metadata: Mapping[str, object]) -> Skill | None:
    """Return a document's text as a skill, named by its metadata; None for a blank text.

    Raises:
        SkillError: The text is too large or holds lone surrogates.
    """
    if is_blank(text):
        return None
    names = [value for key in TITLE_KEYS if isinstance(value := metadata.get(key), str) and value.strip()]
    name = " ".join((names or ["document"])[0].split())[:MAX_NAME]
    return skill_from_text(text, name=name, max_bytes=pager.settings.max_bytes)


def node_records(index: SkillIndex, context: Page) -> list[Record]:
    """Return a record for every node of a page, in document order."""
    entries = _entries(context)
    return [_node_record(index, node, entries.get(node.id)) for node in context.nodes]


def page_record(index: SkillIndex, context: Page) -> Record:
    """Return a page as one record."""
    return Record(
        id=f"{_source(index)}/page-{sha256(context.text.encode()).hexdigest()[:DIGEST_CHARS]}",
        text=context.text,
        metadata={"skill": index.skill.name, **page_metadata(context)},
        score=context.sufficiency,
        source=_source(index),
    )


def page_metadata(context: Page) -> JsonObject:
    """Return what is known about a page: its tokens, the ids of its nodes, what it leaves out."""
    left_out = ("text", "nodes", "selection")
    known = {key: value for key, value in context_json(context).items() if key not in left_out}
    return {**known, "nodes": [node.id for node in context.nodes]}


def node_metadata(skill: Skill, node: Node) -> JsonObject:
    """Return what is known about a node besides its text, whatever the query."""
    hidden = {"text"} if skill.root else {"text", "file"}  # a text has no file
    known = {key: value for key, value in node_json(node).items() if key not in hidden}
    known["heading_path"] = PATH_SEPARATOR.join(node.heading_path)
    place = {"source": str(skill.root / node.span.file)} if skill.root else {}
    return {"skill": skill.name, **known, **place}


def _node_record(index: SkillIndex, node: Node, entry: Pick | Skip | None) -> Record:
    return Record(
        id=f"{_source(index)}/{node.id}",
        text=node.text,
        metadata={**node_metadata(index.skill, node), **_scores(entry)},
        score=entry.relevance if entry else None,
        source=_source(index),
        start=node.span.start,
        end=node.span.end,
    )


def _scores(entry: Pick | Skip | None) -> JsonObject:
    if entry is None:
        return {}
    rank: JsonObject = {"picked": True, "rank": entry.rank} if isinstance(entry, Pick) else {"picked": False}
    numbers: JsonObject = {
        "relevance": entry.relevance,
        "redundancy": entry.redundancy,
        "marginal": entry.marginal,
    }
    return {**rank, **numbers}


def _entries(context: Page) -> dict[str, Pick | Skip]:
    """Return why each node is there, by id; a small gap that is shown holds nodes that were skipped."""
    selection = context.selection
    groups: Sequence[Iterable[Pick | Skip]] = (selection.picks, selection.skipped) if selection else ()
    return {entry.node.id: entry for group in groups for entry in group}


def _source(index: SkillIndex) -> str:
    return f"{index.skill.name}@{index.key[:DIGEST_CHARS]}"

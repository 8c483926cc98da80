"""Pages as records, from which adapters make their framework's documents: id, text, metadata, score.

Metadata of a node is flat, text and numbers only, because vector stores accept nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from skillpager.bulk import Outcome, index_skills
from skillpager.json_types import to_json
from skillpager.library import Library, LibraryPage
from skillpager.pager import SkillPager
from skillpager.parsing.skill import MAX_NAME, is_blank, skill_from_text
from skillpager.types import Node, Page, Pick, Skill, SkillIndex, Skip

PATH_SEPARATOR = " > "

# metadata in which other tools store the name of a document, the most specific first
TITLE_KEYS = ("name", "title", "file_name", "source", "file_path")

# length of the digests that distinguish versions of a skill, and pages
DIGEST_CHARS = 8


@dataclass(frozen=True, slots=True)
class Record:
    """A node of a page, or a whole page.

    Attributes:
        id: Unique among skills, their versions and their pages.
        text: Text for the agent.
        metadata: JSON-ready.
        score: Cosine of query and node; for a page its estimated sufficiency, or None.
        source: Id of its skill.
        start: Offset of its first character in its file; None for a page.
        end: Offset after its last character; None for a page.
    """

    id: str
    text: str
    metadata: dict[str, object]
    score: float | None
    source: str
    start: int | None = None
    end: int | None = None


def page_records(index: SkillIndex, page: Page, *, as_page: bool) -> list[Record]:
    """Return the page of a skill: its nodes in document order, or the page as one record."""
    if not as_page:
        return node_records(index, page)
    metadata = {"skill": index.skill.name, **page_metadata(page)}
    return [_page_record(page.text, metadata, page.sufficiency, _source(index))]


def library_records(library: Library, page: LibraryPage, *, scope: str | None, as_page: bool) -> list[Record]:
    """Return a page of several skills: its nodes, skill by skill, or the page as one record.

    Metadata of a node name its skill, and the chance that the query needs it.
    """
    if not page.parts:
        return []
    if as_page:
        metadata: dict[str, object] = {
            "skill": ", ".join(part.skill.name for part in page.parts),
            "chance": max(part.chance for part in page.parts),
            "tokens": page.tokens,
            "full_tokens": page.full_tokens,
            "tokens_exact": page.tokens_exact,
            "complete": all(part.page.complete for part in page.parts),
            "sufficiency": page.sufficiency,
            "covered": page.covered,
        }
        source = "+".join(f"{part.skill.name}@{part.key[:DIGEST_CHARS]}" for part in page.parts)
        return [_page_record(page.text, metadata, page.sufficiency, source)]
    records = []
    for part in page.parts:
        index = library.index(part.skill.name, scope=scope)
        found = {"chance": part.chance}
        # a published skill has files, but no folder of this host
        records += [
            replace(record, metadata={**record.metadata, "file": node.span.file, **found})
            for record, node in zip(node_records(index, part.page), part.page.nodes, strict=True)
        ]
    return records


def _page_record(text: str, metadata: dict[str, object], sufficiency: float | None, source: str) -> Record:
    digest = sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
    return Record(f"{source}/page-{digest}", text, metadata, sufficiency, source)


def skill_of(pager: SkillPager, text: str, metadata: Mapping[str, object]) -> Skill | None:
    """Return a document's text as a skill, named by its metadata; None for a blank text."""
    if is_blank(text):
        return None
    names = [value for key in TITLE_KEYS if isinstance(value := metadata.get(key), str) and value.strip()]
    name = " ".join((names or ["document"])[0].split())[:MAX_NAME]
    return skill_from_text(text, name=name, max_bytes=pager.settings.max_bytes)


def index_sources(
    pager: SkillPager, places: Sequence[str | Path], *, jobs: int | None = None, ray: str | None = None
) -> tuple[list[Record], dict[str, str]]:
    """Return a record of the entry file of each skill that is indexed now, and the errors by place.

    The arguments are those of `bulk.index_skills`.
    """
    texts: dict[str, str] = {}

    def keep(done: Outcome, skill: Skill) -> None:
        texts[done.key] = skill.files[0].text

    outcomes = index_skills(pager, places, jobs=jobs, ray=ray, finished=keep)
    records = [
        Record(
            id=done.key,
            text=texts[done.key],
            metadata={"name": done.name, "place": done.place, "nodes": done.nodes, "tokens": done.tokens},
            score=None,
            source=done.place,
            start=0,
            end=len(texts[done.key]),
        )
        for done in outcomes
        if done.error is None
    ]
    return records, {done.place: str(done.error) for done in outcomes if done.error is not None}


def node_records(index: SkillIndex, page: Page) -> list[Record]:
    """Return a record for every node of a page, in document order, with its scores."""
    # nodes of a small gap that is shown were skipped, not picked
    selection = page.selection
    entries: list[Pick | Skip] = [*selection.picks, *selection.skipped] if selection else []
    found = {entry.node.id: entry for entry in entries}
    kind = str(selection.score_kind) if selection else ""
    records = []
    for node in page.nodes:
        entry = found.get(node.id)
        metadata = node_metadata(index.skill, node)
        records.append(
            Record(
                id=f"{_source(index)}/{node.id}",
                text=node.text,
                metadata=metadata | _scores(entry, kind) if entry else metadata,
                score=entry.relevance if entry else None,
                source=_source(index),
                start=node.span.start,
                end=node.span.end,
            )
        )
    return records


def _scores(entry: Pick | Skip, kind: str) -> dict[str, object]:
    """Return the numbers that decided about a node; `kind` says what `marginal` is."""
    place = {"picked": True, "rank": entry.rank} if isinstance(entry, Pick) else {"picked": False}
    numbers = {"relevance": entry.relevance, "redundancy": entry.redundancy, "marginal": entry.marginal}
    return {**place, **numbers, "score_kind": kind}


def page_metadata(page: Page) -> dict[str, object]:
    """Return metadata of a page: its tokens, the ids of its nodes, what it leaves out."""
    left_out = ("text", "nodes", "selection")
    known = {key: value for key, value in to_json(page).items() if key not in left_out}
    return {**known, "nodes": [node.id for node in page.nodes]}


def node_metadata(skill: Skill, node: Node) -> dict[str, object]:
    """Return metadata of a node that do not depend on a query."""
    hidden = {"text"} if skill.root else {"text", "file"}  # a text has no file
    known = {key: value for key, value in to_json(node).items() if key not in hidden}
    known["heading_path"] = PATH_SEPARATOR.join(node.heading_path)
    place = {"source": str(skill.root / node.span.file)} if skill.root else {}
    return {"skill": skill.name, **known, **place}


def _source(index: SkillIndex) -> str:
    return f"{index.skill.name}@{index.key[:DIGEST_CHARS]}"

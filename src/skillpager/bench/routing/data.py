"""Data of routing measurements: skills to find, skills among which they are found, and queries."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from skillpager.bench.data.evidence import AnnotatedQuery, ShortQuery, read_documents
from skillpager.bench.data.records import LineRange, Record, read_json, read_records
from skillpager.bench.data.skillrouter import GROUND_TRUTH
from skillpager.bench.data.skillrouter import read_tasks as read_scored_tasks
from skillpager.errors import BenchError, SkillPagerError
from skillpager.library.discovery import discover
from skillpager.parsing.frontmatter import find_body
from skillpager.parsing.skill import ENTRY_FILE, read_skill, skill_from_text
from skillpager.types import Skill

SHORT = "short_queries.json"
# skills in a folder, so that none has too many entries
SKILLS_A_FOLDER = 1_000


@dataclass(frozen=True, slots=True)
class RoutingSkill:
    """A skill of the library: its id, by which rows name it, and its SKILL.md."""

    id: str
    name: str
    description: str
    text: str

    @property
    def body(self) -> str:
        """The SKILL.md without front matter."""
        return self.text[find_body(self.text) :]


@dataclass(frozen=True, slots=True)
class RoutingQuery:
    """A query and the ids of the skills that it needs.

    Attributes:
        kind: By which tables group queries.
        evidence: First and last line of each stretch of its skill that it cannot do without, where known.
    """

    id: str
    kind: str
    text: str
    needs: tuple[str, ...]
    evidence: tuple[LineRange, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolSkill(Record):
    """A line of a file of skills."""

    id: str
    skill_md: str


def read_pool(path: Path) -> Iterator[RoutingSkill]:
    """Yield the skills of a folder of skills, or of a file of JSON lines (`id`, `skill_md`), also as `.xz`.

    Raises:
        BenchError: The file is missing or damaged.
    """
    if path.is_dir():
        for found in discover([path]):
            if found.problem is None:
                skill = read_skill(found.path, scope="body")
                yield _routing_skill(found.path.relative_to(path).as_posix(), skill)
        return
    if not path.is_file():
        raise BenchError(f"There is no pool of skills at {path}: name a folder, or a file of JSON lines.")
    for line in read_records(path, PoolSkill):
        try:
            skill = skill_from_text(line.skill_md, name=PurePosixPath(line.id).name)
        except SkillPagerError:
            continue  # a file without text is not a skill
        yield _routing_skill(line.id, skill)


def read_tasks(folder: Path, truth: Path) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the skills that tasks need, and the tasks, whole and as short queries.

    Args:
        folder: `tasks.jsonl` and `relevance.json` of SkillRouter-Eval-Core, and, if there are short queries,
            `short_queries.json`.
        truth: Folder of the skills, `<name>.md`; tasks that need none of them are left out.

    Raises:
        BenchError: A file is missing or damaged.
    """
    skills = []
    for path in sorted(truth.glob("*.md")):
        skill = skill_from_text(path.read_text(encoding="utf-8"), name=path.stem)
        skills.append(_routing_skill(f"{GROUND_TRUTH}/{path.stem}", skill))
    known = {skill.id for skill in skills}
    short = read_json(folder / SHORT, dict[str, list[str]]) if (folder / SHORT).exists() else {}
    queries = []
    for task, entry in read_scored_tasks(folder):
        if needs := tuple(sorted(known.intersection(entry.gt_skill_ids))):
            queries.append(RoutingQuery(task.task_id, "task", task.instruction_text, needs))
            queries += [
                RoutingQuery(f"{task.task_id}#{number}", "part of a task", text, needs)
                for number, text in enumerate(short.get(task.task_id, ()), 1)
            ]
    if not queries:
        raise BenchError(
            f"No task of {folder} needs a skill of {truth}: give the folder of their {GROUND_TRUTH}/NAME.md."
        )
    return skills, queries


def read_asked(folder: Path) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the documents of a folder of evidence data, without near copies, as skills; and their queries.

    Raises:
        BenchError: As `read_documents`.
    """
    skills, queries = [], []
    for document in read_documents(folder):
        if document.provenance.near_copy_of:
            continue
        name = document.annotation.skill
        id_ = f"{folder.name}/{name}"
        skills.append(_routing_skill(id_, skill_from_text(document.text, name=name)))
        asked: list[AnnotatedQuery | ShortQuery] = [*document.annotation.queries]
        asked += document.short.queries if document.short else ()
        for query in asked:
            kind = f"{folder.name}, {'short' if isinstance(query, ShortQuery) else 'long'}"
            text = query.query.strip()
            queries.append(RoutingQuery(f"{folder.name}/{query.id}", kind, text, (id_,), query.critical))
    return skills, queries


def merge(
    parts: Iterable[tuple[Sequence[RoutingSkill], Sequence[RoutingQuery]]], pool: Iterable[RoutingSkill]
) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the skills of parts and pool, and the queries; of exact copies the first stands for all.

    Copies that differ in a character stay, and are distractors.
    """
    found: dict[tuple[str, str, str], RoutingSkill] = {}
    first: dict[str, str] = {}
    queries: list[RoutingQuery] = []
    for skills, asked in (*parts, (pool, ())):
        for skill in skills:
            kept = found.setdefault((skill.name, skill.description, skill.body), skill)
            first.setdefault(skill.id, kept.id)
        queries += asked
    return list(found.values()), [
        replace(query, needs=tuple(dict.fromkeys(first[id_] for id_ in query.needs))) for query in queries
    ]


def write_skills(skills: Iterable[RoutingSkill], target: Path) -> dict[str, Path]:
    """Write skills below a folder; return the folder of each by its id."""
    places = {}
    for number, skill in enumerate(skills):
        path = target / f"{number // SKILLS_A_FOLDER}" / f"{number}" / PurePosixPath(skill.id).name
        path.mkdir(parents=True)
        (path / ENTRY_FILE).write_bytes(skill.text.encode())
        places[skill.id] = path
    return places


def _routing_skill(id_: str, skill: Skill) -> RoutingSkill:
    return RoutingSkill(id_, skill.name, skill.description, skill.files[0].text)

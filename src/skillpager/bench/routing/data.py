"""Data of routing measurements: skills to find, skills among which they are found, and queries."""

import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillpager.bench.data.evidence import read_documents
from skillpager.errors import BenchError, SkillPagerError
from skillpager.library.discovery import discover
from skillpager.parsing.skill import read_skill, skill_from_text
from skillpager.types import Skill

TASKS, RELEVANCE, SHORT = "tasks.jsonl", "relevance.json", "short_queries.json"
# tasks of SkillRouter that need no skill in particular; it does not score them
UNSCORED = "generic_only"
TRUTH = "gt"


@dataclass(frozen=True, slots=True)
class RoutingSkill:
    """A skill of the library.

    Attributes:
        id: Its id, by which rows name it.
        name: Its name.
        description: Its description, possibly empty.
        body: Its SKILL.md without front matter.
    """

    id: str
    name: str
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class RoutingQuery:
    """A query and the ids of the skills that it needs; `kind` groups queries in tables."""

    id: str
    kind: str
    text: str
    needs: tuple[str, ...]


def read_pool(path: Path) -> Iterator[RoutingSkill]:
    """Yield the skills of a folder of skills, or of a file of JSON lines (`id`, `skill_md`), also as `.xz`.

    Raises:
        BenchError: The file is damaged.
    """
    if path.is_dir():
        for found in discover([path]):
            if found.problem is None:
                skill = read_skill(found.path, scope="body")
                yield _routing_skill(found.path.relative_to(path).as_posix(), skill)
        return
    for id_, text in pool_records(path):
        try:
            skill = skill_from_text(text, name=id_.rpartition("/")[2])
        except SkillPagerError:
            continue  # a file without text is no skill
        yield _routing_skill(id_, skill)


def pool_records(path: Path) -> Iterator[tuple[str, str]]:
    """Yield id and SKILL.md of each skill of a file of JSON lines (`id`, `skill_md`), also as `.xz`.

    Raises:
        BenchError: The file is damaged.
    """
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                    id_, text = record["id"] + "", record["skill_md"] + ""
                except (ValueError, KeyError, TypeError) as error:
                    raise BenchError(
                        f'{path}:{number}: not a line {{"id": …, "skill_md": …}} ({error}).'
                    ) from error
                yield id_, text
    except (OSError, lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise BenchError(f"{path} cannot be read: {error}.") from error


def read_tasks(folder: Path, truth: Path) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the skills that tasks need, and the tasks, whole and as short queries.

    Args:
        folder: `tasks.jsonl` and `relevance.json` of SkillRouter-Eval-Core, and, if there are short queries,
            `short_queries.json`.
        truth: Folder of the skills, `<name>.md`; tasks that need none of them are left out.

    Raises:
        BenchError: A file is missing or damaged.
    """
    skills = [
        _routing_skill(
            f"{TRUTH}/{path.stem}", skill_from_text(path.read_text(encoding="utf-8"), name=path.stem)
        )
        for path in sorted(truth.glob("*.md"))
    ]
    known = {skill.id for skill in skills}
    try:
        tasks = [json.loads(line) for line in (folder / TASKS).read_text(encoding="utf-8").splitlines()]
        texts = {task["task_id"]: task["instruction_text"] for task in tasks}
        relevance = json.loads((folder / RELEVANCE).read_text(encoding="utf-8"))
        short = json.loads((folder / SHORT).read_text(encoding="utf-8")) if (folder / SHORT).exists() else {}
        queries = []
        for task, entry in sorted(relevance.items()):
            needs = tuple(sorted(known & set(entry["gt_skill_ids"])))
            if entry.get("task_type") == UNSCORED or not needs:
                continue
            queries.append(RoutingQuery(task, "task", texts[task], needs))
            queries += [
                RoutingQuery(f"{task}#{number}", "part of a task", text, needs)
                for number, text in enumerate(short.get(task, ()), 1)
            ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BenchError(
            f"{folder} holds no tasks ({TASKS} and {RELEVANCE} of SkillRouter-Eval-Core): {error}."
        ) from error
    if not queries:
        raise BenchError(
            f"No task of {folder} needs a skill of {truth}: give the folder of their {TRUTH}/NAME.md."
        )
    return skills, queries


def read_asked(folder: Path) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the documents of a folder of evidence data as skills, and their queries, of one skill each.

    Raises:
        BenchError: As `read_documents`.
    """
    skills, queries = [], []
    for document in read_documents(folder):
        name = document.annotation.skill
        id_ = f"{folder.name}/{name}"
        skills.append(_routing_skill(id_, skill_from_text(document.text, name=name)))
        kinds = [("long", document.annotation.queries)]
        kinds += [("short", document.short.queries)] if document.short else []  # type: ignore[list-item]
        queries += [
            RoutingQuery(f"{folder.name}/{query.id}", f"{folder.name}, {kind}", query.query, (id_,))
            for kind, asked in kinds
            for query in asked
        ]
    return skills, queries


def merge(
    parts: Iterable[tuple[Sequence[RoutingSkill], Sequence[RoutingQuery]]], pool: Iterable[RoutingSkill]
) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the skills of parts and pool, and the queries; of exact copies the first stands for all.

    Copies that differ in a character stay, and are distractors.
    """
    found: dict[tuple[str, str, str], RoutingSkill] = {}
    first: dict[str, str] = {}

    def add(skill: RoutingSkill) -> None:
        kept = found.setdefault((skill.name, skill.description, skill.body), skill)
        first.setdefault(skill.id, kept.id)

    queries: list[RoutingQuery] = []
    for skills, asked in parts:
        for skill in skills:
            add(skill)
        queries += asked
    for skill in pool:
        add(skill)
    needs = [tuple(dict.fromkeys(first[id_] for id_ in query.needs)) for query in queries]
    return list(found.values()), [replace(query, needs=of) for query, of in zip(queries, needs, strict=True)]


def _routing_skill(id_: str, skill: Skill) -> RoutingSkill:
    entry = skill.files[0]
    return RoutingSkill(id_, skill.name, skill.description, entry.text[entry.body_start :])

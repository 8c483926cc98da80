"""SkillRouter's tasks, which people wrote, as queries about the skills that solve them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import QueryRecord, Record, SkillRecord
from skillpager.errors import BenchError

TASKS, RELEVANCE = "tasks.jsonl", "relevance.json"
ORIGIN = "tasks"
# tasks that need none but general skills, such as `pdf`; SkillRouter does not score them
GENERIC = "generic_only"


@dataclass(frozen=True, slots=True)
class Task(Record):
    """A line of `tasks.jsonl`."""

    task_id: str
    instruction_text: str
    difficulty: str = ""
    domain: str = ""
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Relevance:
    """What `relevance.json` says of a task.

    Attributes:
        gt_skill_ids: All skills that solve it.
        core_gt_ids: Those that are made for it; None in data that does not tell.
        task_type: `clean`, `mixed` or `generic_only`.
    """

    gt_skill_ids: tuple[str, ...] = ()
    core_gt_ids: tuple[str, ...] | None = None
    task_type: str = ""

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills that the task is about."""
        if self.task_type == GENERIC:
            return ()
        return self.gt_skill_ids if self.core_gt_ids is None else self.core_gt_ids


def read_task_queries(folder: Path, skills: Sequence[SkillRecord]) -> list[QueryRecord]:
    """Return one query for each scored task and each of its core skills, in the order of the tasks.

    A task is scored, as by SkillRouter, unless it is excluded or needs general skills only.

    Args:
        folder: Holds `tasks.jsonl` and `relevance.json`.
        skills: The skills of the benchmark; others are left out.

    Raises:
        BenchError: A file is missing or damaged.
    """
    for name in (TASKS, RELEVANCE):
        if not (folder / name).is_file():
            raise BenchError(f"{folder} has no {name}, where the queries of the tasks are: download it.")
    relevance = _read_relevance(folder / RELEVANCE)
    known = {skill.id for skill in skills}
    return [
        query
        for task in read_records(folder / TASKS, Task)
        for query in _queries(task, relevance)
        if query.skill in known
    ]


def _queries(task: Task, relevance: Mapping[str, Relevance]) -> Iterator[QueryRecord]:
    if task.excluded or task.task_id not in relevance:
        return
    for skill in relevance[task.task_id].skills:
        yield QueryRecord(
            id=f"{skill}#{task.task_id}",
            skill=skill,
            query=task.instruction_text,
            origin=ORIGIN,
            difficulty=task.difficulty,
            angle=task.domain,
        )


def _read_relevance(path: Path) -> dict[str, Relevance]:
    try:
        return TypeAdapter(dict[str, Relevance]).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BenchError(f"{path} cannot be read ({place}: {first['msg']}): download it anew.") from error

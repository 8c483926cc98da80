"""Queries for skills, written by a model: one file a skill, then `queries.jsonl`.

    queries/<skill>.json     what the model wrote, with model, prompt digest and raw usage
    queries.jsonl            the records of all skills, in the order of `skills.jsonl`

Reference: paper §4.1, query generation.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from skillpager.atomic_write import write_file
from skillpager.bench.data.asking import Asked, ask_all
from skillpager.bench.data.chat import ChatModel
from skillpager.bench.data.folder import QUERIES, BenchFolder, file_name, write_records
from skillpager.bench.data.query_prompt import (
    PER_SKILL,
    WrittenQueries,
    WrittenQuery,
    query_prompt_digest,
    query_question,
    read_queries,
)
from skillpager.bench.data.questions import Answer
from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.bench.data.spending import Bill
from skillpager.errors import BenchError

logger = logging.getLogger(__name__)

QUERIES_FOLDER = "queries"
JOBS = 8  # paper §4.1
MAX_RETRIES = 3  # paper §4.1


class QueryFile(BaseModel):
    """What is kept of one skill.

    Attributes:
        skill: Id of the skill.
        skill_sha256: Digest of its text when the queries were written.
        model: Endpoint and model.
        answered_by: The model, as the endpoint called it.
        prompt: Digest of the prompt.
        usage: What the endpoint said of the tokens; None when it said nothing.
        queries: The queries.
    """

    skill: str
    skill_sha256: str
    model: str
    answered_by: str
    prompt: str
    usage: Mapping[str, object] | None
    queries: list[WrittenQuery]


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What is to be asked.

    Attributes:
        folder: The benchmark.
        model: Who is asked.
        per_skill: Queries a skill.
        missing: Skills without queries, in order.
        present: How many of the wanted skills have theirs.
    """

    folder: BenchFolder
    model: ChatModel
    per_skill: int
    missing: tuple[SkillRecord, ...]
    present: int

    @property
    def prompt(self) -> str:
        """Digest of the prompt."""
        return query_prompt_digest(self.per_skill)

    @property
    def origin(self) -> str:
        """The `origin` of the queries."""
        return f"llm:{self.model.id}#{self.prompt}"

    def estimate(self) -> Bill:
        """Return what the missing queries would cost."""
        return self.model.estimate(query_question(skill, count=self.per_skill) for skill in self.missing)


def plan_queries(
    folder: BenchFolder, model: ChatModel, *, per_skill: int = PER_SKILL, limit: int | None = None
) -> QueryPlan:
    """Return what is to be asked so that the skills have queries.

    Args:
        folder: The benchmark.
        model: Who is asked.
        per_skill: Queries a skill.
        limit: Only so many skills, the first; None for all.

    Raises:
        BenchError: There are no skills, or queries of another origin that would be mixed or lost.
    """
    if per_skill < 1:
        raise BenchError(f"{per_skill} queries a skill cannot be written: ask for 1 or more.")
    skills = folder.skills()
    plan = QueryPlan(folder, model, per_skill, missing=(), present=0)
    _check_origin(folder, plan.origin)
    kept = _kept_files(folder, skills, plan)
    wanted = skills[:limit]
    missing = tuple(skill for skill in wanted if skill.id not in kept)
    return replace(plan, missing=missing, present=len(wanted) - len(missing))


def write_queries(
    plan: QueryPlan, *, jobs: int = JOBS, progress: Callable[[int, int], None] | None = None
) -> Asked[SkillRecord]:
    """Return what became of the missing skills, after their files and `queries.jsonl` were written.

    Args:
        plan: What is to be asked.
        jobs: Most requests at a time.
        progress: Called with finished and all missing skills.

    Raises:
        MissingExtraError: The `httpx` package is not installed.

    Reference: paper §4.1.
    """
    asked = ask_all(
        plan.missing,
        lambda skill: _write_file(plan, skill),
        jobs=jobs,
        halt=plan.model.halt,
        progress=progress,
    )
    assemble_queries(plan)
    return asked


def assemble_queries(plan: QueryPlan) -> int:
    """Write `queries.jsonl` from the files of all skills that have one; return how many queries it has."""
    skills = plan.folder.skills()
    kept = _kept_files(plan.folder, skills, plan)
    if not kept:
        return 0
    records = [record for skill in skills for record in _records(kept.get(skill.id), plan.origin)]
    write_records(plan.folder.path / QUERIES, records)
    plan.folder.update_manifest(
        {
            "queries": {
                "origin": plan.origin,
                "model": plan.model.id,
                "prompt": plan.prompt,
                "per_skill": plan.per_skill,
                "skills": len(kept),
                "queries": len(records),
            }
        }
    )
    return len(records)


def query_file(folder: BenchFolder, skill: str) -> Path:
    """Return where the written queries of a skill stand."""
    return folder.path / QUERIES_FOLDER / f"{file_name(skill)}.json"


def _write_file(plan: QueryPlan, skill: SkillRecord) -> None:
    question = query_question(skill, count=plan.per_skill)
    answer: Answer[list[WrittenQuery]] = plan.model.ask(
        question, lambda data: read_queries(data, count=plan.per_skill)
    )
    content = QueryFile(
        skill=skill.id,
        skill_sha256=skill.sha256,
        model=plan.model.id,
        answered_by=answer.model,
        prompt=plan.prompt,
        usage=answer.raw_usage,
        queries=answer.value,
    )
    write_file(query_file(plan.folder, skill.id), f"{content.model_dump_json(indent=2)}\n")


def _kept_files(folder: BenchFolder, skills: Sequence[SkillRecord], plan: QueryPlan) -> dict[str, QueryFile]:
    """Return the good files by skill; damaged files and those of another text are as good as missing.

    Raises:
        BenchError: Files of another model or prompt are there.
    """
    read = {skill.id: _read_file(query_file(folder, skill.id), skill, plan) for skill in skills}
    kept = {skill: file for skill, file in read.items() if file is not None}
    strange = [file for file in kept.values() if (file.model, file.prompt) != (plan.model.id, plan.prompt)]
    if strange:
        raise BenchError(
            f"{folder.path / QUERIES_FOLDER} holds queries for {len(strange)} skills by another model or "
            f"prompt ({strange[0].model}#{strange[0].prompt}; asked for is {plan.model.id}#{plan.prompt}), "
            "and the two are not mixed: remove that folder, use another benchmark folder, or ask the model "
            "and for the number of queries that were used before."
        )
    return kept


def _read_file(path: Path, skill: SkillRecord, plan: QueryPlan) -> QueryFile | None:
    try:
        file = QueryFile.model_validate_json(path.read_bytes())
        if (file.model, file.prompt) == (plan.model.id, plan.prompt):
            read_queries(WrittenQueries(queries=file.queries).model_dump(), count=plan.per_skill)
    except FileNotFoundError:
        return None
    except (ValidationError, ValueError) as error:
        reason = str(error).splitlines()[0]
        logger.warning("%s is damaged (%s): its queries are written anew", path, reason)
        return None
    if file.skill_sha256 != skill.sha256:
        logger.warning("%s was written for another text of the skill: its queries are written anew", path)
        return None
    return file


def _check_origin(folder: BenchFolder, origin: str) -> None:
    """Refuse to replace queries that this command did not write."""
    strange = {record.origin for record in folder.queries()} - {origin}
    if strange:
        raise BenchError(
            f"{folder.path / QUERIES} holds queries of another origin ({', '.join(sorted(strange)[:3])}), "
            f"which queries of {origin} would replace: use another benchmark folder, or move the file away."
        )


def _records(file: QueryFile | None, origin: str) -> list[QueryRecord]:
    if file is None:
        return []
    return [
        QueryRecord(
            id=f"{file.skill}-q{number}",
            skill=file.skill,
            query=query.query,
            origin=origin,
            difficulty=query.difficulty,
            angle=query.angle,
        )
        for number, query in enumerate(file.queries, 1)
    ]

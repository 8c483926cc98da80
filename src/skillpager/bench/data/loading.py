"""Data of any form as records, and records as skills."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillpager.bench.data.evidence import ANNOTATION, read_evidence
from skillpager.bench.data.folder import QUERIES, SKILLS, BenchFolder
from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.errors import BenchError
from skillpager.parsing.skill import skill_from_files
from skillpager.types import Skill


def load_data(path: Path) -> tuple[list[SkillRecord], list[QueryRecord]]:
    """Return the skills and queries of a benchmark folder, or of a folder of evidence data.

    The subset of evidence data is the name of its folder.

    Raises:
        BenchError: `path` is neither, or its data is damaged or does not hang together.
    """
    if (path / SKILLS).is_file():
        folder = BenchFolder(path)
        skills, queries = folder.skills(), folder.queries()
    elif next(path.glob(f"*{ANNOTATION}"), None):
        skills, queries = read_evidence(path, subset=path.resolve().name)
    else:
        raise BenchError(
            f"{path} holds no data: name a benchmark folder (with {SKILLS}), which `skillpager bench data` "
            f"makes, or a folder of evidence data (with *{ANNOTATION}), which `skillpager bench data fetch` "
            "restores."
        )
    _check_ids(path, skills, queries)
    return skills, queries


def to_skill(record: SkillRecord) -> Skill:
    """Return the skill of a record, all its files included.

    Name and description are those of the front matter, else of the record.

    Raises:
        SkillError: The record has no text, or more than a skill may have.
    """
    skill = skill_from_files(record.files, name=record.name or record.id)
    return skill if skill.description else replace(skill, description=record.description)


def _check_ids(path: Path, skills: Sequence[SkillRecord], queries: Sequence[QueryRecord]) -> None:
    for name, ids in ((SKILLS, [skill.id for skill in skills]), (QUERIES, [query.id for query in queries])):
        repeated = _first_repeated(ids)
        if repeated is not None:
            raise BenchError(f"{path}: the id {repeated!r} is twice in {name}: ids must be unique.")
    known = {skill.id for skill in skills}
    for query in queries:
        if query.skill not in known:
            raise BenchError(
                f"{path}: query {query.id!r} is about the skill {query.skill!r}, which is not in the data."
            )


def _first_repeated(ids: list[str]) -> str | None:
    seen: set[str] = set()
    for identifier in ids:
        if identifier in seen:
            return identifier
        seen.add(identifier)
    return None

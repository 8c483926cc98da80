"""Any skills as data, with queries of one's own or none yet."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import LineRange, QueryRecord, Record, SkillRecord
from skillpager.errors import BenchError
from skillpager.library import discover
from skillpager.parsing.markdown import LINE_END
from skillpager.parsing.skill import read_skill
from skillpager.types import Skill

ORIGIN = "people"


@dataclass(frozen=True, slots=True)
class OwnQuery(Record):
    """A line of a file of queries: a `QueryRecord` of which only `skill` and `query` are needed."""

    skill: str
    query: str
    id: str = ""
    origin: str = ORIGIN
    difficulty: str = ""
    angle: str = ""
    critical: tuple[LineRange, ...] = ()
    supporting: tuple[LineRange, ...] = ()
    expected: str = ""


def read_skills(paths: Sequence[Path], *, subset: str) -> list[SkillRecord]:
    """Return skills with all their files, those below a folder in the order of their paths.

    Args:
        paths: Skill folders, Markdown files, or folders that contain skills.
        subset: Name of the part of the benchmark that they make up.

    Raises:
        SkillError: A skill cannot be read.
        BenchError: A folder contains no skill, or two skills have the same name.
    """
    records: dict[str, SkillRecord] = {}
    for path in chain.from_iterable(map(_places, paths)):
        record = skill_record(read_skill(path, scope="skill"), subset=subset)
        if record.id in records:
            raise BenchError(f"{path} is the second skill of the name {record.id!r}: leave one of them out.")
        records[record.id] = record
    return list(records.values())


def skill_record(skill: Skill, *, subset: str, source: Mapping[str, str] | None = None) -> SkillRecord:
    """Return a skill with all its files as a record; its name is its id.

    Args:
        skill: The skill.
        subset: Part of the benchmark that it belongs to.
        source: Provenance besides folder and licence.
    """
    told = {
        "folder": skill.root.name if skill.root else "",
        "license": skill.metadata.get("license", ""),
        **(source or {}),
    }
    return SkillRecord(
        id=skill.name,
        name=skill.name,
        description=skill.description,
        files=tuple((file.path, file.text) for file in skill.files),
        subset=subset,
        source={name: value for name, value in told.items() if value},
    )


def read_queries(path: Path, skills: Sequence[SkillRecord]) -> list[QueryRecord]:
    """Return the queries of a JSONL file, in the order of the skills; one without an id gets `<skill>#<n>`.

    Raises:
        BenchError: There is no such file, a line is damaged, names an unknown skill or lines that its entry
            file does not have, or an id is there twice.
    """
    if not path.is_file():
        raise BenchError(f"There is no file of queries at {path}.")
    known = {skill.id: skill for skill in skills}
    numbers: Counter[str] = Counter()
    records: dict[str, QueryRecord] = {}
    for own in read_records(path, OwnQuery):
        if own.skill not in known:
            raise BenchError(
                f"{path}: the query {own.query!r} is about the skill {own.skill!r}, which is not among "
                "the skills."
            )
        numbers[own.skill] += 1
        record = QueryRecord(**{**asdict(own), "id": own.id or f"{own.skill}#{numbers[own.skill]}"})
        if record.id in records:
            raise BenchError(f"{path}: the id {record.id!r} is there twice: ids must be unique.")
        _check_lines(path, record, known[own.skill])
        records[record.id] = record
    places = {skill.id: place for place, skill in enumerate(skills)}
    return sorted(records.values(), key=lambda record: places[record.skill])


def _places(path: Path) -> list[Path]:
    """Return the skills that a path means: itself, or those below it."""
    if path.is_file() or (path / "SKILL.md").is_file():
        return [path]
    found = [skill.path for skill in discover([path])]
    if not found:
        raise BenchError(f"{path} contains no skill: name a skill, or a folder with skills below it.")
    return found


def _check_lines(path: Path, query: QueryRecord, skill: SkillRecord) -> None:
    lines = len(LINE_END.findall(skill.text)) + 1
    for first, last in (*query.critical, *query.supporting):
        if not 1 <= first <= last <= lines:
            raise BenchError(
                f"{path}: query {query.id!r} has the lines {first} to {last}, but {skill.files[0][0]} of "
                f"{skill.id} has the lines 1 to {lines}: lines are 1-based and inclusive, with front matter."
            )

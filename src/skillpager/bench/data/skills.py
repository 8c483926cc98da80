"""Any skills as benchmark data, with a file of queries or without."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from skillpager.bench.data.evidence import check_ranges, evidence_ranges
from skillpager.bench.data.records import QueryRecord, SkillRecord, read_records
from skillpager.errors import BenchError
from skillpager.library import discover
from skillpager.parsing.skill import read_skill

SUBSET = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnQuery(QueryRecord):
    """A line of a file of queries: a `QueryRecord` in which only `skill` and `query` are required."""

    id: str = ""
    origin: str = "people"


def read_skills(paths: Sequence[Path]) -> list[SkillRecord]:
    """Return skills with all their files, those below a folder in the order of their paths.

    `paths` are skill folders, Markdown files, or folders that contain skills.

    Raises:
        SkillError: A skill cannot be read.
        BenchError: A folder contains no skill, or two skills have the same name.
    """
    records: dict[str, SkillRecord] = {}
    for given in paths:
        places = [given]
        if not given.is_file() and not (given / "SKILL.md").is_file():
            places = [skill.path for skill in discover([given])]
        if not places:
            raise BenchError(f"{given} contains no skill: name a skill, or a folder with skills below it.")
        for path in places:
            skill = read_skill(path, scope="skill")
            if skill.name in records:
                raise BenchError(
                    f"{path} is the second skill of the name {skill.name!r}: leave one of them out."
                )
            source = {"folder": skill.root.name if skill.root else ""}
            source["license"] = skill.metadata.get("license", "")
            records[skill.name] = SkillRecord(
                id=skill.name,
                name=skill.name,
                description=skill.description,
                files=tuple((file.path, file.text) for file in skill.files),
                subset=SUBSET,
                source={name: value for name, value in source.items() if value},
            )
    return list(records.values())


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
        skill = known[own.skill]
        document = f"{skill.files[0][0]} of {skill.id}"
        check_ranges(path, evidence_ranges(record), document=document, text=skill.text)
        records[record.id] = record
    places = {skill.id: place for place, skill in enumerate(skills)}
    return sorted(records.values(), key=lambda record: places[record.skill])

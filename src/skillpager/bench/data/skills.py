"""Any skills as benchmark data: with a file of queries, with their own test cases, or without queries.

Reference: Agent Skills, "Evaluating skill output quality" (`evals/evals.json`).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from skillpager.bench.data.evidence import check_ranges, evidence_ranges
from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import LineRange, QueryRecord, Record, SkillRecord
from skillpager.errors import BenchError
from skillpager.json_types import JsonValue
from skillpager.library import discover
from skillpager.parsing.skill import read_skill
from skillpager.types import Skill

ORIGIN = "people"

EVALS, EVALS_FILE = "evals", Path("evals", "evals.json")
# fields of a test case: the guide's own names first, then those that are found in the wild
PROMPT = ("prompt", "query", "question", "input")
EXPECTED = ("expected_output", "expected", "expected_behavior")
STATEMENTS = ("expectations", "assertions")
STATEMENT = ("text", "description", "assertion")


@dataclass(frozen=True, slots=True)
class OwnQuery(Record):
    """A line of a file of queries: a `QueryRecord` in which only `skill` and `query` are required."""

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
            _add(records, path, _skill_record(read_skill(path, scope="skill"), subset, {}))
    return list(records.values())


def read_evals(paths: Sequence[Path]) -> tuple[list[SkillRecord], list[QueryRecord]]:
    """Return skills with all their files, and their test cases, `evals/evals.json`, as queries.

    `paths` are skill folders, or their `SKILL.md`.

    Raises:
        SkillError: A skill cannot be read.
        BenchError: A skill has no test cases, or two skills or cases have the same name.
    """
    records: dict[str, SkillRecord] = {}
    queries: list[QueryRecord] = []
    for path in paths:
        skill = read_skill(path, scope="skill")
        file = (skill.root or path) / EVALS_FILE
        try:
            data = file.read_bytes()
        except FileNotFoundError as error:
            raise BenchError(
                f"The skill {skill.name} has no test cases of its own, there is no {file}: "
                "write them as https://agentskills.io/skill-creation/evaluating-skills shows, or let "
                "`skillpager bench queries` generate queries."
            ) from error
        digest = {"evals_sha256": hashlib.sha256(data).hexdigest()}
        _add(records, path, _skill_record(skill, EVALS, digest))
        queries += _cases(file, data, skill.name)
    return list(records.values()), queries


def _skill_record(skill: Skill, subset: str, source: Mapping[str, str]) -> SkillRecord:
    known = {
        "folder": skill.root.name if skill.root else "",
        "license": skill.metadata.get("license", ""),
        **source,
    }
    return SkillRecord(
        id=skill.name,
        name=skill.name,
        description=skill.description,
        files=tuple((file.path, file.text) for file in skill.files),
        subset=subset,
        source={name: value for name, value in known.items() if value},
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
        skill = known[own.skill]
        document = f"{skill.files[0][0]} of {skill.id}"
        check_ranges(path, evidence_ranges(record), document=document, text=skill.text)
        records[record.id] = record
    places = {skill.id: place for place, skill in enumerate(skills)}
    return sorted(records.values(), key=lambda record: places[record.skill])


def _add(records: dict[str, SkillRecord], path: Path, record: SkillRecord) -> None:
    if records.setdefault(record.id, record) is not record:
        raise BenchError(f"{path} is the second skill of the name {record.id!r}: leave one of them out.")


def _cases(file: Path, data: bytes, skill: str) -> Iterator[QueryRecord]:
    """Yield the test cases of a file: its list `evals`, or the file itself where that is a list."""
    try:
        decoded = json.loads(data)
    except ValueError as error:
        raise BenchError(f"{file} is no JSON ({error}): correct it.") from error
    cases = decoded.get("evals") if isinstance(decoded, dict) else decoded
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise BenchError(f'{file} has no list "evals" of objects: write {{"evals": [{{"prompt": "…"}}]}}.')
    if not cases:
        raise BenchError(f"{file} has no test cases: write at least one.")
    seen: set[str] = set()
    for number, case in enumerate(cases, 1):
        identifier = f"{skill}#{_text(case.get('id')) or number}"
        if identifier in seen:
            raise BenchError(f"{file}: case {number} repeats the id {case.get('id')}: ids must be unique.")
        seen.add(identifier)
        prompt = _first(case, PROMPT)
        if not prompt:
            raise BenchError(f"{file}: case {number} has no prompt: write what the user asks for.")
        # a good answer: its description, then each statement on a line of its own
        given = [case[name] for name in STATEMENTS if isinstance(case.get(name), list)]
        listed = given[0] if given else []
        statements = [_first(item, STATEMENT) if isinstance(item, dict) else _text(item) for item in listed]
        expected = [_first(case, EXPECTED), *(f"- {text}" for text in statements if text)]
        yield QueryRecord(
            id=identifier, skill=skill, query=prompt, origin=EVALS, expected="\n".join(filter(None, expected))
        )


def _first(fields: Mapping[str, JsonValue], names: Sequence[str]) -> str:
    return next((text for name in names if (text := _text(fields.get(name)))), "")


def _text(value: JsonValue) -> str:
    """Return a string or number as text; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value).strip()

"""Any skills as benchmark data: with a file of queries, with their own test cases, or without queries.

Reference: Agent Skills, "Evaluating skill output quality" (`evals/evals.json`).
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from skillpager.bench.data.evidence import check_ranges, evidence_ranges
from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import LineRange, QueryRecord, Record, SkillRecord, first_fault
from skillpager.errors import BenchError
from skillpager.library import discover
from skillpager.parsing.skill import read_skill
from skillpager.types import Skill

ORIGIN = "people"

EVALS, EVALS_FILE = "evals", Path("evals", "evals.json")


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


class _EvalCase(BaseModel):
    """A test case: the guide's own names of fields first, then those that are found in the wild."""

    model_config = ConfigDict(coerce_numbers_to_str=True, str_strip_whitespace=True)

    id: str = ""
    prompt: str = Field(min_length=1, validation_alias=AliasChoices("prompt", "query", "question", "input"))
    expected_output: str = Field(
        "", validation_alias=AliasChoices("expected_output", "expected", "expected_behavior")
    )
    statements: list[str | dict[str, object] | None] = Field(
        [], validation_alias=AliasChoices("expectations", "assertions")
    )

    @property
    def expected(self) -> str:
        """A good answer: its description, then each statement on a line of its own."""
        texts = [each.get("text") if isinstance(each, dict) else each for each in self.statements]
        return "\n".join(filter(None, (self.expected_output, *(f"- {text}" for text in texts if text))))


class _Evals(BaseModel):
    evals: list[_EvalCase] = Field(min_length=1)


def _cases(file: Path, data: bytes, skill: str) -> list[QueryRecord]:
    """Return the test cases of a file: its list `evals`, or the file itself where that is a list."""
    if data.lstrip().startswith(b"["):
        data = b'{"evals": ' + data + b"}"
    try:
        cases = _Evals.model_validate_json(data).evals
    except ValidationError as error:
        raise BenchError(
            f'{file} has no usable test cases ({first_fault(error)}): write {{"evals": '
            '[{"prompt": "…", "expected_output": "…"}]}.'
        ) from None
    queries: dict[str, QueryRecord] = {}
    for number, case in enumerate(cases, 1):
        name = f"{skill}#{case.id or number}"
        if name in queries:
            raise BenchError(f"{file}: case {number} repeats the id {case.id}: ids must be unique.")
        queries[name] = QueryRecord(name, skill, case.prompt, EVALS, expected=case.expected)
    return list(queries.values())

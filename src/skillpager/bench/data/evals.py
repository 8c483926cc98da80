"""A skill's own test cases, `evals/evals.json`, as queries that people wrote.

Reference: Agent Skills, "Evaluating skill output quality".
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.bench.data.skills import skill_record
from skillpager.errors import BenchError
from skillpager.output.json import JsonValue
from skillpager.parsing.skill import read_skill
from skillpager.types import Skill

EVALS = Path("evals", "evals.json")
ORIGIN = "evals"

# the guide's own names first, then those that are found in the wild
PROMPT = ("prompt", "query", "question", "input")
EXPECTED = ("expected_output", "expected", "expected_behavior")
STATEMENTS = ("expectations", "assertions")
STATEMENT = ("text", "description", "assertion")


def read_evals(paths: Sequence[Path]) -> tuple[list[SkillRecord], list[QueryRecord]]:
    """Return skills with all their files, and their test cases as queries.

    Args:
        paths: Skill folders, or their `SKILL.md`.

    Raises:
        SkillError: A skill cannot be read.
        BenchError: A skill has no test cases, or two skills or cases have the same name.
    """
    skills: list[SkillRecord] = []
    queries: list[QueryRecord] = []
    for path in paths:
        skill = read_skill(path, scope="skill")
        if any(other.id == skill.name for other in skills):
            raise BenchError(f"{path} is the second skill of the name {skill.name!r}: leave one of them out.")
        file = (skill.root or path) / EVALS
        data = _read(file, skill)
        digest = {"evals_sha256": hashlib.sha256(data).hexdigest()}
        skills.append(skill_record(skill, subset=ORIGIN, source=digest))
        queries += _queries(file, data, skill)
    return skills, queries


def _read(file: Path, skill: Skill) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError as error:
        raise BenchError(
            f"The skill {skill.name} has no test cases of its own, there is no {file}: "
            "write them as https://agentskills.io/skill-creation/evaluating-skills shows, or let "
            "`skillpager bench queries` generate queries."
        ) from error


def _queries(file: Path, data: bytes, skill: Skill) -> Iterator[QueryRecord]:
    cases = _cases(file, data)
    seen: set[str] = set()
    for number, case in enumerate(cases, 1):
        identifier = f"{skill.name}#{_text(case.get('id')) or number}"
        if identifier in seen:
            raise BenchError(f"{file}: case {number} repeats the id {case.get('id')}: ids must be unique.")
        seen.add(identifier)
        prompt = _first(case, PROMPT)
        if not prompt:
            raise BenchError(f"{file}: case {number} has no prompt: write what the user asks for.")
        yield QueryRecord(
            id=identifier, skill=skill.name, query=prompt, origin=ORIGIN, expected=_expected(case)
        )


def _cases(file: Path, data: bytes) -> list[Mapping[str, JsonValue]]:
    """Return the cases of the file: its list `evals`, or the file itself where that is a list."""
    try:
        decoded = json.loads(data)
    except ValueError as error:
        raise BenchError(f"{file} is no JSON ({error}): mend it.") from error
    cases = decoded.get("evals") if isinstance(decoded, dict) else decoded
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise BenchError(f'{file} has no list "evals" of objects: write {{"evals": [{{"prompt": "…"}}]}}.')
    if not cases:
        raise BenchError(f"{file} has no test cases: write at least one.")
    return cases


def _expected(case: Mapping[str, JsonValue]) -> str:
    """Return what a good answer does: the description, then each statement on a line of its own."""
    statements = next((case[name] for name in STATEMENTS if isinstance(case.get(name), list)), [])
    listed = [_statement(value) for value in statements] if isinstance(statements, list) else []
    return "\n".join(filter(None, [_first(case, EXPECTED), *(f"- {text}" for text in listed if text)]))


def _statement(value: JsonValue) -> str:
    return _first(value, STATEMENT) if isinstance(value, Mapping) else _text(value)


def _first(fields: Mapping[str, JsonValue], names: Sequence[str]) -> str:
    return next((text for name in names if (text := _text(fields.get(name)))), "")


def _text(value: JsonValue) -> str:
    """Return a string or number as text; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value).strip()

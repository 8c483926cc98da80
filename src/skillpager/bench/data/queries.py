"""Queries for skills, written by a model (paper §4.1, query generation)."""

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict

from skillpager.bench.data.chat import Asked, ask_all, quote_as_data, read_as
from skillpager.bench.data.folder import QUERIES, BenchFolder
from skillpager.bench.data.records import QueryRecord, SkillRecord, append_records, write_records
from skillpager.errors import BenchError
from skillpager.library.discovery import Progress, no_progress
from skillpager.parsing.skill import find_body
from skillpager.remote.chat import Message, chat_json
from skillpager.remote.endpoint import Endpoint

MAX_RETRIES = 3  # paper §4.1
PER_SKILL = 5  # paper §4.1
# one to three sentences are far shorter; a longer text is a small task description of its own
MAX_QUERY_CHARS = 600
DIFFICULTIES = ("easy", "medium", "hard")

SYSTEM_PROMPT = files(__package__).joinpath("prompt.txt").read_text(encoding="utf-8").rstrip("\n")


class WrittenQuery(BaseModel):
    """A query as the model wrote it; `angle` is the use or part of the skill that it aims at."""

    model_config = ConfigDict(extra="forbid")

    query: str
    difficulty: Literal["easy", "medium", "hard"]
    angle: str


class WrittenQueries(BaseModel):
    """The answer of the model."""

    model_config = ConfigDict(extra="forbid")

    queries: list[WrittenQuery]


ANSWER_SCHEMA = WrittenQueries.model_json_schema()
PROMPT_DIGEST = hashlib.sha256(json.dumps([SYSTEM_PROMPT, ANSWER_SCHEMA]).encode()).hexdigest()[:12]


def query_origin(model: str) -> str:
    """Return the `origin` of the queries that `model`, an endpoint's id, writes with this prompt."""
    return f"llm:{model}#{PROMPT_DIGEST}"


def skills_without_queries(folder: BenchFolder, model: str) -> list[SkillRecord]:
    """Return the skills for which a model, given by the endpoint's id, has still to write queries."""
    skills, queries = folder.skills(), folder.queries()
    if strange := {record.origin for record in queries} - {query_origin(model)}:
        raise BenchError(
            f"{folder.path / QUERIES} holds queries of another origin ({', '.join(sorted(strange)[:3])}): "
            "use another benchmark folder, or move the file away."
        )
    written = Counter(record.skill for record in queries)
    return [skill for skill in skills if written[skill.id] < PER_SKILL]


def write_queries(
    folder: BenchFolder,
    model: Endpoint,
    skills: Sequence[SkillRecord],
    *,
    jobs: int,
    progress: Progress = no_progress,
) -> Asked[SkillRecord]:
    """Add queries for skills to `queries.jsonl` as they come, then put it in the order of the skills.

    At most `jobs` requests are sent at a time.
    """
    path, lock, origin = folder.path / QUERIES, threading.Lock(), query_origin(model.id)

    def write(skill: SkillRecord) -> None:
        messages = Message("system", SYSTEM_PROMPT), Message("user", quote_skill(skill))
        written = chat_json(
            model, messages, schema=ANSWER_SCHEMA, schema_name="queries", read=read_queries, correct=True
        )
        records = [
            QueryRecord(f"{skill.id}-q{number}", skill.id, each.query, origin, each.difficulty, each.angle)
            for number, each in enumerate(written, 1)
        ]
        with lock:
            append_records(path, records)

    asked = ask_all(skills, write, jobs=jobs, progress=progress)
    places = {skill.id: place for place, skill in enumerate(folder.skills())}
    # of a skill whose queries were cut short the later ones count
    found = {record.id: record for record in folder.queries()}
    in_order = sorted(found.values(), key=lambda record: (places[record.skill], record.id))
    if in_order:
        write_records(path, in_order)
    return asked


def quote_skill(skill: SkillRecord) -> str:
    """Return name and text of a skill for a prompt."""
    bodies = [(path, text[find_body(text) :].strip("\n")) for path, text in skill.files]
    # the only file needs no name: the model would write queries about it
    named = [f"[file {path}]\n\n{body}" for path, body in bodies]
    text = bodies[0][1] if len(bodies) == 1 else "\n\n".join(named)
    return quote_as_data({"name": skill.name, "text": text})


def read_queries(data: object) -> list[WrittenQuery]:
    """Return the queries of an answer, white space folded."""
    written = read_as(WrittenQueries, data).queries
    for query in written:
        query.query, query.angle = " ".join(query.query.split()), " ".join(query.angle.split())
    letters = {re.sub(r"[\W_]+", "", query.query).casefold() for query in written}
    if len(written) != PER_SKILL:
        raise ValueError(f"there are {len(written)} queries instead of {PER_SKILL}")
    if "" in letters or not all(query.angle for query in written):
        raise ValueError("a query, or its angle, is empty")
    if (longest := max(len(query.query) for query in written)) > MAX_QUERY_CHARS:
        raise ValueError(
            f"a query has {longest} characters: one to three sentences, at most {MAX_QUERY_CHARS} "
            "characters, are asked for"
        )
    if len(letters) < PER_SKILL:
        raise ValueError("a query is there twice")
    levels = {query.difficulty for query in written}
    if missing := [level for level in DIFFICULTIES if level not in levels]:
        raise ValueError(f"no query is {', '.join(missing)}")
    return written

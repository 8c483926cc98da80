"""Benchmark folders made of the sample skills, and a server that plays query writer and judge."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cli_process
from cli_process import Ran
from openai_server import Asked, OpenAIServer, Reply, completion, endpoint_at
from skillpager.bench.data.chat import Asked as Outcome
from skillpager.bench.data.folder import QUERIES, SKILLS, BenchFolder
from skillpager.bench.data.records import QueryRecord, SelectionRecord, SkillRecord, write_records
from skillpager.bench.judge.judges import Case, Docket, Judging, choose_methods, collect_cases, judge_cases
from skillpager.bench.judge.votes import VOTES, VotedJudge, ask_votes, judge_id
from skillpager.parsing.skill import find_entry, read_skill
from skillpager.remote.endpoint import Endpoint

SAMPLES = Path(__file__).parent.parent / "examples" / "skills"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "cached": {"tokens": 7}}


def sample_skills(count: int | None = None) -> list[SkillRecord]:
    """Return the sample skills, the first ones by name."""
    records = []
    for path in sorted(SAMPLES.iterdir())[:count]:
        skill = read_skill(path, scope="body")
        text = find_entry(path).read_bytes().decode()
        records.append(
            SkillRecord(path.name, skill.name, skill.description, (("SKILL.md", text),), "samples")
        )
    return records


def sample_queries(skills: list[SkillRecord]) -> list[QueryRecord]:
    """Return the annotated queries about some sample skills."""
    known = {skill.id for skill in skills}
    number: Counter[str] = Counter()
    records = []
    for line in (SAMPLES.parent / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        if query["skill"] in known:
            number[query["skill"]] += 1
            name = f"{query['skill']}-q{number[query['skill']]}"
            ranges = tuple((first, last) for first, last in query["critical"])
            records.append(QueryRecord(name, query["skill"], query["query"], "annotator", critical=ranges))
    return records


def write_skills(path: Path, count: int | None = None) -> BenchFolder:
    """Write a folder that has skills and nothing else."""
    write_records(path / SKILLS, sample_skills(count))
    return BenchFolder(path)


def selection(query: QueryRecord, method: str, context: str | None) -> SelectionRecord:
    """Return a selection with a context; its other numbers are of no account."""
    digest = hashlib.sha256((context or "").encode()).hexdigest()
    return SelectionRecord(query.id, query.skill, method, (), (), {}, 1, 1, 1, 1, 1, 0.0, context, digest)


def write_run(path: Path, *, skills: int = 3, queries: int | None = None) -> BenchFolder:
    """Write a folder with the methods `full` and `head`, of which `head` is the first half of the text.

    `mmr` chooses what `full` does, so that both have the same cases.
    """
    folder = write_skills(path, skills)
    texts = {skill.id: skill.text for skill in folder.skills()}
    asked = sample_queries(folder.skills())[:queries]
    write_records(path / QUERIES, asked)
    for method, share in (("full", 1.0), ("mmr", 1.0), ("head", 0.5)):
        chosen = [
            selection(query, method, texts[query.skill][: int(share * len(texts[query.skill]))])
            for query in asked
        ]
        write_records(folder.selections_file(method), chosen)
    return folder


def chat_model(
    server: OpenAIServer | str, *, model: str = "tiny", max_retries: int = 3, timeout: float = 10.0
) -> Endpoint:
    """Return a model behind the server."""
    return endpoint_at(server, model, max_retries=max_retries, timeout=timeout)


def judge_by_model(
    folder: BenchFolder, docket: Docket, chat: Endpoint, *, votes: int = VOTES, jobs: int = 1
) -> tuple[Judging, Outcome[Case]]:
    """Ask for the missing votes and judge by them; return verdicts and the outcome of asking."""
    judge = VotedJudge(folder, judge_id(chat.id), votes=votes)
    asked = ask_votes(judge, chat, docket.cases.values(), jobs=jobs)
    return judge_cases(folder, docket, judge), asked


def docket_of(folder: BenchFolder, methods: str | None = None) -> Docket:
    """Return the cases of a folder."""
    return collect_cases(folder, choose_methods(folder, methods))


def quoted_part(asked: Asked, name: str) -> str:
    """Return what a prompt quotes under a name."""
    found = re.search(rf"<{name}-([0-9a-f]+)>\n(.*)\n</{name}-\1>", asked.prompt, re.DOTALL)
    assert found, name
    return found[2]


def items(skill: str) -> list[dict[str, str]]:
    """Return good queries about a skill."""
    levels = ["easy", "medium", "hard", "medium", "easy"]
    return [
        {"query": f"Please do task {n} of {skill}.", "difficulty": level, "angle": f"part {n}"}
        for n, level in enumerate(levels)
    ]


def write_good(asked: Asked) -> Reply:
    """Answer as a good query writer."""
    written = {"queries": items(quoted_part(asked, "name"))}
    return completion(json.dumps(written), usage=USAGE)


def verdict(sufficient: object, reason: str = "nothing is missing") -> Reply:
    """Return the answer of a judge."""
    return completion(json.dumps({"reason": reason, "sufficient": sufficient}), usage=USAGE)


def judge_by_length(asked: Asked) -> Reply:
    """Answer as a judge that likes contexts which end as documents do."""
    return verdict(quoted_part(asked, "context").endswith("\n"))


def without_contexts(folder: BenchFolder, method: str) -> None:
    """Take the contexts out of the selections of a method."""
    records = [replace(record, context=None) for record in folder.selections(method)]
    write_records(folder.selections_file(method), records)


def replies(*bodies: Any) -> list[Reply]:
    """Return chat answers with these words, strings as they are and anything else as JSON."""
    return [completion(body if isinstance(body, str) else json.dumps(body), usage=USAGE) for body in bodies]


def invoke(*arguments: str | Path, **variables: str) -> Ran:
    """Run a command in the current folder, within this process."""
    return cli_process.invoke(*arguments, env=variables, cwd=Path.cwd())

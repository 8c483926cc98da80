"""Judges by votes: a language model's or people's votes on each case, and the file that keeps them.

Votes are one a line in `votes/<judge>.jsonl`, where the same context is found again under
another method or after a killed run. The majority decides (paper §4.2).
"""

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from skillpager.bench.data.chat import Asked, ask_all, quote_as_data, read_as
from skillpager.bench.data.folder import BenchFolder, file_name
from skillpager.bench.data.records import JSONL, Record, append_records, read_records
from skillpager.bench.judge.judges import Case, Judge, Verdict
from skillpager.bench.judge.sheets import SUFFICIENT, read_answers
from skillpager.errors import BenchError, SettingsError
from skillpager.library.discovery import Progress, no_progress
from skillpager.remote.chat import Message, chat_json, object_schema
from skillpager.remote.endpoint import Endpoint

VOTES = 3  # paper §4.2
# an endpoint that limits the rate of requests needs more patience than the paper's script had
MAX_RETRIES = 5
MAX_REASON_CHARS = 2_000

CRITERION = files(__package__).joinpath("criterion.txt").read_text(encoding="utf-8").rstrip("\n")

ANSWER_FORM = """\
Answer with one JSON object and nothing else: {"reason": "…", "sufficient": true} or {"reason": "…",
"sufficient": false}. "reason" says in one or two sentences what is missing, or that nothing is."""

SYSTEM_PROMPT = f"{CRITERION}\n\n{ANSWER_FORM}"

ANSWER_SCHEMA = object_schema(reason={"type": "string"}, sufficient={"type": "boolean"})
PROMPT_DIGEST = hashlib.sha256(json.dumps([SYSTEM_PROMPT, ANSWER_SCHEMA]).encode()).hexdigest()[:12]


class JudgeAnswer(BaseModel):
    """The answer of the model."""

    reason: str
    sufficient: bool


def read_verdict(data: object) -> JudgeAnswer:
    """Return the verdict of an answer, its reason on one line."""
    answer = read_as(JudgeAnswer, data)
    reason = " ".join(answer.reason.split())[:MAX_REASON_CHARS]
    return answer.model_copy(update={"reason": reason})


@dataclass(frozen=True, slots=True)
class VoteRecord(Record):
    """One vote of one judge on one case."""

    case: str  # digest of the case
    number: int  # which of the votes on that case, from 1
    sufficient: bool
    reason: str = ""
    query: str = ""  # id of the query, for people who read the file


class VotedJudge(Judge):
    """A judge that decides by the majority of its votes on a case. Safe for many threads of one process.

    A case needs `votes`, an odd number; with None it is decided by as many as there are.
    """

    def __init__(self, folder: BenchFolder, judge: str, *, votes: int | None = None) -> None:
        if votes is not None and (votes < 1 or votes % 2 == 0):
            raise SettingsError(f"{votes} votes have no majority: ask for an odd number, such as {VOTES}.")
        self.id = judge
        self.votes = votes
        self.path: Path = folder.path / "votes" / f"{file_name(judge)}{JSONL}"
        self._lock = threading.Lock()
        self._by_case: dict[str, dict[int, VoteRecord]] = defaultdict(dict)
        self._merge(read_records(self.path, VoteRecord))

    def missing(self, case: Case) -> list[int]:
        """Return the numbers of the votes that a case lacks."""
        there = self._by_case.get(case.digest, {})
        return [number for number in range(1, (self.votes or 0) + 1) if number not in there]

    def add(self, *votes: VoteRecord) -> int:
        """Store votes; return how many of them were new."""
        with self._lock:
            new = self._merge(votes)
            append_records(self.path, new)
        return len(new)

    def _merge(self, votes: Iterable[VoteRecord]) -> list[VoteRecord]:
        """Take votes in; return those that were not there."""
        new: dict[tuple[str, int], VoteRecord] = {}
        for vote in votes:
            there = self._by_case[vote.case].get(vote.number) or new.get((vote.case, vote.number))
            if there is None:
                new[vote.case, vote.number] = vote
            elif there.sufficient != vote.sufficient:
                words = {True: "sufficient", False: "insufficient"}
                raise BenchError(
                    f"{self.path} already holds vote {vote.number} on case {vote.case} (query "
                    f"{there.query}), {words[there.sufficient]} and not {words[vote.sufficient]}: remove the "
                    "wrong line there, or import under another name."
                )
        for (case, number), vote in new.items():
            self._by_case[case][number] = vote
        return list(new.values())

    def judge(self, case: Case) -> Verdict | None:
        """Return the verdict of the majority, with the reason of its first vote; None without a majority."""
        found = [vote for _, vote in sorted(self._by_case.get(case.digest, {}).items())][: self.votes]
        in_favour = sum(vote.sufficient for vote in found)
        if len(found) < (self.votes or 1) or 2 * in_favour == len(found):
            return None
        sufficient = 2 * in_favour > len(found)
        reason = next(vote.reason for vote in found if vote.sufficient == sufficient)
        return Verdict(sufficient, tuple(vote.sufficient for vote in found), reason=reason)


def judge_id(model: str) -> str:
    """Return the id of the judge that asks `model`, an endpoint's id, with the prompt of this version."""
    return f"llm:{model}#{PROMPT_DIGEST}"


def ask_votes(
    judge: VotedJudge, model: Endpoint, cases: Iterable[Case], *, jobs: int, progress: Progress = no_progress
) -> Asked[Case]:
    """Ask a model, at temperature 0, for the votes that cases lack; return the outcome.

    The votes on a case are asked for one after another, each as if it were the first. At most `jobs` cases
    are asked about at a time.
    """

    def vote(case: Case) -> None:
        skill = f"name: {case.skill.name}\ndescription: {case.skill.description}"
        user = quote_as_data({"skill": skill, "query": case.query.query, "context": case.context})
        messages = Message("system", SYSTEM_PROMPT), Message("user", user)
        for number in judge.missing(case):
            answer = chat_json(
                model, messages, schema=ANSWER_SCHEMA, schema_name="verdict", read=read_verdict, correct=True
            )
            judge.add(VoteRecord(case.digest, number, answer.sufficient, answer.reason, case.query.id))

    lacking = [case for case in cases if judge.missing(case)]
    return ask_all(lacking, vote, jobs=jobs, progress=progress)


class Imported(NamedTuple):
    """Numbers of imported votes, of new ones among them, and of cases that the folder does not have."""

    votes: int
    new: int
    elsewhere: int


def import_votes(judge: VotedJudge, cases: Mapping[str, Case], sheets: Sequence[Path]) -> Imported:
    """Store the labels of a person or an agent as votes of a judge, one for each case.

    A case without a label is skipped. The same answer again changes nothing. Labels of other cases than
    `cases` are counted and left out: the digest of a case is over its context, so that no other is meant.
    """
    votes: list[VoteRecord] = []
    elsewhere: set[str] = set()
    for path in sheets:
        answers = read_answers(path)
        elsewhere |= {*answers["case"]} - cases.keys()
        for row in answers[answers["case"].isin(list(cases))].to_dict("records"):
            case, query = row["case"], cases[row["case"]].query.id
            votes.append(VoteRecord(case, 1, row["label"] == SUFFICIENT, row["note"], query))
    if elsewhere and not votes:
        raise BenchError(
            f"Nothing was imported: none of the {len(elsewhere):,} cases has a query and context of this "
            "folder. Run the methods and data that were judged, or import into their folder."
        )
    return Imported(len(votes), judge.add(*votes), len(elsewhere))


def person_id(name: str) -> str:
    """Return the id of the judge with a name: `people:<name>`, or an agent's for `llm:<name>`."""
    kind, _, agent = name.partition(":")
    if not name.strip() or (kind == "llm" and not agent.strip()):
        raise SettingsError("It is not known whose answers these are: add --name, such as --name anna.")
    return judge_id(agent.strip()) if kind == "llm" else f"people:{name.strip()}"

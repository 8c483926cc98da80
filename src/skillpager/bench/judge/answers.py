"""Votes from files that others have answered: outputs of the batch API, filled sheets, JSONL.

    {"custom_id": …, "response": {"status_code": 200, "body": {…}}, "error": null}    batch output
    {"case": …, "vote": "sufficient", "reason": …}    {"case": …, "votes": [true, true, false]}
    case,vote,reason                                  case,votes,reason

What a person can mend is an error with file and line. What a model left unanswered is told, and stays
unjudged.
"""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from skillpager.bench.data.chat import model_in, read_as, usage_in
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.judge.cases import majority
from skillpager.bench.judge.exchange import CUSTOM_ID
from skillpager.bench.judge.judge_prompt import PROMPT_DIGEST, read_verdict
from skillpager.bench.judge.judging import Docket, Judging, judge_cases
from skillpager.bench.judge.votes import VotedJudge, VoteLog, VoteRecord
from skillpager.errors import BenchError
from skillpager.remote.chat import content_in, json_in
from skillpager.remote.endpoint import quoted

YES = frozenset({"sufficient", "s", "yes", "y", "true", "1"})
NO = frozenset({"insufficient", "i", "no", "n", "false", "0"})
# more would hide the first
MAX_SHOWN_FAULTS = 5
# comma is what is written; spreadsheets of some languages save with the others
DELIMITERS = (",", ";", "\t")
SHEET_SUFFIX = ".csv"
STATUS_OK = 200


@dataclass(frozen=True, slots=True)
class Answers:
    """What files of answers hold.

    Attributes:
        votes: The votes, each once.
        unanswered: File, line and reason of each request without a usable answer.
        models: What answered, as the API calls it; empty for people.
        batch: Whether these are outputs of the batch API.
    """

    votes: tuple[VoteRecord, ...]
    unanswered: tuple[str, ...]
    models: frozenset[str]
    batch: bool


class _Response(BaseModel):
    status_code: int
    body: object = None


class _BatchLine(BaseModel):
    custom_id: str
    response: _Response | None = None
    error: object = None


class _AnswerLine(BaseModel):
    case: str
    vote: bool | str | None = None
    votes: list[bool | str] | str | None = None
    reason: str = ""


def read_answers(paths: Sequence[Path], docket: Docket) -> Answers:
    """Return the votes of some files.

    A case without a vote is passed over. The same answer twice counts once.

    Args:
        paths: Filled sheets (`.csv`), JSONL files of answers, or outputs of the batch API.
        docket: The cases that may be answered.

    Raises:
        BenchError: A file cannot be read, or a line is no answer, names an unknown case, cannot be
            understood, or contradicts another.
    """
    ballot = _Ballot(docket)
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise BenchError(f"{path} cannot be read ({error}): give answers as UTF-8.") from error
        read = _read_sheet if path.suffix.lower() == SHEET_SUFFIX else _read_lines
        read(text, path, ballot)
    return ballot.result()


def import_answers(
    folder: BenchFolder, docket: Docket, answers: Answers, *, judge: str, votes: int | None = None
) -> tuple[int, Judging]:
    """Return how many votes were new and what became of the cases, after both were kept.

    The same answers again change nothing.

    Args:
        folder: The benchmark.
        docket: The cases.
        answers: What was read.
        judge: Id of whoever answered.
        votes: Votes a verdict takes; None for as many as each case has.

    Raises:
        BenchError: A vote was imported before with another verdict.
    """
    log = VoteLog(folder, judge)
    new = log.add(*answers.votes)
    return new, judge_cases(folder, docket, VotedJudge(log, votes=votes))


def person_id(name: str) -> str:
    """Return the id of the judge that a name means: `people:<name>`, or an agent's for `llm:<name>`.

    Raises:
        BenchError: The name is empty.
    """
    kind, _, agent = name.partition(":")
    if not name.strip() or (kind == "llm" and not agent.strip()):
        raise BenchError("Whose answers these are must be told: add --name, such as --name anna.")
    return f"llm:{agent.strip()}#{PROMPT_DIGEST}" if kind == "llm" else f"people:{name.strip()}"


@dataclass(slots=True)
class _Ballot:
    """Collects votes, and all that is wrong with them."""

    docket: Docket
    votes: dict[tuple[str, int], tuple[VoteRecord, str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def check_case(self, case: str) -> str:
        if case not in self.docket.cases:
            raise ValueError(
                f"unknown case {quoted(case)!r}: the folder has no such query and context any more, or these "
                "are answers for another folder"
            )
        return case

    def admit(self, vote: VoteRecord, place: str) -> None:
        before = self.votes.get((vote.case, vote.number))
        if before is not None and before[0].sufficient != vote.sufficient:
            raise ValueError(f"contradicts the answer on the same case at {before[1]}")
        self.votes.setdefault((vote.case, vote.number), (vote, place))

    def result(self) -> Answers:
        if len(self.kinds) > 1:
            self.faults.append("batch outputs and other answers are of different judges: import each alone")
        if self.faults:
            more = len(self.faults) - MAX_SHOWN_FAULTS
            told = "; ".join(self.faults[:MAX_SHOWN_FAULTS]) + (f"; and {more} more" if more > 0 else "")
            raise BenchError(f"Nothing was imported: {told}. Mend or remove these lines.")
        votes = tuple(vote for vote, _ in self.votes.values())
        models = frozenset(vote.model for vote in votes if vote.model)
        return Answers(votes, tuple(self.unanswered), models, batch="batch" in self.kinds)


def _read_lines(text: str, path: Path, ballot: _Ballot) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            decoded = json.loads(line)
            if isinstance(decoded, dict) and "custom_id" in decoded:
                _admit_output(decoded, place, ballot)
            else:
                _admit_answer(read_as(_AnswerLine, decoded), place, ballot)
        except (ValueError, RecursionError) as error:
            ballot.faults.append(f"{place}: {error}")


def _read_sheet(text: str, path: Path, ballot: _Ballot) -> None:
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header = [cell.strip().lower() for cell in next(reader, [])]
    if "case" not in header or not {"vote", "votes"} & set(header):
        raise BenchError(f"{path}:1 is not the header of a sheet: it must be case,vote,reason.")
    begins = reader.line_num + 1
    for row in reader:
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=False) if cell.strip()}
        place = f"{path}:{begins}"
        begins = reader.line_num + 1
        try:
            if cells:
                _admit_answer(_AnswerLine.model_validate({"case": "", **cells}), place, ballot)
        except ValueError as error:
            ballot.faults.append(f"{place}: {error}")


def _admit_answer(answer: _AnswerLine, place: str, ballot: _Ballot) -> None:
    """Admit what people, or agents, answered: one or more votes on a case."""
    ballot.kinds.add("answers")
    case = ballot.check_case(answer.case)
    votes = _votes_in(answer)
    if votes:
        majority(votes)
    for number, vote in enumerate(votes, 1):
        query = ballot.docket.cases[case].query.id
        ballot.admit(VoteRecord(case, number, vote, reason=answer.reason, query=query), place)


def _votes_in(answer: _AnswerLine) -> list[bool]:
    told = answer.votes
    several = re.split(r"[\s,;/]+", told.strip()) if isinstance(told, str) else told or []
    votes = [_vote(word) for word in several if word != ""]
    if answer.vote not in (None, ""):
        single = _vote(answer.vote)
        if votes and majority(votes) != single:
            raise ValueError("`vote` contradicts `votes`")
        votes = votes or [single]
    return votes


def _vote(word: bool | str | None) -> bool:
    if isinstance(word, bool):
        return word
    told = (word or "").strip().lower()
    if told in YES:
        return True
    if told in NO:
        return False
    raise ValueError(f"unreadable verdict {quoted(told)!r}: write sufficient or insufficient")


def _admit_output(line: Mapping[str, object], place: str, ballot: _Ballot) -> None:
    """Admit one line of a batch output."""
    ballot.kinds.add("batch")
    if "body" in line and "response" not in line:
        raise ValueError("this is a request, not an answer: import the output file of the batch")
    output = read_as(_BatchLine, dict(line))
    named = CUSTOM_ID.fullmatch(output.custom_id)
    if named is None:
        raise ValueError(f"unknown custom_id {quoted(output.custom_id)!r}")
    if named["prompt"] != PROMPT_DIGEST:
        raise ValueError(
            f"it was asked with the prompt {named['prompt']}, this version has {PROMPT_DIGEST}: export again"
        )
    case = ballot.check_case(named["case"])
    try:
        vote = _output_vote(output, case, int(named["number"]), ballot.docket.cases[case].query.id)
    except (ValueError, RecursionError) as error:
        ballot.unanswered.append(f"{place}: {quoted(str(error))}")
        return
    ballot.admit(vote, place)


def _output_vote(output: _BatchLine, case: str, number: int, query: str) -> VoteRecord:
    """Return the vote of a batch output; ValueError where the model gave none."""
    response = output.response
    if output.error or response is None or response.status_code != STATUS_OK:
        status = f"status {response.status_code}" if response else "no response"
        raise ValueError(f"{status}: {json.dumps(output.error or (response and response.body))}")
    answer = read_verdict(json_in(content_in(response.body)))
    used, _ = usage_in(response.body)
    return VoteRecord(
        case,
        number,
        answer.sufficient,
        reason=answer.reason,
        query=query,
        model=model_in(response.body),
        tokens_in=used.tokens_in if used else None,
        tokens_out=used.tokens_out if used else None,
    )

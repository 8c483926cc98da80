"""Judges that answer through files: the OpenAI batch API, people, other agents.

    batch-001.jsonl …                one request a line, for the batch API
    cases/<case>.md, answers.csv     one case a file, and the sheet to fill

    {"custom_id": …, "response": {"status_code": 200, "body": {…}}, "error": null}    batch output
    {"case": …, "vote": "sufficient", "reason": …}    {"case": …, "votes": [true, true, false]}
    case,vote,reason                                  case,votes,reason

Cases are blind: no method is named, their order is drawn with a seed, and a context that several methods
chose is asked about once. A line of answers that a person can correct is an error with file and line; a
request that a model left unanswered is reported, and its case stays unjudged. Answers on contexts that the
folder does not have are counted and left out, so that votes stay of use when some contexts have changed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from skillpager.atomic_write import write_file
from skillpager.bench.data.chat import model_in, read_as, usage_in
from skillpager.bench.data.folder import BenchFolder, check_new
from skillpager.bench.judge.cases import CASE_DIGITS, Case, majority
from skillpager.bench.judge.judge_prompt import (
    CRITERION,
    PROMPT_DIGEST,
    judge_question,
    material,
    read_verdict,
)
from skillpager.bench.judge.judging import Docket, Judging, judge_cases
from skillpager.bench.judge.votes import VotedJudge, VoteLog, VoteRecord, check_votes
from skillpager.bench.validate.sample import SEED, in_drawn_order
from skillpager.bench.validate.sheet import read_csv
from skillpager.errors import BenchError
from skillpager.remote.chat import content_in, json_in
from skillpager.remote.endpoint import Dialect, quoted

# limits of a file of the OpenAI batch API
MAX_REQUESTS = 50_000
MAX_BYTES = 200_000_000
BATCH_URL = "/v1/chat/completions"
CASE = re.compile(f"c[0-9a-f]{{{CASE_DIGITS}}}")
CUSTOM_ID = re.compile(rf"(?P<prompt>[0-9a-f]{{12}})-(?P<case>{CASE.pattern})-v(?P<number>[1-9][0-9]*)")

CASES_FOLDER, ANSWERS = "cases", "answers.csv"
ANSWER_HEADER = "case,vote,reason"
YES = frozenset({"sufficient", "s", "yes", "y", "true", "1"})
NO = frozenset({"insufficient", "i", "no", "n", "false", "0"})
# more would hide the first
MAX_SHOWN_FAULTS = 5
STATUS_OK = 200

SHEET_FORM = """\
Write your answer into the row of this case in `answers.csv`: `vote` is `sufficient` or `insufficient`,
`reason` says in one or two sentences what is missing, or that nothing is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A vote to be given by a person or agent: its case and its number, from 1."""

    case: Case
    number: int

    @property
    def custom_id(self) -> str:
        """The name of the request: prompt, case and number of the vote; it does not reveal the method."""
        return f"{PROMPT_DIGEST}-{self.case.digest}-v{self.number}"


def missing_votes(docket: Docket, log: VoteLog, *, votes: int) -> list[Wanted]:
    """Return the votes that are not in the log, in an order that reveals neither method nor skill.

    Raises:
        SettingsError: The number of votes has no majority.
    """
    check_votes(votes)
    return [
        Wanted(case, number) for case in _blind_order(docket) for number in log.missing(case.digest, votes)
    ]


def export_batch(
    wanted: Iterable[Wanted],
    out: Path,
    *,
    model: str,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
) -> list[Path]:
    """Write requests for the batch API, in order, and return the files, as many as its limits require.

    Raises:
        BenchError: The folder `out` holds something already.
    """
    check_new(out, "with --out")
    lines = []
    for vote in wanted:
        body = {"model": model, **judge_question(vote.case).body(Dialect())}
        request = {"custom_id": vote.custom_id, "method": "POST", "url": BATCH_URL, "body": body}
        lines.append(f"{json.dumps(request, ensure_ascii=False)}\n")
    paths = []
    for number, part in enumerate(batch_parts(lines, max_requests, max_bytes), 1):
        paths.append(out / f"batch-{number:03}.jsonl")
        write_file(paths[-1], "".join(part))
    return paths


def export_prompts(docket: Docket, out: Path) -> Path:
    """Write one Markdown file a case and the sheet for the answers; return the sheet.

    Raises:
        BenchError: The folder holds something already.
    """
    check_new(out, "with --out")
    cases = _blind_order(docket)
    for case in cases:
        text = f"# Case {case.digest}\n\n{CRITERION}\n\n{SHEET_FORM}\n\n{material(case)}\n"
        write_file(out / CASES_FOLDER / f"{case.digest}.md", text)
    write_file(out / ANSWERS, "".join([f"{ANSWER_HEADER}\n", *(f"{case.digest},,\n" for case in cases)]))
    return out / ANSWERS


def batch_parts(lines: Iterable[str], max_requests: int, max_bytes: int) -> Iterator[list[str]]:
    """Yield lines in parts within both limits, in order, none empty; a longer line is a part by itself."""
    part: list[str] = []
    size = 0
    for line in lines:
        added = len(line.encode())
        if part and (len(part) == max_requests or size + added > max_bytes):
            yield part
            part, size = [], 0
        part.append(line)
        size += added
    if part:
        yield part


def _blind_order(docket: Docket) -> list[Case]:
    return [docket.cases[digest] for digest in in_drawn_order(docket.cases, SEED, lambda digest: (digest,))]


@dataclass(frozen=True, slots=True)
class Answers:
    """The votes in files of answers.

    Attributes:
        votes: The votes, each once.
        unanswered: File, line and reason of each request without a usable answer.
        models: The models, as the API calls them; empty for people.
        batch: Whether these are outputs of the batch API.
        elsewhere: Number of cases with answers that the folder does not have.
    """

    votes: tuple[VoteRecord, ...]
    unanswered: tuple[str, ...]
    models: frozenset[str]
    batch: bool
    elsewhere: int = 0


class _ElsewhereError(Exception):
    """An answer is on a case that the folder does not have."""


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
    """Return the votes in filled sheets (`.csv`), JSONL files of answers, or outputs of the batch API.

    A case without a vote is skipped. The same answer twice counts once. Answers on cases that are not in the
    docket are counted and left out: the digest of a case is over its context, so that no other is meant.

    Raises:
        BenchError: A file cannot be read, a line is not an answer, cannot be understood or contradicts
            another, or no answer is on a case of the docket.
    """
    votes: dict[tuple[str, int], tuple[VoteRecord, str]] = {}
    faults: list[str] = []
    unanswered: list[str] = []
    kinds: set[str] = set()
    elsewhere: set[str] = set()
    for place, line in (entry for path in paths for entry in _read_lines(path)):
        try:
            answer: object = json.loads(line) if isinstance(line, str) else line
            given: list[VoteRecord] = []
            if isinstance(answer, dict) and "custom_id" in answer:
                kinds.add("batch")
                vote = _batch_vote(answer, docket)
                if isinstance(vote, str):
                    unanswered.append(f"{place}: {vote}")
                else:
                    given.append(vote)
            else:
                kinds.add("answers")
                # cells are text, a line of JSON has types of its own
                is_json = isinstance(line, str)
                read = read_as(_AnswerLine, answer) if is_json else _AnswerLine.model_validate(answer)
                given += _answer_votes(read, docket)
            for vote in given:
                before, where = votes.setdefault((vote.case, vote.number), (vote, place))
                if before.sufficient != vote.sufficient:
                    raise ValueError(f"contradicts the answer on the same case at {where}")
        except _ElsewhereError as error:
            elsewhere.add(str(error))
        except (ValueError, RecursionError) as error:
            faults.append(f"{place}: {error}")
    if elsewhere and not (votes or unanswered or faults):
        raise BenchError(
            f"Nothing was imported: none of the {len(elsewhere):,} cases has a query and context of this "
            "folder. Run the methods and data that were judged, or import into their folder."
        )
    if len(kinds) > 1:
        faults.append("batch outputs and other answers are of different judges: import each alone")
    if faults:
        more = len(faults) - MAX_SHOWN_FAULTS
        shown = "; ".join(faults[:MAX_SHOWN_FAULTS]) + (f"; and {more} more" if more > 0 else "")
        raise BenchError(f"Nothing was imported: {shown}. Correct or remove these lines.")
    found = tuple(vote for vote, _ in votes.values())
    models = frozenset(vote.model for vote in found if vote.model)
    return Answers(found, tuple(unanswered), models, batch="batch" in kinds, elsewhere=len(elsewhere))


def _read_lines(path: Path) -> Iterator[tuple[str, str | dict[str, str]]]:
    """Yield place and content of each line: the text of JSON, or the filled cells of a sheet by column."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path} cannot be read ({error}): give answers as UTF-8.") from error
    if path.suffix.lower() != ".csv":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield f"{path}:{number}", line
        return
    table = read_csv(text)
    if "case" not in table.header or not {"vote", "votes"} & set(table.header):
        raise BenchError(f"{path}:1 is not the header of a sheet: it must be {ANSWER_HEADER}.")
    for row, number in zip(table.rows, table.lines, strict=True):
        cells = zip(table.header, map(str.strip, row), strict=False)
        if filled := {name: cell for name, cell in cells if cell}:
            yield f"{path}:{number}", {"case": "", **filled}


def _answer_votes(answer: _AnswerLine, docket: Docket) -> list[VoteRecord]:
    """Return the votes of a person, or an agent, on a case."""
    query = _query_of(answer.case, docket)
    given = re.split(r"[\s,;/]+", answer.votes.strip()) if isinstance(answer.votes, str) else answer.votes
    votes = [_verdict(word) for word in given or [] if word != ""]
    if answer.vote not in (None, ""):
        single = _verdict(answer.vote)
        if votes and majority(votes) != single:
            raise ValueError("`vote` contradicts `votes`")
        votes = votes or [single]
    if votes:
        majority(votes)
    return [
        VoteRecord(answer.case, number, vote, reason=answer.reason, query=query)
        for number, vote in enumerate(votes, 1)
    ]


def _batch_vote(line: dict[str, object], docket: Docket) -> VoteRecord | str:
    """Return the vote in a line of a batch output, or the reason why the model gave none."""
    if "body" in line and "response" not in line:
        raise ValueError("this is a request, not an answer: import the output file of the batch")
    output = read_as(_BatchLine, line)
    named = CUSTOM_ID.fullmatch(output.custom_id)
    if named is None:
        raise ValueError(f"unknown custom_id {quoted(output.custom_id)!r}")
    if named["prompt"] != PROMPT_DIGEST:
        raise ValueError(
            f"it was asked with the prompt {named['prompt']}, this version has {PROMPT_DIGEST}: export again"
        )
    query, response = _query_of(named["case"], docket), output.response
    try:
        if output.error or response is None or response.status_code != STATUS_OK:
            status = f"status {response.status_code}" if response else "no response"
            raise ValueError(f"{status}: {json.dumps(output.error or (response and response.body))}")
        answer = read_verdict(json_in(content_in(response.body)))
    except (ValueError, RecursionError) as error:
        return quoted(str(error))
    used = usage_in(response.body)
    return VoteRecord(
        named["case"],
        int(named["number"]),
        answer.sufficient,
        reason=answer.reason,
        query=query,
        model=model_in(response.body),
        tokens_in=used.tokens_in if used else None,
        tokens_out=used.tokens_out if used else None,
    )


def _query_of(case: str, docket: Docket) -> str:
    """Return the id of the query of a case."""
    if case in docket.cases:
        return docket.cases[case].query.id
    if CASE.fullmatch(case):
        raise _ElsewhereError(case)
    raise ValueError(f"{quoted(case)!r} is no case: it must be c and {CASE_DIGITS} hexadecimal digits")


def _verdict(word: bool | str | None) -> bool:
    if isinstance(word, bool):
        return word
    text = (word or "").strip().lower()
    if text in YES | NO:
        return text in YES
    raise ValueError(f"unreadable verdict {quoted(text)!r}: write sufficient or insufficient")


def import_answers(
    folder: BenchFolder, docket: Docket, answers: Answers, *, judge: str, votes: int | None = None
) -> tuple[int, Judging]:
    """Store votes under the id of a judge, and judge by them; return how many were new, and the outcome.

    The same answers again change nothing. A verdict takes `votes` votes; None for as many as a case has.

    Raises:
        BenchError: A vote was imported before with another verdict.
    """
    log = VoteLog(folder, judge)
    new = log.add(*answers.votes)
    return new, judge_cases(folder, docket, VotedJudge(log, votes=votes))


def person_id(name: str) -> str:
    """Return the id of the judge with a name: `people:<name>`, or an agent's for `llm:<name>`.

    Raises:
        BenchError: The name is empty.
    """
    kind, _, agent = name.partition(":")
    if not name.strip() or (kind == "llm" and not agent.strip()):
        raise BenchError("It is not known whose answers these are: add --name, such as --name anna.")
    return f"llm:{agent.strip()}#{PROMPT_DIGEST}" if kind == "llm" else f"people:{name.strip()}"

"""Votes, one a line in `votes/<judge>.jsonl` of a benchmark folder, and the judges that cast them.

A vote is paid for, or given by a person, once: it is found here for the same context under another method,
and after a repeated or killed run. The majority decides.

Reference: paper §4.2.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillpager.bench.data.chat import Blame, ChatModel, NoAnswerError
from skillpager.bench.data.folder import BenchFolder, append_records, file_name, read_records
from skillpager.bench.data.records import Record
from skillpager.bench.data.spending import Bill
from skillpager.bench.judge.cases import Case, Judge, Verdict, majority
from skillpager.bench.judge.judge_prompt import PROMPT_DIGEST, judge_question, read_verdict
from skillpager.errors import BenchError, SettingsError

VOTES_FOLDER = "votes"
VOTES = 3  # paper §4.2
# an endpoint that limits the rate of requests needs more patience than the paper's script had
MAX_RETRIES = 5


@dataclass(frozen=True, slots=True)
class VoteRecord(Record):
    """One vote of one judge on one case.

    Attributes:
        case: Digest of the case.
        number: Which of the votes on that case, from 1.
        query: Id of the query, for people who read the file.
        model: The model, as the endpoint calls it; empty for people.
        tokens_in: Tokens that were sent for it; None if they were not counted.
    """

    case: str
    number: int
    sufficient: bool
    reason: str = ""
    query: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


class VoteLog:
    """The votes of one judge, read from its file. Safe for many threads of one process.

    Raises:
        BenchError: A line is damaged, or the same vote is there twice with different verdicts.
    """

    def __init__(self, folder: BenchFolder, judge: str) -> None:
        self.judge = judge
        self.path: Path = folder.path / VOTES_FOLDER / f"{file_name(judge)}.jsonl"
        self._lock = threading.Lock()
        self._votes: dict[tuple[str, int], VoteRecord] = {}
        for vote in read_records(self.path, VoteRecord):
            self._check(vote, {})
            self._votes.setdefault((vote.case, vote.number), vote)

    def on_case(self, case: str) -> list[VoteRecord]:
        """Return the votes on a case from number 1 up to the first gap."""
        found: list[VoteRecord] = []
        while (vote := self._votes.get((case, len(found) + 1))) is not None:
            found.append(vote)
        return found

    def missing(self, case: str, votes: int) -> list[int]:
        """Return the numbers from 1 to `votes` for which a case has no vote."""
        return [number for number in range(1, votes + 1) if (case, number) not in self._votes]

    def add(self, *votes: VoteRecord) -> int:
        """Store votes; return how many of them were new.

        Raises:
            BenchError: A vote is there already with another verdict; then none is stored.
        """
        with self._lock:
            new: dict[tuple[str, int], VoteRecord] = {}
            for vote in votes:
                self._check(vote, new)
                if (vote.case, vote.number) not in self._votes:
                    new.setdefault((vote.case, vote.number), vote)
            append_records(self.path, new.values())
            self._votes |= new
        return len(new)

    def _check(self, vote: VoteRecord, new: Mapping[tuple[str, int], VoteRecord]) -> None:
        there = self._votes.get((vote.case, vote.number)) or new.get((vote.case, vote.number))
        if there is not None and there.sufficient != vote.sufficient:
            words = {True: "sufficient", False: "insufficient"}
            raise BenchError(
                f"{self.path} already holds vote {vote.number} on case {vote.case} (query {there.query}), "
                f"{words[there.sufficient]} and not {words[vote.sufficient]}: remove the wrong line there, "
                "or import under another name."
            )


class VotedJudge(Judge):
    """A judge whose votes were imported; the majority of the votes on a case decides."""

    def __init__(self, log: VoteLog) -> None:
        self.id = log.judge
        self._log = log

    def judge(self, case: Case) -> Verdict:
        """Return the verdict of the majority.

        Raises:
            NoAnswerError: There is none.
        """
        try:
            return verdict_of(self._log.on_case(case.digest))
        except ValueError as error:
            raise NoAnswerError(str(error), blame=Blame.QUESTION) from None


class LLMJudge(Judge):
    """A chat model that votes on each case, at temperature 0. Safe for many threads.

    Votes are asked for one after another, each as if it were the first; those in the log, which must be
    that of `judge_id(model.id)`, are not asked for. The number of votes on each case is odd.

    Raises:
        SettingsError: The number of votes has no majority.
        ValueError: The log is another judge's.
    """

    def __init__(self, model: ChatModel, log: VoteLog, *, votes: int = VOTES) -> None:
        if log.judge != judge_id(model.id):
            raise ValueError(f"the log is that of {log.judge}")
        self.id = log.judge
        self._model = model
        self._log = log
        self._votes = check_votes(votes)

    def is_free(self, case: Case) -> bool:
        """Return True if all votes on a case are there."""
        return not self._log.missing(case.digest, self._votes)

    def estimate(self, cases: Iterable[Case]) -> Bill:
        """Return what the missing votes would cost."""
        questions = ((judge_question(case), self._log.missing(case.digest, self._votes)) for case in cases)
        return self._model.estimate(question for question, missing in questions for _ in missing)

    def judge(self, case: Case) -> Verdict:
        """Ask for the missing votes; return the verdict of the majority.

        Raises:
            NoAnswerError: A vote was not given.
            SpendLimitError: It might cost more than is left.
            MissingExtraError: The `httpx` package is not installed.

        Reference: paper §4.2.
        """
        for number in self._log.missing(case.digest, self._votes):
            answer = self._model.ask(judge_question(case), read_verdict)
            vote = VoteRecord(
                case=case.digest,
                number=number,
                sufficient=answer.value.sufficient,
                reason=answer.value.reason,
                query=case.query.id,
                model=answer.model,
                tokens_in=answer.usage.tokens_in,
                tokens_out=answer.usage.tokens_out,
            )
            self._log.add(vote)
        return verdict_of(self._log.on_case(case.digest)[: self._votes])


def judge_id(model: str) -> str:
    """Return the id of the judge that asks `model`, an endpoint's id, with the prompt of this version."""
    return f"llm:{model}#{PROMPT_DIGEST}"


def check_votes(votes: int) -> int:
    """Return the number of votes.

    Raises:
        SettingsError: It has no majority.
    """
    if votes < 1 or votes % 2 == 0:
        raise SettingsError(f"{votes} votes have no majority: ask for an odd number, such as {VOTES}.")
    return votes


def verdict_of(votes: list[VoteRecord]) -> Verdict:
    """Return the verdict of the majority, with the reason of its first vote.

    Raises:
        ValueError: The votes are even.

    Reference: paper §4.2.
    """
    sufficient = majority([vote.sufficient for vote in votes])
    reason = next(vote.reason for vote in votes if vote.sufficient == sufficient)
    return Verdict(sufficient, tuple(vote.sufficient for vote in votes), reason=reason)

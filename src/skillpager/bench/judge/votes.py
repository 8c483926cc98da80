"""Votes that cost something, kept one a line: `votes/<judge>.jsonl` of a benchmark folder.

A vote is paid for, or given by a person, once: the same context under another method, a repeated or a
killed run finds it here.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

from skillpager.bench.data.chat import Blame, NoAnswerError
from skillpager.bench.data.folder import BenchFolder, append_records, file_name, read_records
from skillpager.bench.data.records import Record
from skillpager.bench.judge.cases import Case, Verdict, majority
from skillpager.errors import BenchError

VOTES_FOLDER = "votes"


@dataclass(frozen=True, slots=True)
class VoteRecord(Record):
    """One vote of one judge on one case.

    Attributes:
        case: Digest of the case.
        number: Which of the votes on that case, from 1.
        sufficient: The vote.
        reason: What was said for it; may be empty.
        query: Id of the query, for whoever reads the file.
        model: The model, as the endpoint calls it; empty for people.
        tokens_in: Tokens that were sent for it; None where nobody counts.
        tokens_out: Tokens that came back.
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
    """The votes of one judge. Safe for many threads of one process.

    Attributes:
        judge: Id of the judge.
        path: The file.
    """

    def __init__(self, folder: BenchFolder, judge: str) -> None:
        """Read what there is.

        Raises:
            BenchError: A line is damaged, or the same vote is there twice with different verdicts.
        """
        self.judge = judge
        self.path: Path = folder.path / VOTES_FOLDER / f"{file_name(judge)}.jsonl"
        self._lock = threading.Lock()
        self._votes: dict[tuple[str, int], VoteRecord] = {}
        for vote in read_records(self.path, VoteRecord):
            self._admit(vote)

    def on_case(self, case: str) -> list[VoteRecord]:
        """Return the votes on a case from number 1 up to the first gap."""
        found: list[VoteRecord] = []
        while (vote := self._votes.get((case, len(found) + 1))) is not None:
            found.append(vote)
        return found

    def get(self, case: str, number: int) -> VoteRecord | None:
        """Return a vote, None when it is not there."""
        return self._votes.get((case, number))

    def add(self, *votes: VoteRecord) -> int:
        """Keep votes; return how many of them were new.

        Raises:
            BenchError: A vote is there already with another verdict; then none is kept.
        """
        with self._lock:
            for vote in votes:
                self._check(vote)
            new = [vote for vote in votes if (vote.case, vote.number) not in self._votes]
            append_records(self.path, new)
            for vote in new:
                self._admit(vote)
        return len(new)

    def _check(self, vote: VoteRecord) -> None:
        there = self._votes.get((vote.case, vote.number))
        if there is not None and there.sufficient != vote.sufficient:
            raise BenchError(
                f"{self.path} already holds vote {vote.number} on case {vote.case} (query {there.query}), "
                f"{_word(there.sufficient)} and not {_word(vote.sufficient)}: remove the wrong line there, "
                "or import under another name."
            )

    def _admit(self, vote: VoteRecord) -> None:
        self._check(vote)
        self._votes.setdefault((vote.case, vote.number), vote)


class VotedJudge:
    """A judge whose votes are all there: what others answered through files.

    Args:
        log: Its votes.
        votes: How many votes a case needs; None for as many as it has.
    """

    def __init__(self, log: VoteLog, *, votes: int | None = None) -> None:
        self.id = log.judge
        self._log = log
        self._votes = votes

    def is_free(self, case: Case) -> bool:  # noqa: ARG002 - the Protocol has it, for judges that ask
        """Return True: nobody is asked."""
        return True

    def judge(self, case: Case) -> Verdict:
        """Return the verdict of the majority.

        Raises:
            NoAnswerError: There are too few votes on the case.
        """
        votes = self._log.on_case(case.digest)[: self._votes]
        if len(votes) < (self._votes or 1):
            raise NoAnswerError(f"{len(votes)} of {self._votes or 1} votes are there", blame=Blame.QUESTION)
        return verdict_of(votes)


def verdict_of(votes: list[VoteRecord]) -> Verdict:
    """Return the verdict of the majority, with what its first vote said.

    Raises:
        ValueError: The votes are even.

    Reference: paper §4.2.
    """
    sufficient = majority([vote.sufficient for vote in votes])
    reason = next(vote.reason for vote in votes if vote.sufficient == sufficient)
    return Verdict(sufficient, tuple(vote.sufficient for vote in votes), reason=reason)


def _word(sufficient: bool) -> str:
    return "sufficient" if sufficient else "insufficient"

"""Cases, verdicts, and the protocol of a judge."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from skillpager.bench.data.records import QueryRecord, SkillRecord

# 96 bits: enough to tell cases apart, short enough for names of files and of batch requests
CASE_DIGITS = 24


@dataclass(frozen=True, slots=True)
class Case:
    """A context to be judged.

    Attributes:
        skill: The skill it was selected from.
        query: The query it was selected for.
        context: The text an agent would be given.
    """

    skill: SkillRecord
    query: QueryRecord
    context: str

    @property
    def digest(self) -> str:
        """The name of the case: `c` and 24 hexadecimal digits over what a reading judge is shown."""
        seen = [self.skill.name, self.skill.description, self.query.id, self.query.query, self.context]
        # the letter, because spreadsheets take some bare digests for numbers
        return f"c{hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:CASE_DIGITS]}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The finding of a judge on a case.

    Attributes:
        sufficient: Whether the context suffices.
        votes: Single votes, in order; one for a deterministic judge.
        coverage: Share of the evidence that the context holds, 0 to 1, for the evidence judge.
        reason: The judge's reason, where it gave one.
    """

    sufficient: bool
    votes: tuple[bool, ...]
    coverage: float | None = None
    reason: str = ""


class Judge(Protocol):
    """Cases to verdicts."""

    @property
    def id(self) -> str:
        """Name in the records and of the folder of judgments."""

    def is_free(self, case: Case) -> bool:
        """Return True if the verdict takes no request; such cases come first, none is lost to a stop."""

    def judge(self, case: Case) -> Verdict:
        """Return the verdict.

        Raises:
            NoAnswerError: There is none for this case, which then counts neither way.
            SpendLimitError: It would cost more than is left.
            BenchError: No case of these data can be judged.
        """


def majority(votes: Sequence[bool]) -> bool:
    """Return what most votes say.

    Raises:
        ValueError: They are even.

    Reference: paper §4.2.
    """
    in_favour = sum(votes)
    if 2 * in_favour == len(votes):
        raise ValueError(f"{len(votes)} votes have no majority")
    return 2 * in_favour > len(votes)

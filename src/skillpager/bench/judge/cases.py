"""Cases, verdicts, and the protocol of a judge."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from skillpager.bench.data.records import QueryRecord, SkillRecord

# 96 bits: enough to distinguish cases, short enough for names of files and of batch requests
CASE_DIGITS = 24


@dataclass(frozen=True, slots=True)
class Case:
    """A context to be judged: the text that an agent would be given, selected for a query from a skill."""

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
    """A judge's verdict on a case.

    Attributes:
        votes: Single votes, in order; one for a deterministic judge.
        coverage: Share of the evidence that the context holds, 0 to 1; evidence judge only.
        reason: May be empty.
    """

    sufficient: bool
    votes: tuple[bool, ...]
    coverage: float | None = None
    reason: str = ""


class Judge(Protocol):
    """Returns a verdict for a case; `id` names it in records, and its folder of judgments."""

    id: str

    def is_free(self, case: Case) -> bool:  # noqa: ARG002 - for judges that ask
        """Return True if the verdict needs no request; such cases come first, so that a stop loses none."""
        return True

    def judge(self, case: Case) -> Verdict:
        """Return the verdict.

        Raises:
            NoAnswerError: There is none for this case, which then counts neither way.
            SpendLimitError: It might cost more than is left.
            BenchError: No case of this data can be judged.
        """


def majority(votes: Sequence[bool]) -> bool:
    """Return the verdict of most votes.

    Raises:
        ValueError: They are even.

    Reference: paper §4.2.
    """
    in_favour = sum(votes)
    if 2 * in_favour == len(votes):
        raise ValueError(f"{len(votes)} votes have no majority")
    return 2 * in_favour > len(votes)

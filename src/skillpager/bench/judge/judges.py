"""Cases, verdicts and judges: the protocol, and the evidence judge."""

import hashlib
import json
from dataclasses import dataclass
from typing import Protocol

from skillpager.bench.data.evidence import AnnotatedQuery, Document
from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.errors import BenchError

EVIDENCE = "evidence"
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

    def judge(self, case: Case) -> Verdict | None:
        """Return the verdict; None if there is none, so that the case counts neither way.

        Raises:
            BenchError: No case of this data can be judged.
        """


def judge_evidence(
    skill: SkillRecord | Document, query: QueryRecord | AnnotatedQuery, context: str
) -> tuple[float, bool]:
    """Return the share of the evidence that a context holds, 0 to 1, and whether it is sufficient.

    Lines are counted as when a text file is read: a carriage return ends a line too.

    Raises:
        BenchError: The query has no critical lines.
    """
    if not query.critical:
        raise BenchError(
            f"The evidence judge needs annotated data, and query {query.id} has no critical lines: use "
            "`skillpager bench data evidence`, or the judge llm."
        )
    lines = skill.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return evidence_coverage(context, lines, query.critical)


class EvidenceJudge(Judge):
    """The evidence measure as a judge: deterministic, strict, free."""

    id = EVIDENCE

    def judge(self, case: Case) -> Verdict:
        """Return the verdict, with the coverage.

        Raises:
            BenchError: The query has no critical lines.
        """
        coverage, sufficient = judge_evidence(case.skill, case.query, case.context)
        return Verdict(sufficient, (sufficient,), coverage)

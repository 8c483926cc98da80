"""The evidence judge: checks whether a context holds the lines that an annotator marked as necessary."""

from skillpager.bench.data.evidence import AnnotatedQuery, Document
from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.bench.judge.cases import Case, Judge, Verdict
from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.errors import BenchError

EVIDENCE = "evidence"


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

"""Judges: is a context sufficient for a query? The evidence measure, a language model, people.

cases ─► judge ─► verdicts ─► judgments/<judge>/<method>.jsonl
cases    evidence, llm        judging
         exchange (votes of others, through files)
"""

from skillpager.bench.judge.cases import Case, Judge, Verdict
from skillpager.bench.judge.evidence import EvidenceJudge, judge_evidence

__all__ = ["Case", "EvidenceJudge", "Judge", "Verdict", "judge_evidence"]

"""Judges: is a context sufficient for a query? The evidence measure, a language model, people.

cases ─► judge ─► verdicts ─► judgments/<judge>/<method>.jsonl
cases    evidence_judge       judging
         votes (a model), exchange (others, through files)
"""

from skillpager.bench.judge.cases import Case, Judge, Verdict
from skillpager.bench.judge.evidence_judge import EvidenceJudge, judge_evidence

__all__ = ["Case", "EvidenceJudge", "Judge", "Verdict", "judge_evidence"]

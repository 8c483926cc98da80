"""Judges: is a context sufficient for a query? The evidence measure, a language model, people."""

from skillpager.bench.judge.judges import (
    Case,
    EvidenceJudge,
    Verdict,
    choose_methods,
    collect_cases,
    judge_cases,
    judge_evidence,
)

__all__ = [
    "Case",
    "EvidenceJudge",
    "Verdict",
    "choose_methods",
    "collect_cases",
    "judge_cases",
    "judge_evidence",
]

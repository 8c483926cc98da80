"""Judges: is a context sufficient for a query? The evidence measure, a language model, people.

`judging` collects cases and writes verdicts; `judges` and `votes` give them; `sheets` are for people.
"""

from skillpager.bench.judge.judges import Case, EvidenceJudge, Judge, Verdict, judge_evidence

__all__ = ["Case", "EvidenceJudge", "Judge", "Verdict", "judge_evidence"]

"""IntraSkill-Bench: data sets, queries, judges, runs, measures and reports (paper §4 and §5).

skills, queries ─► selections ─► judgments ─► measures ─► tables, figures, report
datasets, queries  runs          judges       measures    report
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.data.records import (
        JudgmentRecord,
        NodeRecord,
        QueryRecord,
        SelectionRecord,
        SkillRecord,
    )
    from skillpager.bench.judge.evidence_measure import evidence_coverage

__all__ = [
    "BenchFolder",
    "JudgmentRecord",
    "NodeRecord",
    "QueryRecord",
    "SelectionRecord",
    "SkillRecord",
    "evidence_coverage",
]

_HOMES = {"evidence_coverage": "judge.evidence_measure", "BenchFolder": "data.folder"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: the measure needs no extra, the rest does."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'data.records')}"), name)

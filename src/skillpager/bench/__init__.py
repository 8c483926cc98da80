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
    from skillpager.bench.report.methods import compare_methods, summarise
    from skillpager.bench.report.results import Results
    from skillpager.bench.run.runs import open_run, run_methods, run_settings
    from skillpager.bench.run.selecting import Plan

__all__ = [
    "BenchFolder",
    "JudgmentRecord",
    "NodeRecord",
    "Plan",
    "QueryRecord",
    "Results",
    "SelectionRecord",
    "SkillRecord",
    "compare_methods",
    "evidence_coverage",
    "open_run",
    "run_methods",
    "run_settings",
    "summarise",
]

_HOMES = {
    "BenchFolder": "data.folder",
    "Plan": "run.selecting",
    "Results": "report.results",
    "compare_methods": "report.methods",
    "evidence_coverage": "judge.evidence_measure",
    "open_run": "run.runs",
    "run_methods": "run.runs",
    "run_settings": "run.runs",
    "summarise": "report.methods",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for: the measure needs no extra, the rest does."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'data.records')}"), name)

"""IntraSkill-Bench: data sets, queries, judges, runs, measures and reports (paper §4 and §5).

skills, queries ─► selections ─► judgments ─► measures ─► tables, figures, report
datasets, queries  runs          judges       measures    report
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillpager.bench.data.folder import BenchFolder as BenchFolder
    from skillpager.bench.judge.evidence_measure import evidence_coverage as evidence_coverage
    from skillpager.bench.report.methods import compare_methods as compare_methods
    from skillpager.bench.report.methods import summarise as summarise
    from skillpager.bench.report.results import Results as Results
    from skillpager.bench.run.runs import open_run as open_run
    from skillpager.bench.run.runs import run_methods as run_methods
    from skillpager.bench.run.runs import run_settings as run_settings
    from skillpager.bench.run.selecting import Plan as Plan

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
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

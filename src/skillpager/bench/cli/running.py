"""What `skillpager bench run sweep ablate report reproduce` do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.bench.cli.judging import Task, judge_by_model
from skillpager.bench.cli.model import ModelOptions
from skillpager.cli.messages import UsageError, note, print_json, print_text

if TYPE_CHECKING:
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.run.selecting import Plan

EVIDENCE, LLM, NO_JUDGE = "evidence", "llm", "none"
JUDGES = (EVIDENCE, LLM, NO_JUDGE)
VOTES = 3  # paper §4.2


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a command that runs methods, as they were given."""

    data: Path | None
    out: Path | None
    judge: str
    style: str | None
    jobs: int | None
    contexts: bool
    encoder: str | None
    classifier: str | None
    cache_dir: Path | None
    as_json: bool = False


def known_suite(name: str, names: Mapping[str, str] | Sequence[str], what: str) -> str:
    """Return the suite of a sweep or ablation.

    Raises:
        UsageError: There is no such sweep or ablation.
    """
    if name not in names:
        raise UsageError(f"Unknown {what} {name!r}: choose one of {', '.join(names)}.")
    return names[name] if isinstance(names, Mapping) else name


def run_and_judge(
    suites: Mapping[str, Sequence[str]], options: RunOptions, model: ModelOptions | None = None
) -> None:
    """Run suites, judge what they made, and print a row for each method."""
    folder = make_contexts(suites, options)
    if options.judge == NO_JUDGE:
        note(f"not judged yet: `skillpager bench judge {folder.path}`")
    elif options.judge == LLM:
        labels = ",".join(label for name in suites for label in suites[name])
        asked = model or ModelOptions.of_settings(as_json=options.as_json)
        judge_by_model(Task(folder, labels, VOTES, asked))
    else:
        _print_summary(folder, suites, as_json=options.as_json)


def make_contexts(suites: Mapping[str, Sequence[str]], options: RunOptions) -> "BenchFolder":
    """Return the folder in which suites were run."""
    from skillpager.bench.run.reproduce import open_run, run_suites
    from skillpager.cli.views import progress_bar

    plan = _plan(options)
    folder = open_run(options.data, options.out, plan)
    with progress_bar("contexts") as progress:
        made = run_suites(folder, suites, plan, jobs=options.jobs, progress=progress)
    note(f"{made:,} contexts made, in {folder.path}")
    return folder


def write_and_print_report(
    folder: "BenchFolder", judge: str, out: Path | None, *, cache_dir: Path | None
) -> None:
    """Write a report, and print the files."""
    from skillpager.bench.report.report import write_report
    from skillpager.cli.session import open_pager

    pager = open_pager(cache_dir=cache_dir)
    written = write_report(
        folder, judge=folder.find_judge(judge), out=out or folder.path / "report", pager=pager
    )
    print_text("\n".join(map(str, written)))


def _plan(options: RunOptions) -> "Plan":
    from skillpager.bench.run.runs import run_settings
    from skillpager.bench.run.selecting import Plan
    from skillpager.cli.session import choose_settings

    if options.judge not in JUDGES:
        raise UsageError(f"Unknown judge {options.judge!r}: choose one of {', '.join(JUDGES)}.")
    settings = choose_settings(
        encoder=options.encoder, classifier=options.classifier, cache_dir=options.cache_dir
    )
    plan = Plan(run_settings(settings, style=options.style or "plain"), keep_contexts=options.contexts)
    if options.judge == EVIDENCE:
        return plan
    # whoever judges later reads the texts
    return replace(plan, keep_contexts=True, judge_evidence=False)


def _print_summary(folder: "BenchFolder", suites: Mapping[str, Sequence[str]], *, as_json: bool) -> None:
    from skillpager.bench.report.results import Results
    from skillpager.bench.report.summary import COLUMNS, summarise
    from skillpager.bench.run.methods import parse_method
    from skillpager.cli.views import print_table

    labels = dict.fromkeys(parse_method(label).label for name in suites for label in suites[name])
    rows = summarise(Results(folder, EVIDENCE), labels)
    if as_json:
        print_json({"out": str(folder.path), "methods": [row.to_json() for row in rows]})
    else:
        print_table(COLUMNS, [row.cells for row in rows], right=COLUMNS[1:])

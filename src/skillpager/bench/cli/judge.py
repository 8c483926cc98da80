"""`skillpager bench queries` and `bench judge`: ask a model, or exchange sheets with people."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from skillpager.cli.messages import note, reported, warn
from skillpager.cli.views import print_table, progress_bar
from skillpager.errors import BenchError, SettingsError
from skillpager.settings import load_settings

if TYPE_CHECKING:
    from skillpager.bench.data.chat import Asked, Item
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.judges import Case, Docket, Judging

# more reasons would hide what to do about them
MAX_SHOWN = 5

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Parallel requests.")]
DEFAULT_JOBS = 8  # paper §4.1


@reported
def queries(folder: Folder, jobs: Jobs = DEFAULT_JOBS) -> None:
    """Let a language model write five queries for each skill of a benchmark.

    The model is SKILLPAGER_LLM_MODEL. Queries are added to FOLDER/queries.jsonl. Skills that have queries are
    skipped, so that an interrupted run continues where it stopped.

    \b
    Examples:
      skillpager bench queries skillrouter
    """
    from skillpager.bench.data import queries as writing
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.remote.chat import chat_endpoint

    run = BenchFolder(folder)
    model = chat_endpoint(load_settings(), purpose="bench queries", max_retries=writing.MAX_RETRIES)
    missing = writing.skills_without_queries(run, model.id)
    with progress_bar("skills") as progress:
        asked = writing.write_queries(run, model, missing, jobs=jobs, progress=progress)
    total, left = len(run.skills()), len(missing) - asked.done
    note(f"{total - left:,} of {total:,} skills have queries, in {folder}")
    _report_failures(f"{left:,} of {total:,} skills have no queries yet", asked, lambda skill: skill.id)


@reported
def judge(
    folder: Folder,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Methods or suites, separated by commas. [default: all with stored contexts]"
        ),
    ] = None,
    judge: Annotated[
        Literal["evidence", "llm"],
        typer.Option(help="The annotated lines, which is free, or a language model."),
    ] = "evidence",
    votes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Votes of the model on each case, an odd number.")
    ] = 3,  # paper §4.2
    export: Annotated[
        Path | None, typer.Option(metavar="SHEET", help="Write the cases for people to judge, as CSV.")
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="JUDGE", help="Export 96 cases, balanced over the verdicts of JUDGE."),
    ] = None,  # paper §4.2
    import_: Annotated[
        list[Path] | None, typer.Option("--import", metavar="SHEET", help="Answered sheet; repeatable.")
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Who gave the imported answers; llm:NAME for an agent.")
    ] = "",
    jobs: Jobs = DEFAULT_JOBS,
) -> None:
    """Judge the contexts of a run: does each suffice for its query?

    The judge evidence looks for the annotated lines. The judge llm asks SKILLPAGER_LLM_MODEL for three votes
    on each case and stores them in FOLDER/votes, so that no vote is paid for twice. People answer through
    sheets.

    A sample is balanced over methods, verdicts and vote patterns, 3-0 and 2-1 for a judge of three votes. The
    sheet does not show them. Where there are too few cases it is smaller, with a warning.

    \b
    Examples:
      skillpager bench judge results
      skillpager bench judge results --judge llm --methods main
      skillpager bench judge results --export for-anna.csv
      skillpager bench judge results --export sample.csv --sample evidence
      skillpager bench judge results --import for-anna.csv --name anna
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.judges import EvidenceJudge, choose_methods, collect_cases, judge_cases
    from skillpager.bench.judge.sheets import export_cases

    if export and import_:
        raise SettingsError("--export and --import are two commands: the answers come in between.")
    if import_ and methods:
        raise SettingsError("--import takes the answers on all methods: leave --methods out.")
    if sample and not export:
        raise SettingsError("--sample needs --export SHEET.")
    run = BenchFolder(folder)
    if export:
        if sample:
            cases = _draw_sample(run, sample, methods)
        else:
            cases = collect_cases(run, choose_methods(run, methods)).cases
        export_cases(cases, export)
        note(f"{len(cases):,} cases; then: `bench judge {folder} --import {export} --name …`")
        return
    docket = collect_cases(run, choose_methods(run, methods))
    if import_:
        _judge_by_people(run, docket, import_, name)
    elif judge == "llm":
        _judge_by_model(run, docket, votes, jobs=jobs)
    else:
        with progress_bar("contexts") as progress:
            judging = judge_cases(run, docket, EvidenceJudge(), progress=progress)
        _print_judging(run, judging)


def _draw_sample(run: "BenchFolder", judge: str, methods: str | None) -> "Mapping[str, Case]":
    """Return the paper's sample of cases that a judge has judged."""
    from skillpager.bench.judge.agreement import METHODS, sample_cases
    from skillpager.bench.run.methods import read_labels

    chosen = read_labels(methods) if methods else METHODS
    cases, warnings = sample_cases(run, run.find_judge(judge), methods=chosen)
    for warning in warnings:
        warn(warning)
    return cases


@reported
def validate(
    folder: Folder,
    judge: Annotated[str, typer.Option(metavar="JUDGE", help="Judge to validate: an id, or its beginning.")],
    reference: Annotated[
        str, typer.Option(metavar="JUDGE", help="Whom to compare it with, such as people:anna.")
    ],
) -> None:
    """Report how a judge agrees with people, or with another judge.

    Agreement and Cohen's kappa with 95 % intervals, beside the paper's: of all cases, by vote pattern and
    by method.

    \b
    Examples:
      skillpager bench validate results --judge evidence --reference people:anna
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.agreement import compare_judges
    from skillpager.bench.report.paper import JUDGE_AGREEMENT
    from skillpager.bench.report.tables import format_cell

    run = BenchFolder(folder)
    rows = []
    for part, found in compare_judges(run, run.find_judge(judge), run.find_judge(reference)).items():
        own = format_cell(found.rate.scaled(100)), format_cell(found.kappa, "κ")
        paper = [f"{number:g}" for number in JUDGE_AGREEMENT.get(part, ())] or ["", ""]
        rows.append([part, str(found.cases), *own, f"{100 * found.macro_f1:.2f}", *paper])
    numbers = ["cases", "agreement %", "κ", "macro-F1 %", "paper %", "paper κ"]
    print_table(["part", *numbers], rows, right=numbers)


def _judge_by_people(run: "BenchFolder", docket: "Docket", sheets: list[Path], name: str) -> None:
    """Import the votes of a person, and print what they judge."""
    from skillpager.bench.judge.judges import judge_cases
    from skillpager.bench.judge.votes import VotedJudge, import_votes, person_id

    people = VotedJudge(run, person_id(name))
    imported = import_votes(people, docket.cases, sheets)
    if imported.elsewhere:
        warn(
            f"{imported.elsewhere:,} cases are left out: this folder has no such query and context, "
            "because other methods, models or data made them"
        )
    judging = judge_cases(run, docket, people)
    _print_judging(run, judging)
    note(
        f"{imported.new:,} of {imported.votes:,} votes are new, by {people.id}; "
        f"{len(judging.verdicts):,} of {len(docket.cases):,} cases have a verdict"
    )


def _judge_by_model(run: "BenchFolder", docket: "Docket", votes: int, *, jobs: int) -> None:
    from skillpager.bench.judge import votes as voting
    from skillpager.bench.judge.judges import judge_cases
    from skillpager.remote.chat import chat_endpoint

    model = chat_endpoint(load_settings(), purpose="bench judge", max_retries=voting.MAX_RETRIES)
    judge, cases = voting.VotedJudge(run, voting.judge_id(model.id), votes=votes), docket.cases.values()
    with progress_bar("cases") as progress:
        asked = voting.ask_votes(judge, model, cases, jobs=jobs, progress=progress)
    judging = judge_cases(run, docket, judge)
    _print_judging(run, judging)
    what = f"{len(cases) - len(judging.verdicts):,} of {len(cases):,} cases are not judged"
    _report_failures(what, asked, lambda case: case.query.id)


def _print_judging(run: "BenchFolder", judging: "Judging") -> None:
    """Print, for each method, how many contexts were judged and how many suffice."""
    from skillpager.bench.run.learned import LEARNED, trained_note

    learned = run.entry(LEARNED)
    if seen := {method: learned[method] for method in judging.judgments if method in learned}:
        warn(trained_note(seen, len(run.skills())))
    rows = []
    for method, records in judging.judgments.items():
        share = f"{100 * fmean(record.sufficient for record in records):.2f}" if records else ""
        rows.append([method, f"{len(records):,}", share])
    print_table(["method", "judged", "sufficient %"], rows, right=["judged", "sufficient %"])


def _report_failures(what: str, asked: "Asked[Item]", name: "Callable[[Item], str]") -> None:
    """Raise an error if there are failures or the run was stopped.

    `what` is the part that is left to do, such as `3 of 40 skills have no queries yet`.
    """
    if not asked.failures and not asked.stopped:
        return
    reasons = [f"{name(item)}: {reason}" for item, reason in asked.failures[:MAX_SHOWN]]
    if len(asked.failures) > MAX_SHOWN:
        reasons.append(f"{len(asked.failures) - MAX_SHOWN} more")
    if asked.stopped:
        reasons.append(f"the run was stopped: {asked.stopped}")
    raise BenchError(f"{what}: {'; '.join(reasons)}. What is done is saved: repeat the command to go on.")

"""Compare judges with people: `skillpager bench validate …`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, reported, warn
from skillpager.cli.views import counted, print_table

if TYPE_CHECKING:
    from skillpager.bench.report.statistics import Interval

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

RunFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder with results.")]
JudgeName = Annotated[
    str, typer.Option("--judge", metavar="JUDGE", help="Judge to validate: an id, or its beginning.")
]


@app.callback()
def validate() -> None:
    """Compare a judge with people: sample, answer, score.

    Needs the extra `[bench]`.
    """


@app.command()
@reported
def sample(
    folder: RunFolder,
    judge: JudgeName,
    out: Annotated[
        Path,
        typer.Option(
            metavar="SHEET", help="Sheet to write: CSV, or with the suffix .json tasks for Label Studio."
        ),
    ],
    methods: Annotated[
        str, typer.Option(metavar="A,B,…", help="Methods to draw from.")
    ] = "greedy_graph,topk_dependency,chunk_mmr,mmr",
) -> None:
    """Draw 96 judged contexts for people to judge (paper §4.2).

    It is balanced over methods, verdicts and vote patterns, 3-0 and 2-1 for a judge of three votes. The sheet
    does not show them. Where there are too few cases the sample is smaller, with a warning.

    \b
    Examples:
      skillpager bench validate sample run --judge evidence --out judged.csv
      skillpager bench validate sample run --judge evidence --methods mmr,full --out few.json
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.agreement import sample_cases
    from skillpager.bench.judge.sheets import export_cases
    from skillpager.bench.run.methods import split_labels

    run = BenchFolder(folder)
    cases, warnings = sample_cases(run, run.find_judge(judge), methods=split_labels(methods))
    export_cases(cases, out)
    for warning in warnings:
        warn(warning)
    note(f"{counted(len(cases), 'case')} in {out}; then: `bench validate score {folder} {out} --judge …`")


@app.command()
@reported
def score(
    folder: RunFolder,
    sheets: Annotated[
        list[Path],
        typer.Argument(metavar="SHEET…", help="Answered sheets of a sample, or exports of Label Studio."),
    ],
    judge: JudgeName,
) -> None:
    """Report how people agree with the judge.

    Agreement and Cohen's kappa with 95 % bootstrap intervals, beside the paper's, in all and by vote pattern.

    \b
    Examples:
      skillpager bench validate score run judged.csv --judge evidence
      skillpager bench validate score run judged.anna.csv judged.ben.csv --judge evidence
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.agreement import score_sheets
    from skillpager.bench.report.paper import JUDGE_AGREEMENT

    run = BenchFolder(folder)
    judge = run.find_judge(judge)
    groups = score_sheets(run, judge, sheets)
    note(f"People (the reference) against {judge}, 95 % bootstrap intervals in brackets:")
    rows = []
    for group in groups:
        measured = group.agreement
        kappa = "undefined: one label only" if measured.kappa is None else _interval(measured.kappa, 3)
        own = [f"{measured.cases}", _interval(measured.rate.scaled(100), 1), kappa]
        paper = JUDGE_AGREEMENT.get(group.name)
        there = [f"{paper.agreement:g}", f"{paper.kappa:g}"] if paper else ["", ""]
        rows.append([group.sheet, group.name, *own, f"{100 * measured.macro_f1:.2f}", *there])
    numbers = ["cases", "agreement %", "κ", "macro-F1 %", "paper %", "paper κ"]
    print_table(["sheet", "part", *numbers], rows, right=numbers)


def _interval(interval: "Interval", digits: int) -> str:
    return f"{interval.value:.{max(digits, 2)}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"

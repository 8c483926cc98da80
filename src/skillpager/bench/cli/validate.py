"""Compare judges with people: `skillpager bench validate …`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, reported, warn
from skillpager.cli.options import AsJson
from skillpager.cli.views import counted, print_table

if TYPE_CHECKING:
    from skillpager.bench.report.statistics import Interval
    from skillpager.bench.validate.agreement import Scores

PERCENT = 100
# cases without a label that a warning names
NAMED_CASES = 5

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

RunFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder with results.")]
Out = Annotated[
    Path,
    typer.Option(
        metavar="SHEET",
        help="Sheet to write, with its key beside it: CSV, or with the suffix .json tasks for Label Studio.",
    ),
]


@app.callback()
def validate() -> None:
    """Compare a judge with people: sample, answer, score.

    Needs `pip install "skillpager[bench]"`.
    """


@app.command()
@reported
def sample(
    folder: RunFolder,
    judge: Annotated[str, typer.Option(metavar="JUDGE", help="Judge to validate: an id, or its beginning.")],
    out: Out,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Methods to draw from. [default: greedy_graph,topk_dependency,chunk_mmr,mmr]",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw 96 judged contexts for people to judge (paper §4.2).

    It is balanced over methods, verdicts and vote patterns, 3-0 and 2-1 for a judge of three votes. The sheet
    is blind: method, verdict and pattern are in SHEET.key.jsonl. Where there are too few cases the sample
    is smaller, with a warning.

    \b
    Examples:
      skillpager bench validate sample run --judge evidence --out judged.csv
      skillpager bench validate sample run --judge evidence --methods mmr,full --out few.json
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.run.methods import split_labels
    from skillpager.bench.validate.sample import METHODS, sample_judgments, write_sample

    chosen = split_labels(methods) if methods else METHODS
    run = BenchFolder(folder)
    drawn = sample_judgments(run, run.find_judge(judge), methods=chosen)
    key, warnings = write_sample(out, drawn)
    for warning in warnings:
        warn(warning)
    if as_json:
        print_json({"sheet": str(out), "key": str(key), "cases": len(drawn.cases)})
    note(f"{counted(len(drawn.cases), 'case')} in {out}; what annotators must not see is in {key}")


@app.command()
@reported
def score(
    sheets: Annotated[
        list[Path],
        typer.Argument(metavar="SHEET…", help="Answered sheets of one sample, or exports of Label Studio."),
    ],
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Key of the sheet. [default: the file beside it]")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--run", metavar="FOLDER", help="Store the judge's agreement here, for `bench report`."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report how people agree with the judge.

    Agreement and Cohen's kappa with 95 % bootstrap intervals, beside the paper's, in all and by vote pattern.
    --json adds precision, recall and F1 of each label, and confusion matrices.

    \b
    Examples:
      skillpager bench validate score judged.csv --run run
      skillpager bench validate score judged.anna.csv judged.ben.csv --json
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.validate.agreement import note_agreement, score_sheets

    scores = score_sheets(sheets, key=key)
    if folder:
        note_agreement(BenchFolder(folder), scores)
    for sheet, cases in scores.missing.items():
        if cases:
            named = ", ".join(cases[:NAMED_CASES]) + (", …" if len(cases) > NAMED_CASES else "")
            warn(f"{sheet}: {len(cases)} cases have no label and do not count ({named})")
    if as_json:
        print_json(asdict(scores))
    else:
        _print_scores(scores)


def _print_scores(scores: "Scores") -> None:
    """Print a table of all groups, with the paper's numbers beside them."""
    from skillpager.bench.report.paper import JUDGE_AGREEMENT

    note(f"People (the reference) against {scores.rater}, 95 % bootstrap intervals in brackets:")
    rows = []
    for group in scores.groups:
        measured = group.agreement
        kappa = "undefined: one label only" if measured.kappa is None else _interval(measured.kappa, 3)
        own = [f"{measured.cases}", _interval(measured.rate.scaled(PERCENT), 1), kappa]
        paper = JUDGE_AGREEMENT.get(group.name)
        there = [f"{paper.agreement:g}", f"{paper.kappa:g}"] if paper else ["", ""]
        rows.append([group.sheet, group.name, *own, f"{PERCENT * measured.macro_f1:.2f}", *there])
    numbers = ["cases", "agreement %", "κ", "macro-F1 %", "paper %", "paper κ"]
    print_table(["sheet", "part", *numbers], rows, right=numbers)


def _interval(interval: "Interval", digits: int) -> str:
    return f"{interval.value:.{max(digits, 2)}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"

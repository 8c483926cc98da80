"""Compare judges and node types with people: `skillpager bench validate …`."""

import sys
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import note, print_json, print_text, reported, warn
from skillpager.cli.options import AsJson
from skillpager.cli.views import counted, is_terminal, print_table

if TYPE_CHECKING:
    from skillpager.bench.report.statistics import Interval
    from skillpager.bench.validate.agreement import Agreement
    from skillpager.bench.validate.sample import Sample
    from skillpager.bench.validate.scores import Scores

# the library's defaults, known without importing it
PER_TYPE = 16
SEED = 42
PORT = 8642
PERCENT = 100

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

RunFolder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder with results.")]
Out = Annotated[
    Path, typer.Option(metavar="SHEET", help="Sheet to write, a CSV file; its key is written beside it.")
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Another seed draws other cases.")]


@app.callback()
def validate() -> None:
    """Compare a judge and the node types with people: sample, answer, score.

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
    per_cell: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Cases of each method, verdict and vote pattern. [default: 96 cases in all, the paper's 6]",
        ),
    ] = None,
    seed: Seed = SEED,
    as_json: AsJson = False,
) -> None:
    """Draw 96 judged contexts for people to judge (paper §4.2).

    It is balanced over methods, verdicts and vote patterns, 3-0 and 2-1 for a judge of three votes. The sheet
    is blind: method, verdict and pattern are in SHEET.key.jsonl. Where there are too few cases the sample
    is smaller, with a warning.

    \b
    Examples:
      skillpager bench validate sample run --judge evidence --out judged.csv
      skillpager bench validate sample run --judge evidence --methods mmr,full --per-cell 4 --out few.csv
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.run.methods import split_labels
    from skillpager.bench.validate.sample import METHODS, sample_judgments

    chosen = split_labels(methods) if methods else METHODS
    run = BenchFolder(folder)
    drawn = sample_judgments(run, run.find_judge(judge), methods=chosen, per_cell=per_cell, seed=seed)
    _write(drawn, out, ["method", "verdict", "votes"], as_json=as_json)


@app.command()
@reported
def types(
    folder: RunFolder,
    out: Out,
    per_type: Annotated[
        int, typer.Option(metavar="N", min=1, help="Nodes of each predicted type.")
    ] = PER_TYPE,
    seed: Seed = SEED,
    as_json: AsJson = False,
) -> None:
    """Draw 96 nodes for people to type (paper §5.1).

    It is balanced over predicted types, and within a type over subsets of the benchmark and sizes of skills.
    The sheet is blind: the predicted type is in SHEET.key.jsonl.

    \b
    Examples:
      skillpager bench validate types run --out typed.csv
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.validate.sample import sample_types

    drawn = sample_types(BenchFolder(folder), per_type=per_type, seed=seed)
    _write(drawn, out, ["type"], as_json=as_json)


@app.command()
@reported
def serve(
    sheet: Annotated[Path, typer.Argument(metavar="SHEET", help="Sheet to answer.")],
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Answer in a copy of your own, SHEET.NAME.csv.")
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 for any that is free.")
    ] = PORT,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Answer a sheet on a local web page, with the keyboard.

    Every answer is written into the sheet at once. Only this machine can reach the page. Ctrl-C ends it.

    \b
    Examples:
      skillpager bench validate serve judged.csv --open
      skillpager bench validate serve judged.csv --annotator anna --port 8643
    """
    from skillpager.bench.validate.sheet import copy_for_annotator
    from skillpager.bench.validate.web import SheetServer

    own = copy_for_annotator(sheet, annotator) if annotator else sheet
    with SheetServer(own, port=port) as server:
        note(f"{own} is open for answers until Ctrl-C at")
        print_text(server.url)
        sys.stdout.flush()
        if open_page:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve()
        labelled, cases = server.answered()
        note(f"{labelled} of {cases} cases are labelled in {own}")


@app.command()
@reported
def score(
    sheets: Annotated[
        list[Path], typer.Argument(metavar="SHEET…", help="Answered sheet; copies of other annotators.")
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
    """Report how people agree with the judge or the parser.

    Agreement and Cohen's kappa with 95 % bootstrap intervals, beside the paper's, overall and by part; the
    same of each two annotators; precision, recall and F1 of each label; confusion matrices.

    \b
    Examples:
      skillpager bench validate score judged.csv --run run
      skillpager bench validate score typed.anna.csv typed.ben.csv --json
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.validate.scores import note_agreement, score_sheets

    scores = score_sheets(sheets, key=key)
    if folder:
        note_agreement(BenchFolder(folder), scores)
    for scored in scores.sheets:
        if scored.warning:
            warn(scored.warning)
    if as_json:
        print_json(asdict(scores))
    else:
        _print_scores(scores)


def _write(drawn: "Sample", out: Path, columns: Sequence[str], *, as_json: bool) -> None:
    """Write a sample and print its contents."""
    from skillpager.bench.validate.sample import write_sample

    key = write_sample(out, drawn)
    for warning in drawn.warnings:
        warn(warning)
    cases = len(drawn.sheet.cases)
    if as_json:
        strata = [asdict(stratum) for stratum in drawn.strata]
        print_json({"sheet": str(out), "key": str(key), "cases": cases, "strata": strata})
        return
    rows = [[*stratum.name, f"{stratum.available:,}", str(stratum.drawn)] for stratum in drawn.strata]
    print_table([*columns, "available", "drawn"], rows, right=["available", "drawn"])
    note(f"{counted(cases, 'case')} in {out}; what annotators must not see is in {key}")


def _print_scores(scores: "Scores") -> None:
    note(f"People (the reference) against {scores.rater}, 95 % bootstrap intervals in brackets:")
    rows = []
    for scored in scores.sheets:
        for group in scored.groups:
            part = group.name if group.by == group.name else f"{group.by} {group.name}"
            published = group.published
            kappa = published.kappa if published else None
            paper = {
                "paper %": _percent(published.rate if published else None),
                "paper κ": "" if kappa is None else f"{kappa:.3f}",
                "paper macro-F1 %": _percent(published.macro_f1 if published else None),
            }
            rows.append({"sheet": scored.sheet, "part": part, **_numbers(group.agreement), **paper})
    _print_rows(rows, texts=2)
    for scored in scores.sheets:
        _print_labels(f"{scored.sheet} (rows), {scores.rater} (columns)", scored.groups[0].agreement)
    for pair in scores.pairs:
        _print_rows([{"annotators": f"{pair.first}, {pair.second}", **_numbers(pair.agreement)}])
        _print_labels(f"{pair.first} (rows), {pair.second} (columns)", pair.agreement)


def _print_labels(title: str, agreement: "Agreement") -> None:
    """Print the confusion matrix, and precision, recall and F1 of each label that occurs."""
    labels = agreement.labels
    matrix = zip(labels, agreement.confusion, strict=True)
    _print_rows([{title: label, **dict(zip(labels, map(str, row), strict=True))} for label, row in matrix])
    _print_rows(
        [
            {
                "label": score.label,
                "precision %": _percent(score.precision),
                "recall %": _percent(score.recall),
                "F1 %": _percent(score.f1),
                "in rows": str(score.reference),
                "in columns": str(score.rated),
            }
            for score in agreement.scores
        ]
    )


def _print_rows(rows: Sequence[Mapping[str, str]], *, texts: int = 1) -> None:
    """Print rows of the same columns, without empty columns; all but the first `texts` hold numbers."""
    columns = [column for column in rows[0] if any(row[column] for row in rows)]
    print_table(columns, [[row[column] for column in columns] for row in rows], right=columns[texts:])
    # tables on a terminal end with a blank line
    if not is_terminal():
        print_text("\n")


def _numbers(agreement: "Agreement") -> dict[str, str]:
    kappa = agreement.kappa
    return {
        "cases": str(agreement.cases),
        "agreement %": _interval(agreement.rate.scaled(PERCENT), 1),
        "κ": "undefined: one label only" if kappa is None else _interval(kappa, 3),
        "macro-F1 %": _percent(agreement.macro_f1),
    }


def _percent(share: float | None) -> str:
    return "" if share is None else f"{PERCENT * share:.2f}"


def _interval(interval: "Interval", digits: int) -> str:
    return f"{interval.value:.{max(digits, 2)}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"

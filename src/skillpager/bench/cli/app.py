"""The commands of `skillpager bench`; `skillpager.cli.app` mounts them by the name of this module."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from skillpager.bench.cli.data import app as data_app
from skillpager.bench.cli.judge import judge, queries, validate
from skillpager.bench.cli.route import route
from skillpager.cli.messages import FAILED, note, print_json, print_text, reported, warn
from skillpager.cli.options import AsJson, CacheDir, ClassifierName, EncoderName, IndexOptions
from skillpager.cli.views import print_table, progress_bar
from skillpager.errors import SettingsError

if TYPE_CHECKING:
    from skillpager.bench.data.folder import BenchFolder

EVIDENCE = "evidence"
# headings of what `summarise` returns; intervals draw skills
SUMMARY = (
    *("method", "queries", "suff. %", "95 % CI", "coverage %", "recall %", "AP %", "nDCG %"),
    *("nodes", "tokens", "token red. %", "macro %", "median %", "ms"),
)

Contexts = Annotated[
    bool, typer.Option("--contexts/--no-contexts", help="Store the pages' texts, which other judges need.")
]
AllowTrained = Annotated[
    bool,
    typer.Option(
        "--allow-trained",
        help="Also show methods that have learned from the skills; every table and picture then says so.",
    ),
]


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The folders from which a run takes its data and into which it writes its results."""

    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Benchmark folder, or folder of evidence data. [default: the data in --out]"
        ),
    ] = None
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the results. [default: --data]")
    ] = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of how methods are run."""

    style: Annotated[
        str | None,
        typer.Option(
            metavar="STYLE",
            help="plain: the nodes alone, as in the paper (default). marked or xml: as agents get them.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes. [default: one per processor]"),
    ] = None
    encoder: EncoderName = None
    classifier: ClassifierName = None
    cache_dir: CacheDir = None
    allow_trained: AllowTrained = False


HELP = """Compare methods on skills and queries: IntraSkill-Bench.

Needs the extra `[bench]`.
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)
app.add_typer(data_app, name="data")
app.command()(queries)
app.command()(route)


@app.command()
@reported
def run(
    place: PlaceOptions,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Methods or suites, separated by commas: mmr,bm25,mmr@lambda=0.9,k=20."
        ),
    ] = "main",
    judge: Annotated[
        Literal["evidence", "none"], typer.Option(help="none: judge later, with `bench judge`.")
    ] = "evidence",
    contexts: Contexts = True,
    *,
    how: RunOptions,
    baseline: Annotated[
        str | None, typer.Option(metavar="METHOD", help="Also run METHOD, and compare the others with it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run methods on the queries of a benchmark.

    A method is a strategy of `page --strategy`, with options after an @: lambda=0.9, k=20 (or all),
    boundary=80, tokens=40% (or a number), sufficiency=0.9 (of navigator), encoder=NAME, classifier=NAME,
    notes=FOLDER (of navigator: what `skillpager enrich` wrote).
    MODULE:NAME is a strategy, encoder or classifier of your own, in an installed module or in this folder.
    A suite is a set of methods: main, offline, graph, concept, folders, lambda, k, size, boundary, budget,
    granularity.
    Methods that are finished are not run again, but for strategies of your own.

    \b
    Examples:
      skillpager bench run --data skillsbench --out results --methods offline
      skillpager bench run --out results --methods mmr@lambda=0.9,hybrid@tokens=40%
      skillpager bench run --data skillrouter --judge none --methods main
      skillpager bench run --out results --methods own_strategy:SharedWords,mmr
      skillpager bench run --out results --methods sections,bm25 --baseline navigator
    """
    from skillpager.bench.report.methods import summarise
    from skillpager.bench.report.results import Results
    from skillpager.bench.run.methods import parse_method, read_labels

    labels = [*read_labels(methods), *([parse_method(baseline).label] if baseline else [])]
    folder = _make_contexts(labels, place, how, keep=contexts, judged=judge == EVIDENCE)
    if judge == "none":
        note(f"not judged yet: `skillpager bench judge {folder.path}`")
        return
    results = Results(folder, EVIDENCE, allow_trained=how.allow_trained)
    rows = summarise(results, dict.fromkeys(labels), baseline=labels[-1] if baseline else None)
    if as_json:
        print_json({"out": str(folder.path), "methods": rows})
    else:
        columns = [*SUMMARY, *([f"− {labels[-1]}, points", "95 % CI", "p, Holm"] if baseline else [])]
        lines = [list(map(_cell, row.values(), columns)) for row in rows]
        print_table(columns, lines, right=columns[1:])
    if results.trained_note:
        warn(results.trained_note)


def _cell(value: Any, heading: str) -> str:
    """Return a number as in tables of a report, or the two ends of an interval."""
    from skillpager.bench.report.tables import format_cell

    numbers = value if isinstance(value, list) else [value]
    return "–".join(format_cell(number, heading) for number in numbers)


app.command()(judge)
app.command()(validate)


@app.command()
@reported
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the results.")],
    judge: Annotated[
        str, typer.Option(metavar="NAME", help="Judge to report: an id, or its beginning, such as llm.")
    ] = EVIDENCE,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder to write. [default: RUN/report]")
    ] = None,
    baseline: Annotated[
        str, typer.Option(metavar="METHOD", help="Compare the other methods with METHOD.")
    ] = "mmr",
    allow_trained: AllowTrained = False,
) -> None:
    """Write tables and figures of a run: report.html, tables/, figures/.

    \b
    Examples:
      skillpager bench report results
      skillpager bench report results --baseline navigator --out beside-navigator
    """
    from skillpager.bench.data.folder import BenchFolder

    _write_report(BenchFolder(folder), judge, out, allow_trained=allow_trained, baseline=baseline)


@app.command()
@reported
def compare(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the results.")],
    published: Annotated[Path, typer.Argument(metavar="PUBLISHED", help="Published rows, or another run.")],
    tolerance: Annotated[
        float, typer.Option(metavar="POINTS", help="Points by which measures may differ.")
    ] = 1.0,  # twice the largest difference that was seen between machines
) -> None:
    """Compare a run with published rows of the same methods and queries.

    The exit code is 1 if a measure of a method differs by more points than the tolerance.

    \b
    Examples:
      skillpager bench compare results run
    """
    if not 0 <= tolerance <= 100:  # measures are percentages; nan is neither
        raise SettingsError(f"--tolerance is {tolerance:g}: give points from 0 to 100.")
    from skillpager.bench.report.compare import compare_runs, open_results

    rows = compare_runs(open_results(run), open_results(published), tolerance=tolerance)
    rows["agrees"] = rows["agrees"].map({True: "yes", False: "no"})
    columns = list(map(str, rows))
    lines = [list(map(_cell, row, columns)) for row in rows.astype(object).to_numpy().tolist()]
    print_table(columns, lines, right=columns[1:-1])
    if differing := rows["method"][rows["agrees"] == "no"].tolist():
        note(f"more than {tolerance:g} points apart: {', '.join(differing)}")
        raise typer.Exit(FAILED)


@app.command()
@reported
def reproduce(place: PlaceOptions, contexts: Contexts = False, *, how: RunOptions) -> None:
    """Run every suite with the evidence judge and write the report: each table of the paper, and its sweeps.

    It ends with exit code 1, before anything is run, if a method has learned from the skills.

    \b
    Examples:
      skillpager bench data fetch --split skillsbench --out skillsbench
      skillpager bench reproduce --data skillsbench --out results
    """
    from skillpager.bench.run.methods import SUITES

    labels = [label for suite in SUITES.values() for label in suite]
    folder = _make_contexts(labels, place, how, keep=contexts, judged=True, complete=True)
    _write_report(folder, EVIDENCE, None, allow_trained=how.allow_trained)


def _make_contexts(
    labels: Iterable[str],
    place: PlaceOptions,
    how: RunOptions,
    *,
    keep: bool,
    judged: bool,
    complete: bool = False,
) -> "BenchFolder":
    """Return the folder in which methods were run."""
    from skillpager.bench.run.runs import open_run, run_methods, run_settings
    from skillpager.bench.run.selecting import Plan
    from skillpager.cli.session import choose_settings
    from skillpager.encoders.builtin import usable_processors

    settings = choose_settings(IndexOptions(how.cache_dir, encoder=how.encoder, classifier=how.classifier))
    plan = Plan(
        run_settings(settings, style=how.style or "plain"),
        keep_contexts=keep or not judged,  # later judges read the texts
        judge_evidence=judged,
        allow_trained=how.allow_trained,
    )
    folder = open_run(place.data, place.out, plan)
    with progress_bar("contexts") as progress:
        jobs = how.jobs or usable_processors()
        made = run_methods(folder, labels, plan, jobs=jobs, complete=complete, progress=progress)
    note(f"{made:,} contexts made, in {folder.path}")
    return folder


def _write_report(
    folder: "BenchFolder", judge: str, out: Path | None, *, allow_trained: bool, baseline: str = "mmr"
) -> None:
    """Write a report, and print the files."""
    from skillpager.bench.report.report import write_report

    target, judge = out or folder.path / "report", folder.find_judge(judge)
    written = write_report(folder, judge=judge, out=target, allow_trained=allow_trained, baseline=baseline)
    print_text("\n".join(map(str, written)))

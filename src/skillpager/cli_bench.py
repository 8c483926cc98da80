"""The benchmark on the command line: `skillpager bench …`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager import cli_bench_data, cli_bench_judge, cli_bench_validate
from skillpager.cli_messages import UsageError, note, print_json, print_text, reported
from skillpager.cli_options import AsJson, CacheDir, ClassifierName, EncoderName

if TYPE_CHECKING:
    from skillpager.bench.folder import BenchFolder
    from skillpager.bench.selecting import Plan

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

EVIDENCE, NO_JUDGE = "evidence", "none"


@app.callback()
def bench() -> None:
    """Measure methods on skills and queries: IntraSkill-Bench.

    Needs `pip install "skillpager[bench]"`.
    """


app.add_typer(cli_bench_data.app, name="data")
app.command()(cli_bench_judge.queries)


Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Benchmark folder, or folder of evidence data; the data in --out by default.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="RUN", help="Folder of the results; --data by default.", show_default=False
    ),
]
JudgeName = Annotated[
    str,
    typer.Option("--judge", metavar="NAME", help="evidence, or none to judge later with `bench judge`."),
]
RunStyle = Annotated[
    str | None,
    typer.Option(
        "--style",
        metavar="STYLE",
        help="plain: the nodes alone (default), as in the paper. marked or xml: as users get it.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        help="Processes; one for each processor by default.",
        show_default=False,
    ),
]
Contexts = Annotated[
    bool,
    typer.Option("--contexts/--no-contexts", help="Whether results hold the texts, which other judges need."),
]


@app.command()
@reported
def run(
    data: Data = None,
    out: Out = None,
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            metavar="LIST",
            help="Methods or suites, divided by commas, such as mmr,bm25,mmr@lambda=0.9,k=20.",
        ),
    ] = "main",
    judge: JudgeName = EVIDENCE,
    style: RunStyle = None,
    jobs: Jobs = None,
    contexts: Contexts = True,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Run methods on the queries of a benchmark.

    A method is a strategy of `page --strategy`, with options after an @: lambda=0.9, k=20 (or all),
    boundary=80, tokens=40% (or a number), encoder=NAME, classifier=NAME. A suite stands for its methods:
    main, offline, graph, concept, lambda, k, boundary, budget, granularity, encoder, classifier.
    What is done already is not done again.

    \b
    Examples:
      skillpager bench run --data dev --out results --methods offline
      skillpager bench run --out results --methods mmr@lambda=0.9,hybrid@tokens=40%
      skillpager bench run --data skillrouter --judge none --methods main
    """
    from skillpager.bench.methods import split_labels
    from skillpager.bench.suites import SUITES, suite

    plan = _plan(judge, style, encoder, classifier, cache_dir, contexts=contexts)
    parts = split_labels(methods)
    suites = {name: suite(name) for name in parts if name in SUITES}
    single = [label for label in parts if label not in SUITES]
    _run(data, out, {**suites, **({"chosen": single} if single else {})}, plan, jobs=jobs, as_json=as_json)


@app.command()
@reported
def sweep(
    knob: Annotated[
        str,
        typer.Argument(metavar="KNOB", help="lambda, k, threshold (nodes up to which k is 20) or budget."),
    ],
    data: Data = None,
    out: Out = None,
    judge: JudgeName = EVIDENCE,
    style: RunStyle = None,
    jobs: Jobs = None,
    contexts: Contexts = False,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Run MMR over the values of a knob, or every offline method over budgets of 10 to 90 % of the tokens.

    \b
    Examples:
      skillpager bench sweep lambda --data dev --out results
      skillpager bench sweep budget --out results
    """
    from skillpager.bench.suites import SWEEPS, suite

    name = _known(knob, SWEEPS, "sweep")
    plan = _plan(judge, style, encoder, classifier, cache_dir, contexts=contexts)
    _run(data, out, {name: suite(name)}, plan, jobs=jobs, as_json=as_json)


@app.command()
@reported
def ablate(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="concept, graph, granularity, encoder or classifier.")
    ],
    data: Data = None,
    out: Out = None,
    with_: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="NAME", help="A further encoder or classifier to compare; may be repeated."
        ),
    ] = None,
    judge: JudgeName = EVIDENCE,
    style: RunStyle = None,
    jobs: Jobs = None,
    contexts: Contexts = True,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Run MMR with one part taken away or exchanged.

    \b
    Examples:
      skillpager bench ablate concept --data dev --out results
      skillpager bench ablate encoder --out results --with openai:bge-m3
    """
    from skillpager.bench.suites import ABLATIONS, suite

    name = _known(part, ABLATIONS, "ablation")
    plan = _plan(judge, style, encoder, classifier, cache_dir, contexts=contexts)
    _run(data, out, {name: suite(name, extra=with_ or [])}, plan, jobs=jobs, as_json=as_json)


app.command()(cli_bench_judge.judge)
app.add_typer(cli_bench_validate.app, name="validate")


@app.command()
@reported
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the results.")],
    judge: Annotated[str, typer.Option("--judge", metavar="ID", help="Whose verdicts.")] = EVIDENCE,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where to write; RUN/report by default.", show_default=False
        ),
    ] = None,
) -> None:
    """Write tables and figures of a run: report.html, report.md, tables/, figures/.

    \b
    Examples:
      skillpager bench report results
    """
    from skillpager.bench.folder import BenchFolder

    _write_report(BenchFolder(folder), judge, out)


@app.command()
@reported
def reproduce(
    data: Data = None,
    out: Out = None,
    style: RunStyle = None,
    jobs: Jobs = None,
    encoder: EncoderName = None,
    classifier: ClassifierName = None,
    cache_dir: CacheDir = None,
) -> None:
    """Run every suite with the evidence judge and write the report: each table and figure of the paper.

    \b
    Examples:
      skillpager bench data fetch --split dev --out dev
      skillpager bench reproduce --data dev --out results
    """
    from skillpager.bench.suites import SUITES

    plan = _plan(EVIDENCE, style, encoder, classifier, cache_dir, contexts=False)
    folder = _made(data, out, SUITES, plan, jobs=jobs)
    _write_report(folder, EVIDENCE, None)


def _known(name: str, names: Mapping[str, str] | Sequence[str], what: str) -> str:
    """Return the suite of a sweep or ablation."""
    if name not in names:
        raise UsageError(f"Unknown {what} {name!r}: choose one of {', '.join(names)}.")
    return names[name] if isinstance(names, Mapping) else name


def _plan(
    judge: str,
    style: str | None,
    encoder: str | None,
    classifier: str | None,
    cache_dir: Path | None,
    *,
    contexts: bool,
) -> "Plan":
    from skillpager.bench.runs import run_settings
    from skillpager.bench.selecting import Plan
    from skillpager.cli_session import choose_settings

    if judge not in (EVIDENCE, NO_JUDGE):
        raise UsageError(
            f"--judge can be {EVIDENCE} or {NO_JUDGE} here: other judges answer to `bench judge`."
        )
    settings = choose_settings(encoder=encoder, classifier=classifier, cache_dir=cache_dir)
    judged = judge == EVIDENCE
    return Plan(run_settings(settings, style=style or "plain"), keep_contexts=contexts, judge_evidence=judged)


def _made(
    data: Path | None,
    out: Path | None,
    suites: Mapping[str, Sequence[str]],
    plan: "Plan",
    *,
    jobs: int | None,
) -> "BenchFolder":
    """Return the folder in which suites were run."""
    from skillpager.bench.reproduce import open_run, run_suites
    from skillpager.cli_progress import progress_bar

    folder = open_run(data, out, plan)
    with progress_bar("contexts") as progress:
        made = run_suites(folder, suites, plan, jobs=jobs, progress=progress)
    note(f"{made:,} contexts made, in {folder.path}")
    return folder


def _run(
    data: Path | None,
    out: Path | None,
    suites: Mapping[str, Sequence[str]],
    plan: "Plan",
    *,
    jobs: int | None,
    as_json: bool,
) -> None:
    from skillpager.bench.methods import parse_method
    from skillpager.bench.results import Results
    from skillpager.bench.summary import COLUMNS, summarise
    from skillpager.cli_views import print_table

    folder = _made(data, out, suites, plan, jobs=jobs)
    if not plan.judge_evidence:
        note(f"not judged yet: `skillpager bench judge {folder.path}`")
        return
    labels = dict.fromkeys(parse_method(label).label for name in suites for label in suites[name])
    rows = summarise(Results(folder, EVIDENCE), labels)
    if as_json:
        print_json({"out": str(folder.path), "methods": [row.to_json() for row in rows]})
    else:
        print_table(COLUMNS, [row.cells for row in rows], right=COLUMNS[1:])


def _write_report(folder: "BenchFolder", judge: str, out: Path | None) -> None:
    from skillpager.bench.report import write_report

    written = write_report(folder, judge=judge, out=out or folder.path / "report")
    print_text("\n".join(map(str, written)))

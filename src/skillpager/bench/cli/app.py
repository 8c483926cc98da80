"""The commands of `skillpager bench`; `skillpager.cli.app` mounts them by the name of this module."""

from pathlib import Path
from typing import Annotated

import typer

from skillpager.bench.cli import data as cli_bench_data
from skillpager.bench.cli import judge as cli_bench_judge
from skillpager.bench.cli import validate as cli_bench_validate
from skillpager.bench.cli.model import (
    DEFAULT_JOBS,
    DEFAULT_TIMEOUT,
    BaseUrl,
    MaxCost,
    ModelName,
    ModelOptions,
    PriceIn,
    PriceOut,
    Yes,
)
from skillpager.cli.messages import reported
from skillpager.cli.options import AsJson, CacheDir, ClassifierName, EncoderName

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

EVIDENCE = "evidence"


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
    typer.Option("--judge", metavar="NAME", help="evidence, llm, or none to judge later with `bench judge`."),
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
    model: ModelName = None,
    base_url: BaseUrl = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    max_cost: MaxCost = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Run methods on the queries of a benchmark.

    A method is a strategy of `page --strategy`, with options after an @: lambda=0.9, k=20 (or all),
    boundary=80, tokens=40% (or a number), sufficiency=0.9 (of navigator), encoder=NAME, classifier=NAME.
    A suite stands for its methods: main, offline, graph, concept, lambda, k, size, boundary, budget,
    granularity, encoder, classifier.
    What is done already is not done again.

    \b
    Examples:
      skillpager bench run --data dev --out results --methods offline
      skillpager bench run --out results --methods mmr@lambda=0.9,hybrid@tokens=40%
      skillpager bench run --data skillrouter --judge none --methods main
    """
    from skillpager.bench.cli.running import RunOptions, run_and_judge
    from skillpager.bench.run.methods import split_labels
    from skillpager.bench.run.suites import SUITES, suite

    options = RunOptions(data, out, judge, style, jobs, contexts, encoder, classifier, cache_dir, as_json)
    asked = ModelOptions(
        model, base_url, DEFAULT_JOBS, DEFAULT_TIMEOUT, price_in, price_out, max_cost, False, yes, as_json
    )
    parts = split_labels(methods)
    suites = {name: suite(name) for name in parts if name in SUITES}
    single = [label for label in parts if label not in SUITES]
    run_and_judge({**suites, **({"chosen": single} if single else {})}, options, asked)


@app.command()
@reported
def sweep(
    knob: Annotated[
        str,
        typer.Argument(
            metavar="KNOB",
            help="lambda, k, size (k by size of the skill), threshold (size up to which k is 20) or budget.",
        ),
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
    from skillpager.bench.cli.running import RunOptions, known_suite, run_and_judge
    from skillpager.bench.run.suites import SWEEPS, suite

    name = known_suite(knob, SWEEPS, "sweep")
    options = RunOptions(data, out, judge, style, jobs, contexts, encoder, classifier, cache_dir, as_json)
    run_and_judge({name: suite(name)}, options)


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
    from skillpager.bench.cli.running import RunOptions, known_suite, run_and_judge
    from skillpager.bench.run.suites import ABLATIONS, suite

    name = known_suite(part, ABLATIONS, "ablation")
    options = RunOptions(data, out, judge, style, jobs, contexts, encoder, classifier, cache_dir, as_json)
    run_and_judge({name: suite(name, extra=with_ or [])}, options)


app.command()(cli_bench_judge.judge)
app.add_typer(cli_bench_validate.app, name="validate")


@app.command()
@reported
def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of the results.")],
    judge: Annotated[
        str,
        typer.Option(
            "--judge", metavar="NAME", help="Whose verdicts: an id, or how one begins, such as llm."
        ),
    ] = EVIDENCE,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where to write; RUN/report by default.", show_default=False
        ),
    ] = None,
    cache_dir: CacheDir = None,
) -> None:
    """Write tables and figures of a run: report.html, report.md, tables/, figures/.

    \b
    Examples:
      skillpager bench report results
    """
    from skillpager.bench.cli.running import write_and_print_report
    from skillpager.bench.data.folder import BenchFolder

    write_and_print_report(BenchFolder(folder), judge, out, cache_dir=cache_dir)


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
    from skillpager.bench.cli.running import RunOptions, make_contexts, write_and_print_report
    from skillpager.bench.run.suites import SUITES

    options = RunOptions(data, out, EVIDENCE, style, jobs, False, encoder, classifier, cache_dir)
    write_and_print_report(make_contexts(SUITES, options), EVIDENCE, None, cache_dir=cache_dir)

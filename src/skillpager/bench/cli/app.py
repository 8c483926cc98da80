"""The commands of `skillpager bench`; `skillpager.cli.app` mounts them by the name of this module."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.ask import ask
from skillpager.bench.cli.data import app as data_app
from skillpager.bench.cli.judge import check_judge, judge, judge_contexts, queries
from skillpager.bench.cli.options import (
    EVIDENCE,
    LLM,
    NO_JUDGE,
    VOTES,
    AllowTrained,
    EvaluationOptions,
    ModelOptions,
    PlaceOptions,
    PricedOptions,
    RunOptions,
    SweepOptions,
)
from skillpager.bench.cli.route import route
from skillpager.bench.cli.validate import app as validate_app
from skillpager.bench.run.suites import ABLATIONS, SUITES, SWEEPS, suite, sweep_methods
from skillpager.cli.messages import UsageError, note, print_json, print_text, reported, warn
from skillpager.cli.options import AsJson, CacheDir, EncoderName, EncoderOptions, IndexOptions, StoreOptions
from skillpager.cli.views import print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.data.folder import BenchFolder

JUDGES = (EVIDENCE, LLM, NO_JUDGE)
# name in the manifest of the methods that were named one by one
CHOSEN = "chosen"
# in nodes a page: with a larger difference from the paper's number `fit` warns
TOLERANCE = 1.0

HELP = """Compare methods on skills and queries: IntraSkill-Bench.

Needs `pip install "skillpager[bench]"`.
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=HELP)
app.add_typer(data_app, name="data")
app.command()(queries)
app.command()(route)
app.command()(ask)


@app.command()
@reported
def run(
    place: PlaceOptions,
    methods: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="Methods or suites, separated by commas: mmr,bm25,mmr@lambda=0.9,k=20.",
        ),
    ] = "main",
    *,
    how: RunOptions,
    asked: PricedOptions,
) -> None:
    """Run methods on the queries of a benchmark.

    A method is a strategy of `page --strategy`, with options after an @: lambda=0.9, k=20 (or all),
    boundary=80, tokens=40% (or a number), sufficiency=0.9 (of navigator), encoder=NAME, classifier=NAME.
    MODULE:NAME is a strategy, encoder or classifier of your own, in an installed module or in this folder.
    A suite is a set of methods: main, offline, graph, concept, lambda, k, size, boundary, budget,
    granularity, encoder, classifier.
    Results that are already in the folder are not computed again.

    \b
    Examples:
      skillpager bench run --data skillsbench --out results --methods offline
      skillpager bench run --out results --methods mmr@lambda=0.9,hybrid@tokens=40%
      skillpager bench run --data skillrouter --judge none --methods main
      skillpager bench run --out results --methods own_strategy:SharedWords,mmr
    """
    from skillpager.bench.run.methods import split_labels

    parts = split_labels(methods)
    suites = {name: suite(name) for name in parts if name in SUITES}
    single = [label for label in parts if label not in SUITES]
    chosen = {**suites, **({CHOSEN: single} if single else {})}
    _run_and_judge(chosen, place, how, ModelOptions(**asdict(asked)))


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
    place: PlaceOptions,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Methods to sweep. [default: mmr; for budget every offline method]"
        ),
    ] = None,
    *,
    how: SweepOptions,
    as_json: AsJson = False,
) -> None:
    """Run MMR over the values of a knob, or every offline method over budgets of 10 to 90 % of the tokens.

    \b
    Examples:
      skillpager bench sweep lambda --data skillsbench --out results
      skillpager bench sweep budget --out results
      skillpager bench sweep budget --out results --methods own_strategy:SharedWords,mmr
    """
    from skillpager.bench.run.methods import split_labels

    if knob not in SWEEPS:
        raise UsageError(f"Unknown sweep {knob!r}: choose one of {', '.join(SWEEPS)}.")
    name = SWEEPS[knob]
    # under the name of a suite the manifest has the suite's own methods
    chosen = {CHOSEN: sweep_methods(name, split_labels(methods))} if methods else {name: suite(name)}
    _run_and_judge(chosen, place, how, ModelOptions(as_json=as_json))


@app.command()
@reported
def ablate(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="concept, graph, granularity, encoder or classifier.")
    ],
    place: PlaceOptions,
    with_: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME", help="Another encoder or classifier to compare; repeatable."),
    ] = None,
    *,
    how: RunOptions,
    as_json: AsJson = False,
) -> None:
    """Run MMR with one part removed or replaced.

    \b
    Examples:
      skillpager bench ablate concept --data skillsbench --out results
      skillpager bench ablate encoder --out results --with openai:bge-m3
    """
    if part not in ABLATIONS:
        raise UsageError(f"Unknown ablation {part!r}: choose one of {', '.join(ABLATIONS)}.")
    suites = {part: suite(part, extra=with_ or [])}
    _run_and_judge(suites, place, how, ModelOptions(as_json=as_json))


@app.command()
@reported
def fit(
    data: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Training data: a benchmark folder, or a folder of evidence data."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON file to add the result to. [default: print it only]"),
    ] = None,
    encoder: EncoderName = None,
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Fit greedy_graph and topk_dependency to an encoder, on training data.

    The paper gives neither the threshold of greedy_graph nor the k of topk_dependency, only how many nodes
    they select: 21.59 and 14.80. This finds the values that select as many. They hold for one encoder and
    one embedded text. Those for the built-in encoder ship; name a file of others with SKILLPAGER_BASELINES.

    \b
    Examples:
      skillpager bench fit --data train
      skillpager bench fit --data train --encoder openai:bge-m3 --out fitted.json
    """
    from skillpager.bench.data import load_data
    from skillpager.bench.run.fitting import DEPENDENCY_NODES, GREEDY_NODES, fit_baselines
    from skillpager.bench.run.runs import run_settings
    from skillpager.cli.session import choose_settings
    from skillpager.pager import SkillPager
    from skillpager.strategies.baselines.graph import write_fit

    settings = choose_settings(EncoderOptions(encoder=encoder, cache_dir=cache_dir))
    skills, queries = load_data(data)
    with progress_bar("skills") as progress:
        pager = SkillPager(settings=run_settings(settings, style="plain"))
        found = fit_baselines(pager, skills, queries, progress=progress)
    rows = (
        ("greedy_graph", "threshold", found.threshold, found.greedy_nodes, GREEDY_NODES),
        ("topk_dependency", "k", found.seeds, found.dependency_nodes, DEPENDENCY_NODES),
    )
    if as_json:
        print_json(asdict(found))
    else:
        columns = ("method", "setting", "value", "nodes", "nodes in the paper")
        print_table(
            columns,
            [[*row[:2], f"{row[2]:g}", *(f"{n:.2f}" for n in row[3:])] for row in rows],
            right=columns[2:],
        )
    note(
        f"for {found.encoder}, text {found.embedded_text}: {found.skills} skills of {found.mean_nodes:.1f} "
        f"nodes on average, {found.queries} queries"
    )
    for name, setting, value, nodes, target in rows:
        if abs(nodes - target) > TOLERANCE:
            warn(f"{name}: no {setting} comes nearer to {target:.2f} nodes than {value:g} with {nodes:.2f}.")
    if out:
        write_fit(out, found)
        note(f"written to {out}: SKILLPAGER_BASELINES={out} uses it")


app.command()(judge)
app.add_typer(validate_app, name="validate")


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
    cache_dir: CacheDir = None,
    allow_trained: AllowTrained = False,
) -> None:
    """Write tables and figures of a run: report.html, report.md, tables/, figures/.

    \b
    Examples:
      skillpager bench report results
    """
    from skillpager.bench.data.folder import BenchFolder

    _write_report(BenchFolder(folder), judge, out, cache_dir, allow_trained=allow_trained)


@app.command()
@reported
def reproduce(
    place: PlaceOptions,
    how: EvaluationOptions,
) -> None:
    """Run every suite with the evidence judge and write the report: each table and figure of the paper.

    \b
    Examples:
      skillpager bench data fetch --split skillsbench --out skillsbench
      skillpager bench reproduce --data skillsbench --out results
    """
    folder = _make_contexts(SUITES, place, SweepOptions(**asdict(how)))
    _write_report(folder, EVIDENCE, None, how.cache_dir, allow_trained=how.allow_trained)


def _run_and_judge(
    suites: Mapping[str, Sequence[str]], place: PlaceOptions, how: RunOptions, asked: ModelOptions
) -> None:
    """Run suites, judge their contexts, and print a row for each method."""
    from skillpager.bench.report.methods import SUMMARY_COLUMNS, summarise
    from skillpager.bench.report.results import Results
    from skillpager.bench.run.methods import parse_method

    folder = _make_contexts(suites, place, how)
    asked_for = dict.fromkeys(parse_method(label).label for name in suites for label in suites[name])
    done = folder.methods()
    # those that have learned from the skills were left out
    labels = [label for label in asked_for if label in done]
    if how.judge == NO_JUDGE:
        note(f"not judged yet: `skillpager bench judge {folder.path}`")
        return
    if how.judge != EVIDENCE:
        judge_contexts(folder, ",".join(labels), how.judge, VOTES, asked)
        return
    results = Results(folder, EVIDENCE, allow_trained=how.allow_trained)
    rows = summarise(results, labels)
    if asked.as_json:
        print_json({"out": str(folder.path), "methods": [row.to_json() for row in rows]})
    else:
        print_table(SUMMARY_COLUMNS, [row.cells for row in rows], right=SUMMARY_COLUMNS[1:])
    if results.trained_note:
        warn(results.trained_note)


def _make_contexts(
    suites: Mapping[str, Sequence[str]], place: PlaceOptions, how: RunOptions
) -> "BenchFolder":
    """Return the folder in which suites were run."""
    from skillpager.bench.run.runs import open_run, run_settings, run_suites
    from skillpager.bench.run.selecting import Plan
    from skillpager.cli.session import choose_settings

    check_judge(how.judge, JUDGES)
    settings = choose_settings(IndexOptions(how.cache_dir, encoder=how.encoder, classifier=how.classifier))
    plan = Plan(
        run_settings(settings, style=how.style or "plain"),
        keep_contexts=how.contexts,
        allow_trained=how.allow_trained,
    )
    if how.judge != EVIDENCE:
        # later judges read the texts
        plan = replace(plan, keep_contexts=True, judge_evidence=False)
    folder = open_run(place.data, place.out, plan)
    with progress_bar("contexts") as progress:
        made = run_suites(folder, suites, plan, jobs=how.jobs, progress=progress)
    note(f"{made:,} contexts made, in {folder.path}")
    return folder


def _write_report(
    folder: "BenchFolder", judge: str, out: Path | None, cache_dir: Path | None, *, allow_trained: bool
) -> None:
    """Write a report, and print the files."""
    from skillpager.bench.report.report import write_report
    from skillpager.cli.session import open_pager

    pager = open_pager(StoreOptions(cache_dir))
    written = write_report(
        folder,
        judge=folder.find_judge(judge),
        out=out or folder.path / "report",
        pager=pager,
        allow_trained=allow_trained,
    )
    print_text("\n".join(map(str, written)))

"""`skillpager bench queries` and `bench judge`: ask a model, or exchange files with people."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.asking import agree, bill_json, bill_text, end_asking, open_model
from skillpager.bench.cli.options import EVIDENCE, LLM, VOTES, ExchangeOptions, ModelOptions
from skillpager.cli.messages import (
    UsageError,
    note,
    print_json,
    reported,
    warn,
)
from skillpager.cli.views import print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.data.chat import Bill
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.judging import Docket, Judging
    from skillpager.json_types import JsonObject

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder.")]


@reported
def queries(
    folder: Folder,
    per_skill: Annotated[int, typer.Option(metavar="N", min=1, help="Queries for each skill.")] = 5,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N skills.")] = None,
    *,
    options: ModelOptions,
) -> None:
    """Let a language model write queries for the skills of a benchmark.

    Each skill's queries are stored in FOLDER/queries, all of them in FOLDER/queries.jsonl. Skills that have
    queries are skipped, so that an interrupted run continues where it stopped.

    \b
    Examples:
      skillpager bench queries skillrouter --model deepseek-chat --dry-run
      skillpager bench queries skillrouter --price-in 0.28 --price-out 0.42 --max-cost 5
    """
    from skillpager.bench.data import queries as writing
    from skillpager.bench.data.folder import BenchFolder

    chat = open_model(options, "bench queries", writing.MAX_RETRIES)
    plan = writing.plan_queries(BenchFolder(folder), chat, per_skill=per_skill, limit=limit)
    if not agree(plan.estimate(), options):
        return
    with progress_bar("skills") as progress:
        asked = writing.write_queries(plan, jobs=options.jobs, progress=progress)
    failures = [(skill.id, reason) for skill, reason in asked.failures]
    done, left = plan.present + asked.done, len(plan.missing) - asked.done
    bill = chat.spending.bill
    if options.as_json:
        failed = [{"skill": skill, "reason": reason} for skill, reason in failures]
        print_json({"skills": done, "failed": failed, "stopped": asked.stopped, "spent": bill_json(bill)})
    note(f"{done:,} of {done + left:,} skills have queries, in {folder}")
    note(bill_text(bill))
    what = f"{left:,} of {done + left:,} skills have no queries yet"
    end_asking(what, failures, asked.stopped, as_json=options.as_json)


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
        str,
        typer.Option(metavar="NAME", help="evidence, which is free, llm, or MODULE:NAME of your own."),
    ] = EVIDENCE,
    votes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Votes of the model on each case, an odd number.")
    ] = VOTES,
    *,
    exchange: ExchangeOptions,
    options: ModelOptions,
) -> None:
    """Judge the contexts of a run: does each suffice for its query?

    The judge evidence looks for the annotated lines. The judge llm asks a model for three votes on each
    case and stores them in FOLDER/votes, so that no vote is paid for twice. Other judges answer through
    files.

    \b
    Examples:
      skillpager bench judge results
      skillpager bench judge results --judge llm --model deepseek-reasoner --methods main --dry-run
      skillpager bench judge results --export for-anna.csv
      skillpager bench judge results --import for-anna.csv --name anna
    """
    from skillpager.bench.data.folder import BenchFolder

    run = BenchFolder(folder)
    check_judge(judge, (EVIDENCE, LLM))
    if exchange.export and exchange.import_:
        raise UsageError("--export and --import are two commands: the answers come in between.")
    if exchange.import_ and methods:
        raise UsageError("--import takes the answers on all methods: leave --methods out.")
    if exchange.export:
        from skillpager.bench.judge.judging import export_cases

        docket = _collect(run, methods)
        export_cases(docket, exchange.export)
        note(f"{len(docket.cases):,} cases; then: `bench judge {folder} --import {exchange.export} --name …`")
    elif exchange.import_:
        _import_votes(run, options, exchange.import_, exchange.name or "")
    else:
        judge_contexts(run, methods, judge, votes, options)


def check_judge(name: str, known: Sequence[str]) -> None:
    """Raise a `UsageError` for a judge that is neither known nor named as one of others."""
    if name in known:
        return
    from skillpager.bench.judge.judges import names_judge

    if not names_judge(name):
        choices = f"{', '.join(known[:-1])} or {known[-1]}"
        raise UsageError(f"Unknown judge {name!r}: choose {choices}.")


def judge_contexts(
    run: "BenchFolder", methods: str | None, judge: str, votes: int, options: ModelOptions
) -> None:
    """Judge the contexts of the chosen methods, and print the outcome."""
    if judge == LLM:
        judge_by_model(run, methods, votes, options)
        return
    from skillpager.bench.judge import EvidenceJudge
    from skillpager.bench.judge.judges import make_judge
    from skillpager.bench.judge.judging import judge_cases

    chosen = EvidenceJudge() if judge == EVIDENCE else make_judge(judge)
    docket = _collect(run, methods)
    with progress_bar("contexts") as progress:
        # one at a time: a judge of others need not be safe for threads
        judging = judge_cases(run, docket, chosen, progress=progress)
    _print_judging(run, judging, as_json=options.as_json)
    if judge != EVIDENCE:
        _end_judging(judging, docket, options)


def judge_by_model(run: "BenchFolder", methods: str | None, votes: int, options: ModelOptions) -> None:
    """Ask for the missing votes and print the outcome; exit code 1 if cases are left."""
    from skillpager.bench.judge.judging import judge_cases
    from skillpager.bench.judge.llm_judge import MAX_RETRIES, LLMJudge

    chat, docket = open_model(options, "bench judge", MAX_RETRIES), _collect(run, methods)
    judge = LLMJudge(chat, run, votes=votes)
    if not agree(judge.estimate(docket.cases.values()), options):
        return
    with progress_bar("cases") as progress:
        judging = judge_cases(run, docket, judge, jobs=options.jobs, halt=chat.halt, progress=progress)
    _print_judging(run, judging, as_json=options.as_json, spent=chat.spending.bill)
    note(bill_text(chat.spending.bill))
    _end_judging(judging, docket, options)


def _end_judging(judging: "Judging", docket: "Docket", options: ModelOptions) -> None:
    """Exit with code 1 if cases are not judged."""
    left, total = len(docket.cases) - len(judging.verdicts), len(docket.cases)
    what = f"{left:,} of {total:,} cases are not judged"
    end_asking(what, judging.unjudged, judging.stopped, as_json=options.as_json)


def _collect(run: "BenchFolder", methods: str | None) -> "Docket":
    """Return the cases of the chosen methods."""
    from skillpager.bench.judge.judging import choose_methods, collect_cases

    return collect_cases(run, choose_methods(run, methods))


def _import_votes(run: "BenchFolder", options: ModelOptions, sheets: Sequence[Path], name: str) -> None:
    """Store the votes of others, judge by them, and print the outcome."""
    from skillpager.bench.judge.judging import import_votes, judge_cases, person_id
    from skillpager.bench.judge.llm_judge import VotedJudge, VoteLog

    docket, judge = _collect(run, None), person_id(name)
    imported = import_votes(run, docket, sheets, judge=judge)
    if imported.elsewhere:
        warn(
            f"{imported.elsewhere:,} cases are left out: this folder has no such query and context, because "
            "other methods, models or data made them"
        )
    judging = judge_cases(run, docket, VotedJudge(VoteLog(run, judge)))
    _print_judging(run, judging, as_json=options.as_json)
    note(
        f"{imported.new:,} of {imported.votes:,} votes are new, by {judge}; {len(judging.verdicts):,} of "
        f"{len(docket.cases):,} cases have a verdict"
    )


def _print_judging(
    run: "BenchFolder", judging: "Judging", *, as_json: bool, spent: "Bill | None" = None
) -> None:
    """Print, for each method, how many contexts were judged and how many suffice."""
    from skillpager.bench.run.learned import noted_learned, trained_note

    learned = noted_learned(run.manifest())
    seen = {method: learned[method] for method in judging.judgments if method in learned}
    if seen:
        warn(trained_note(seen, len(run.skills())))
    methods: list[JsonObject] = []
    rows = []
    for method, records in judging.judgments.items():
        judged, sufficient = len(records), sum(record.sufficient for record in records)
        methods.append({"method": method, "judged": judged, "sufficient": sufficient})
        rows.append([method, f"{judged:,}", f"{100 * sufficient / judged:.2f}" if judged else ""])
    if not as_json:
        print_table(["method", "judged", "sufficient %"], rows, right=["judged", "sufficient %"])
        return
    print_json(
        {
            "judge": judging.judge,
            "methods": methods,
            "unjudged": [{"query": query, "reason": reason} for query, reason in judging.unjudged],
            "stopped": judging.stopped,
            "spent": bill_json(spent) if spent else None,
        }
    )

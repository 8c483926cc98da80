"""`skillpager bench queries` and `bench judge`: ask a model, or exchange sheets with people."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.options import EVIDENCE, LLM, VOTES, ExchangeOptions, ModelOptions
from skillpager.cli.messages import (
    FAILED,
    UsageError,
    note,
    print_error,
    print_json,
    print_text,
    reported,
    warn,
)
from skillpager.cli.views import counted, print_table, progress_bar
from skillpager.errors import BenchError
from skillpager.settings import load_settings

if TYPE_CHECKING:
    from skillpager.bench.data.chat import Bill, ChatModel
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.judges import Docket, Judging
    from skillpager.json_types import JsonObject

# more reasons would hide what to do about them
MAX_SHOWN = 5

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder.")]


@reported
def queries(folder: Folder, *, options: ModelOptions) -> None:
    """Let a language model write five queries for each skill of a benchmark.

    They are added to FOLDER/queries.jsonl. Skills that have queries are skipped, so that an interrupted run
    continues where it stopped.

    \b
    Examples:
      skillpager bench queries skillrouter --model deepseek-chat --dry-run
      skillpager bench queries skillrouter --price-in 0.28 --price-out 0.42 --max-cost 5
    """
    from skillpager.bench.data import queries as writing
    from skillpager.bench.data.folder import BenchFolder

    run = BenchFolder(folder)
    chat = _open_model(options, "bench queries", writing.MAX_RETRIES)
    missing = writing.skills_without_queries(run, chat)
    if not _agree(chat.estimate(map(writing.query_question, missing)), options):
        return
    with progress_bar("skills") as progress:
        asked = writing.write_queries(run, chat, missing, jobs=options.jobs, progress=progress)
    failed = [{"skill": skill.id, "reason": reason} for skill, reason in asked.failures]
    total, left = len(run.skills()), len(missing) - asked.done
    if options.as_json:
        spent: JsonObject = asdict(chat.bill)
        print_json({"skills": total - left, "failed": failed, "stopped": asked.stopped, "spent": spent})
    note(f"{total - left:,} of {total:,} skills have queries, in {folder}")
    what = f"{left:,} of {total:,} skills have no queries yet"
    _end_asking(what, [f"{each['skill']}: {each['reason']}" for each in failed], asked.stopped, chat, options)


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
        str, typer.Option(metavar="NAME", help="evidence, which is free, or llm, a language model.")
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
    case and stores them in FOLDER/votes, so that no vote is paid for twice. People answer through sheets.

    \b
    Examples:
      skillpager bench judge results
      skillpager bench judge results --judge llm --model deepseek-reasoner --methods main --dry-run
      skillpager bench judge results --export for-anna.csv
      skillpager bench judge results --import for-anna.csv --name anna
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge.judges import EvidenceJudge, choose_methods, collect_cases, judge_cases

    run = BenchFolder(folder)
    if judge not in (EVIDENCE, LLM):
        raise UsageError(f"Unknown judge {judge!r}: choose {EVIDENCE} or {LLM}.")
    if exchange.export and exchange.import_:
        raise UsageError("--export and --import are two commands: the answers come in between.")
    if exchange.import_ and methods:
        raise UsageError("--import takes the answers on all methods: leave --methods out.")
    if judge == LLM and not (exchange.export or exchange.import_):
        _judge_by_model(run, methods, votes, options)
        return
    docket = collect_cases(run, choose_methods(run, methods))
    if exchange.export:
        from skillpager.bench.judge.sheets import export_cases

        export_cases(docket, exchange.export)
        note(f"{len(docket.cases):,} cases; then: `bench judge {folder} --import {exchange.export} --name …`")
    elif exchange.import_:
        _import_votes(run, docket, options, exchange.import_, exchange.name or "")
    else:
        with progress_bar("contexts") as progress:
            judging = judge_cases(run, docket, EvidenceJudge(), progress=progress)
        _print_judging(run, judging, as_json=options.as_json)


def _judge_by_model(run: "BenchFolder", methods: str | None, votes: int, options: ModelOptions) -> None:
    """Ask a model about the contexts of the chosen methods, and print the outcome."""
    from skillpager.bench.judge import votes as voting
    from skillpager.bench.judge.judges import choose_methods, collect_cases, judge_cases

    chat = _open_model(options, "bench judge", voting.MAX_RETRIES)
    docket = collect_cases(run, choose_methods(run, methods))
    judge, cases = voting.VotedJudge(run, voting.judge_id(chat.id), votes=votes), docket.cases.values()
    if not _agree(chat.estimate(voting.missing_questions(judge, cases)), options):
        return
    with progress_bar("cases") as progress:
        asked = voting.ask_votes(judge, chat, cases, jobs=options.jobs, progress=progress)
    judging = judge_cases(run, docket, judge)
    unjudged = [{"query": case.query.id, "reason": reason} for case, reason in asked.failures]
    more: JsonObject = {"unjudged": unjudged, "stopped": asked.stopped, "spent": asdict(chat.bill)}
    _print_judging(run, judging, as_json=options.as_json, more=more)
    what = f"{len(cases) - len(judging.verdicts):,} of {len(cases):,} cases are not judged"
    reasons = [f"{each['query']}: {each['reason']}" for each in unjudged]
    _end_asking(what, reasons, asked.stopped, chat, options)


def _import_votes(
    run: "BenchFolder", docket: "Docket", options: ModelOptions, sheets: Sequence[Path], name: str
) -> None:
    """Store the votes of others, judge by them, and print the outcome."""
    from skillpager.bench.judge.judges import judge_cases
    from skillpager.bench.judge.votes import VotedJudge, import_votes, person_id

    judge = VotedJudge(run, person_id(name))
    imported = import_votes(judge, docket.cases, sheets)
    if imported.elsewhere:
        warn(
            f"{imported.elsewhere:,} cases are left out: this folder has no such query and context, because "
            "other methods, models or data made them"
        )
    judging = judge_cases(run, docket, judge)
    _print_judging(run, judging, as_json=options.as_json)
    note(
        f"{imported.new:,} of {imported.votes:,} votes are new, by {judge.id}; {len(judging.verdicts):,} of "
        f"{len(docket.cases):,} cases have a verdict"
    )


def _print_judging(
    run: "BenchFolder", judging: "Judging", *, as_json: bool, more: "JsonObject | None" = None
) -> None:
    """Print, for each method, how many contexts were judged and how many suffice."""
    from skillpager.bench.run.learned import noted_learned, trained_note

    learned = noted_learned(run.manifest())
    seen = {method: learned[method] for method in judging.judgments if method in learned}
    if seen:
        warn(trained_note(seen, len(run.skills())))
    counts = {
        method: (len(records), sum(record.sufficient for record in records))
        for method, records in judging.judgments.items()
    }
    if as_json:
        methods = [
            {"method": name, "judged": all_, "sufficient": yes} for name, (all_, yes) in counts.items()
        ]
        print_json({"judge": judging.judge, "methods": methods, **(more or {})})
        return
    rows = [
        [method, f"{judged:,}", f"{100 * sufficient / judged:.2f}" if judged else ""]
        for method, (judged, sufficient) in counts.items()
    ]
    print_table(["method", "judged", "sufficient %"], rows, right=["judged", "sufficient %"])


def _open_model(options: ModelOptions, purpose: str, max_retries: int) -> "ChatModel":
    """Return the model that options and settings name.

    Raises:
        SettingsError: No model is named, or endpoint, key, price or limit cannot be used.
        UsageError: One price is given without the other.
    """
    from skillpager.bench.data.chat import ChatModel, Prices
    from skillpager.remote.chat import chat_endpoint

    # as variables, so that a key meant for another address does not go to this one
    given = {
        "SKILLPAGER_LLM_BASE_URL": options.base_url,
        "SKILLPAGER_LLM_MODEL": options.model,
        "SKILLPAGER_LLM_TIMEOUT": str(options.timeout),
    }
    chosen = {variable: value for variable, value in given.items() if value is not None}
    settings = load_settings(environ={**os.environ, **chosen})
    if (options.price_in is None) != (options.price_out is None):
        raise UsageError("Prices come in pairs: give both --price-in and --price-out.")
    prices = None
    if options.price_in is not None and options.price_out is not None:
        prices = Prices(options.price_in, options.price_out)
    endpoint = chat_endpoint(settings, purpose=purpose, max_retries=max_retries)
    return ChatModel(endpoint, prices=prices, max_cost=options.max_cost)


def _agree(bill: "Bill", options: ModelOptions) -> bool:
    """Return False for a dry run, which prints the estimate; on a terminal ask for confirmation."""
    text = f"{_bill_text(bill, 'about ')}; reasoning and repetitions come on top"
    if options.dry_run:
        if options.as_json:
            print_json({"estimate": asdict(bill)})
        else:
            print_text(text)
        return False
    if bill.requests:
        note(text)
        if not options.yes and sys.stdin.isatty() and sys.stderr.isatty():
            typer.confirm("Go on?", abort=True, err=True)
    return True


def _bill_text(bill: "Bill", about: str = "") -> str:
    """Return a bill in words, with `about` before its numbers."""
    tokens = f"{about}{counted(bill.tokens_in, 'token')} in and {bill.tokens_out:,} out"
    cost = "" if bill.cost is None else f", {about}{bill.cost:.4g} at these prices"
    return f"{counted(bill.requests, 'request')}, {tokens}{cost}"


def _end_asking(
    what: str, failures: Sequence[str], stopped: str, chat: "ChatModel", options: ModelOptions
) -> None:
    """Note what was spent; exit with code 1 if there are failures or the run was stopped.

    `what` is the part that is left to do, such as `3 of 40 skills have no queries yet`.
    """
    note(_bill_text(chat.bill))
    if not failures and not stopped:
        return
    reasons = [*failures[:MAX_SHOWN]]
    if len(failures) > MAX_SHOWN:
        reasons.append(f"{len(failures) - MAX_SHOWN} more")
    if stopped:
        reasons.append(f"the run was stopped: {stopped}")
    text = f"{what}: {'; '.join(reasons)}. What is done is saved: repeat the command to go on."
    print_error(BenchError(text), as_json=options.as_json)
    raise typer.Exit(FAILED)

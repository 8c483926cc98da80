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
    from skillpager.bench.judge.judging import Docket, Judging
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
    chat = open_model(options, "bench queries", writing.MAX_RETRIES)
    missing = writing.skills_without_queries(run, chat)
    if not agree(chat.estimate(map(writing.query_question, missing)), options):
        return
    with progress_bar("skills") as progress:
        asked = writing.write_queries(run, chat, missing, jobs=options.jobs, progress=progress)
    failures = [(skill.id, reason) for skill, reason in asked.failures]
    total, left = len(run.skills()), len(missing) - asked.done
    if options.as_json:
        failed = [{"skill": skill, "reason": reason} for skill, reason in failures]
        spent: JsonObject = asdict(chat.bill)
        print_json({"skills": total - left, "failed": failed, "stopped": asked.stopped, "spent": spent})
    note(f"{total - left:,} of {total:,} skills have queries, in {folder}")
    note(bill_text(chat.bill))
    what = f"{left:,} of {total:,} skills have no queries yet"
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

    run = BenchFolder(folder)
    if judge not in (EVIDENCE, LLM):
        raise UsageError(f"Unknown judge {judge!r}: choose {EVIDENCE} or {LLM}.")
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
        _judge_contexts(run, methods, judge, votes, options)


def _judge_contexts(
    run: "BenchFolder", methods: str | None, judge: str, votes: int, options: ModelOptions
) -> None:
    """Judge the contexts of the chosen methods, and print the outcome; exit code 1 if cases are left."""
    from skillpager.bench.judge.judges import EvidenceJudge
    from skillpager.bench.judge.judging import judge_cases

    if judge == EVIDENCE:
        docket = _collect(run, methods)
        with progress_bar("contexts") as progress:
            judging = judge_cases(run, docket, EvidenceJudge(), progress=progress)
        _print_judging(run, judging, as_json=options.as_json)
        return
    from skillpager.bench.judge.votes import MAX_RETRIES, VotedJudge, ask_votes, judge_id, judge_question

    chat, docket = open_model(options, "bench judge", MAX_RETRIES), _collect(run, methods)
    voted, cases = VotedJudge(run, judge_id(chat.id), votes=votes), docket.cases.values()
    if not agree(chat.estimate(judge_question(case) for case in cases for _ in voted.missing(case)), options):
        return
    with progress_bar("cases") as progress:
        asked = ask_votes(voted, chat, cases, jobs=options.jobs, progress=progress)
    judging = judge_cases(run, docket, voted)
    unjudged = [(case.query.id, reason) for case, reason in asked.failures]
    more: JsonObject = {
        "unjudged": [{"query": query, "reason": reason} for query, reason in unjudged],
        "stopped": asked.stopped,
        "spent": asdict(chat.bill),
    }
    _print_judging(run, judging, as_json=options.as_json, more=more)
    note(bill_text(chat.bill))
    left = len(docket.cases) - len(judging.verdicts)
    what = f"{left:,} of {len(docket.cases):,} cases are not judged"
    end_asking(what, unjudged, asked.stopped, as_json=options.as_json)


def _collect(run: "BenchFolder", methods: str | None) -> "Docket":
    """Return the cases of the chosen methods."""
    from skillpager.bench.judge.judging import choose_methods, collect_cases

    return collect_cases(run, choose_methods(run, methods))


def _import_votes(run: "BenchFolder", options: ModelOptions, sheets: Sequence[Path], name: str) -> None:
    """Store the votes of others, judge by them, and print the outcome."""
    from skillpager.bench.judge.judging import judge_cases
    from skillpager.bench.judge.votes import VotedJudge, import_votes, person_id

    docket, judge = _collect(run, None), VotedJudge(run, person_id(name))
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


def open_model(options: ModelOptions, purpose: str, max_retries: int) -> "ChatModel":
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


def agree(bill: "Bill", options: ModelOptions) -> bool:
    """Return False for a dry run, which prints the estimate; on a terminal ask for confirmation."""
    if options.dry_run:
        if options.as_json:
            print_json({"estimate": asdict(bill)})
        else:
            print_text(bill_text(bill, about=True))
        return False
    if bill.requests:
        note(bill_text(bill, about=True))
        if not options.yes and sys.stdin.isatty() and sys.stderr.isatty():
            typer.confirm("Go on?", abort=True, err=True)
    return True


def bill_text(bill: "Bill", *, about: bool = False) -> str:
    """Return a bill in words; `about` for an estimate."""
    roughly = "about " if about else ""
    line = (
        f"{counted(bill.requests, 'request')}, {roughly}{counted(bill.tokens_in, 'token')} in and "
        f"{bill.tokens_out:,} out"
    )
    if bill.cost is not None:
        line += f", {roughly}{bill.cost:.4g} at these prices"
    return f"{line}; reasoning and repetitions come on top" if about else line


def end_asking(what: str, failures: Sequence[tuple[str, str]], stopped: str, *, as_json: bool) -> None:
    """Exit with code 1 if there are failures, each a name and a reason, or the run was stopped.

    `what` is the part that is left to do, such as `3 of 40 skills have no queries yet`.
    """
    if not failures and not stopped:
        return
    reasons = [f"{name}: {reason}" for name, reason in failures[:MAX_SHOWN]]
    if len(failures) > MAX_SHOWN:
        reasons.append(f"{len(failures) - MAX_SHOWN} more")
    if stopped:
        reasons.append(f"the run was stopped: {stopped}")
    text = f"{what}: {'; '.join(reasons)}. What is done is saved: repeat the command to go on."
    print_error(BenchError(text), as_json=as_json)
    raise typer.Exit(FAILED)

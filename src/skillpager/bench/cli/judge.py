"""`skillpager bench queries` and `skillpager bench judge`: questions to a model, or to others by files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.model import agree, bill_json, bill_text, end, open_model
from skillpager.bench.cli.options import EVIDENCE, LLM, VOTES, ModelOptions, optional
from skillpager.cli.messages import UsageError, note, print_json, print_text, reported, warn

if TYPE_CHECKING:
    from skillpager.bench.data.chat import ChatModel
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.data.spending import Bill
    from skillpager.bench.judge.judging import Docket, Judging
    from skillpager.json_types import JsonObject

BATCH, PROMPTS = "batch", "prompts"

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder.")]


@reported
def queries(
    folder: Folder,
    per_skill: Annotated[
        int, typer.Option("--per-skill", metavar="N", min=1, help="Queries for each skill.")
    ] = 5,
    limit: Annotated[
        int | None, optional("--limit", metavar="N", min=1, help="Only the first N skills.")
    ] = None,
    *,
    options: ModelOptions,
) -> None:
    """Let a language model write queries for the skills of a benchmark.

    Each skill's queries are kept in FOLDER/queries, all of them in FOLDER/queries.jsonl. What is there is
    not asked for again, so an interrupted run goes on where it stopped.

    \b
    Examples:
      skillpager bench queries skillrouter --model deepseek-chat --dry-run
      skillpager bench queries skillrouter --price-in 0.28 --price-out 0.42 --max-cost 5
    """
    from skillpager.bench.data import queries as writing
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.cli.views import progress_bar

    chat = open_model(options, purpose="bench queries", max_retries=writing.MAX_RETRIES)
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
    end(what, failures, asked.stopped, as_json=options.as_json)


@dataclass(frozen=True, slots=True)
class Task:
    """The cases that `judge` was asked to judge, and how."""

    folder: "BenchFolder"
    methods: str | None
    votes: int
    options: ModelOptions

    def docket(self) -> "Docket":
        """Return the cases of the chosen methods."""
        from skillpager.bench.judge.judging import choose_methods, collect_cases

        return collect_cases(self.folder, choose_methods(self.folder, self.methods))

    def chat(self) -> "ChatModel":
        """Return the model that options and settings name."""
        from skillpager.bench.judge.votes import MAX_RETRIES

        return open_model(self.options, purpose="bench judge", max_retries=MAX_RETRIES)


@reported
def judge(
    folder: Folder,
    methods: Annotated[
        str | None,
        optional(
            "--methods",
            metavar="LIST",
            help="Methods or suites, divided by commas; by default all whose contexts were kept.",
        ),
    ] = None,
    judge: Annotated[
        str, typer.Option("--judge", metavar="NAME", help="evidence, which is free, or llm.")
    ] = EVIDENCE,
    votes: Annotated[
        int, typer.Option("--votes", metavar="N", min=1, help="Votes of the model on each case, odd.")
    ] = VOTES,
    export: Annotated[
        str | None,
        optional(
            "--export",
            metavar="KIND",
            help="batch: requests for the OpenAI batch API. prompts: a file a case, for people and agents.",
        ),
    ] = None,
    out: Annotated[Path | None, optional("--out", metavar="DIR", help="New folder for --export.")] = None,
    import_: Annotated[
        list[Path] | None,
        optional(
            "--import",
            metavar="FILE",
            help="Output of a batch, or answers as CSV or JSONL; may be repeated.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        optional("--name", metavar="NAME", help="Who gave the answers to import; llm:NAME for an agent."),
    ] = None,
    *,
    options: ModelOptions,
) -> None:
    """Judge the contexts of a run: does each suffice for its query?

    The judge evidence looks for the annotated lines. The judge llm asks a model for three votes on each
    case and keeps them in FOLDER/votes, so that none is paid for twice. Other judges answer through files.

    \b
    Examples:
      skillpager bench judge results
      skillpager bench judge results --judge llm --model deepseek-reasoner --methods main --dry-run
      skillpager bench judge results --export prompts --out for-anna
      skillpager bench judge results --import for-anna/answers.csv --name anna
    """
    from skillpager.bench.data.folder import BenchFolder
    from skillpager.bench.judge import EvidenceJudge
    from skillpager.bench.judge.judging import judge_cases
    from skillpager.cli.views import progress_bar

    task = Task(BenchFolder(folder), methods, votes, options)
    if judge not in (EVIDENCE, LLM):
        raise UsageError(f"Unknown judge {judge!r}: choose {EVIDENCE} or {LLM}.")
    if export and import_:
        raise UsageError("--export and --import are two commands: the answers come in between.")
    if import_ and methods:
        raise UsageError("--import takes the answers on all methods: leave --methods out.")
    if export:
        _export_cases(task, export, out)
    elif import_:
        _import_answers(task, import_, name)
    elif judge == LLM:
        judge_by_model(task)
    else:
        docket = task.docket()
        with progress_bar("contexts") as progress:
            judging = judge_cases(task.folder, docket, EvidenceJudge(), progress=progress)
        _print_judging(judging, as_json=options.as_json)


def judge_by_model(task: Task) -> None:
    """Ask for the missing votes and print the outcome; exit code 1 if cases are left."""
    from skillpager.bench.judge.judging import judge_cases
    from skillpager.bench.judge.votes import LLMJudge, VoteLog, judge_id
    from skillpager.cli.views import progress_bar

    chat, docket, options = task.chat(), task.docket(), task.options
    judge = LLMJudge(chat, VoteLog(task.folder, judge_id(chat.id)), votes=task.votes)
    if not agree(judge.estimate(docket.cases.values()), options):
        return
    with progress_bar("cases") as progress:
        judging = judge_cases(
            task.folder, docket, judge, jobs=options.jobs, halt=chat.halt, progress=progress
        )
    _print_judging(judging, as_json=options.as_json, spent=chat.spending.bill)
    note(bill_text(chat.spending.bill))
    left, total = len(docket.cases) - len(judging.verdicts), len(docket.cases)
    what = f"{left:,} of {total:,} cases are not judged"
    end(what, judging.unjudged, judging.stopped, as_json=options.as_json)


def _export_cases(task: Task, kind: str, out: Path | None) -> None:
    """Write the cases for others to judge, and print the files to hand over."""
    from skillpager.bench.judge.exchange import export_batch, export_prompts, missing_votes
    from skillpager.bench.judge.votes import VoteLog, judge_id

    if kind not in (BATCH, PROMPTS):
        raise UsageError(f"Unknown kind of export {kind!r}: choose {BATCH} or {PROMPTS}.")
    if out is None:
        raise UsageError("--export needs --out: a new folder for the files.")
    docket = task.docket()
    if kind == PROMPTS:
        sheet = export_prompts(docket, out)
        note(f"{len(docket.cases):,} cases; then: `bench judge {task.folder.path} --import {sheet} --name …`")
        print_text(str(sheet))
        return
    chat = task.chat()
    wanted = missing_votes(docket, VoteLog(task.folder, judge_id(chat.id)), votes=task.votes)
    paths = export_batch(wanted, out, model=chat.model)
    note(f"{len(wanted):,} requests; then: `bench judge {task.folder.path} --import OUTPUT …`")
    print_text("\n".join(map(str, paths)))


def _import_answers(task: Task, paths: Sequence[Path], name: str | None) -> None:
    """Keep the votes of others, and print the outcome."""
    from skillpager.bench.judge.exchange import import_answers, person_id, read_answers
    from skillpager.bench.judge.votes import judge_id

    docket = task.docket()
    answers = read_answers(paths, docket)
    if answers.batch and not name:
        chat = task.chat()
        judge = judge_id(chat.id)
        if strange := sorted(model for model in answers.models if not model.startswith(chat.model)):
            warn(f"The answers come from {', '.join(strange)}, and are kept as those of {chat.model}")
    else:
        judge = person_id(name or "")
    votes = task.votes if answers.batch else None
    new, judging = import_answers(task.folder, docket, answers, judge=judge, votes=votes)
    for place in answers.unanswered:
        warn(f"{place}; left unjudged")
    _print_judging(judging, as_json=task.options.as_json)
    note(
        f"{new:,} of {len(answers.votes):,} votes are new, by {judge}; {len(judging.verdicts):,} of "
        f"{len(docket.cases):,} cases have a verdict"
    )


def _print_judging(judging: "Judging", *, as_json: bool, spent: "Bill | None" = None) -> None:
    """Print, for each method, how many contexts were judged and how many suffice."""
    from skillpager.cli.views import print_table

    counts = {
        method: (len(records), sum(record.sufficient for record in records))
        for method, records in judging.judgments.items()
    }
    if as_json:
        methods: list[JsonObject] = [
            {"method": method, "judged": judged, "sufficient": sufficient}
            for method, (judged, sufficient) in counts.items()
        ]
        print_json(
            {
                "judge": judging.judge,
                "methods": methods,
                "unjudged": [{"query": query, "reason": reason} for query, reason in judging.unjudged],
                "stopped": judging.stopped,
                "spent": bill_json(spent) if spent else None,
            }
        )
        return
    rows = [
        [method, f"{judged:,}", f"{100 * sufficient / judged:.2f}" if judged else ""]
        for method, (judged, sufficient) in counts.items()
    ]
    print_table(["method", "judged", "sufficient %"], rows, right=["judged", "sufficient %"])

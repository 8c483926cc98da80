"""`skillpager bench queries` and `skillpager bench judge`: what a model, or somebody else, is asked."""

from pathlib import Path
from typing import Annotated

import typer

from skillpager.bench.cli.model import (
    DEFAULT_JOBS,
    DEFAULT_TIMEOUT,
    BaseUrl,
    DryRun,
    Jobs,
    MaxCost,
    ModelName,
    ModelOptions,
    PriceIn,
    PriceOut,
    Timeout,
    Yes,
    agree,
    bill_json,
    end,
    open_model,
    tell_bill,
)
from skillpager.cli.messages import UsageError, note, print_json, reported
from skillpager.cli.options import AsJson

EVIDENCE, LLM = "evidence", "llm"

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Benchmark folder.")]
PerSkill = Annotated[int, typer.Option("--per-skill", metavar="N", min=1, help="Queries for each skill.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="Only the first N skills.", show_default=False),
]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        metavar="LIST",
        help="Methods or suites, divided by commas; by default all whose contexts were kept.",
        show_default=False,
    ),
]
JudgeName = Annotated[str, typer.Option("--judge", metavar="NAME", help="evidence, which is free, or llm.")]
Votes = Annotated[
    int, typer.Option("--votes", metavar="N", min=1, help="Votes of the model on each case, odd.")
]
ExportKind = Annotated[
    str | None,
    typer.Option(
        "--export",
        metavar="KIND",
        help="batch: requests for the OpenAI batch API. prompts: a file a case, for people and agents.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="New folder for --export.", show_default=False),
]
ImportFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--import",
        metavar="FILE",
        help="Output of a batch, or answers as CSV or JSONL; may be repeated.",
        show_default=False,
    ),
]
WhoAnswered = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Who gave the answers to import; llm:NAME for an agent.",
        show_default=False,
    ),
]


@reported
def queries(
    folder: Folder,
    model: ModelName = None,
    base_url: BaseUrl = None,
    per_skill: PerSkill = 5,
    limit: Limit = None,
    jobs: Jobs = DEFAULT_JOBS,
    timeout: Timeout = DEFAULT_TIMEOUT,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
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

    options = ModelOptions(
        model, base_url, jobs, timeout, price_in, price_out, max_cost, dry_run, yes, as_json
    )
    chat = open_model(options, purpose="bench queries", max_retries=writing.MAX_RETRIES)
    plan = writing.plan_queries(BenchFolder(folder), chat, per_skill=per_skill, limit=limit)
    if not agree(plan.estimate(), options):
        return
    with progress_bar("skills") as progress:
        asked = writing.write_queries(plan, jobs=jobs, progress=progress)
    failures = [(skill.id, reason) for skill, reason in asked.failures]
    done, left = plan.present + asked.done, len(plan.missing) - asked.done
    if as_json:
        failed = [{"skill": skill, "reason": reason} for skill, reason in failures]
        spent = bill_json(chat.spending.bill)
        print_json({"skills": done, "failed": failed, "stopped": asked.stopped, "spent": spent})
    note(f"{done:,} of {done + left:,} skills have queries, in {folder}")
    tell_bill(chat.spending.bill)
    end(f"{left:,} of {done + left:,} skills have no queries yet", failures, asked.stopped, as_json=as_json)


@reported
def judge(
    folder: Folder,
    methods: Methods = None,
    judge: JudgeName = EVIDENCE,
    model: ModelName = None,
    base_url: BaseUrl = None,
    votes: Votes = 3,
    jobs: Jobs = DEFAULT_JOBS,
    timeout: Timeout = DEFAULT_TIMEOUT,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    export: ExportKind = None,
    out: Out = None,
    import_: ImportFiles = None,
    name: WhoAnswered = None,
    as_json: AsJson = False,
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
    from skillpager.bench.cli.judging import (
        Task,
        export_cases,
        import_answers,
        judge_by_evidence,
        judge_by_model,
    )
    from skillpager.bench.data.folder import BenchFolder

    options = ModelOptions(
        model, base_url, jobs, timeout, price_in, price_out, max_cost, dry_run, yes, as_json
    )
    task = Task(BenchFolder(folder), methods, votes, options)
    if judge not in (EVIDENCE, LLM):
        raise UsageError(f"Unknown judge {judge!r}: choose {EVIDENCE} or {LLM}.")
    if export and import_:
        raise UsageError("--export and --import are two commands: the answers come in between.")
    if import_ and methods:
        raise UsageError("--import takes the answers on all methods: leave --methods out.")
    if export:
        export_cases(task, export, out)
    elif import_:
        import_answers(task, import_, name)
    elif judge == LLM:
        judge_by_model(task)
    else:
        judge_by_evidence(task)

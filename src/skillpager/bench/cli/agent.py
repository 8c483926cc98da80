"""`skillpager bench agent`: agents on tasks with checkable results, given different parts of a skill."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.asking import agree, bill_json, bill_text, end_asking, open_model, read_prices
from skillpager.bench.cli.options import ModelOptions
from skillpager.cli.messages import UsageError, note, print_json, reported, warn
from skillpager.cli.options import CacheDir, PagerOptions
from skillpager.cli.views import counted, print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.agent.arms import Arm
    from skillpager.bench.agent.records import AgentRow
    from skillpager.bench.agent.tasks import Task
    from skillpager.bench.data.spending import Bill
    from skillpager.pager import SkillPager

ARMS = "none,whole,first,page,page+faults,mmr,mcp"
# of the loop, which this module does not import before it is run
DEFAULT_TURNS, DEFAULT_SECONDS = 30, 900.0
MAX_RETRIES = 4


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """The options that choose tasks and arms."""

    skills: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Folder with skills of the tasks, before the known ones; repeatable."
        ),
    ] = None
    arms: Annotated[str, typer.Option(metavar="LIST", help="What agents get of a skill.")] = ARMS
    only: Annotated[
        str | None, typer.Option(metavar="LIST", help="Ids of tasks, separated by commas. [default: all]")
    ] = None
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the first N tasks.")] = None


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The options of how agents work."""

    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the run, which an interrupted one resumes.")
    ] = None
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Attempts at each task in each arm.")] = 1
    turns: Annotated[int, typer.Option(metavar="N", min=1, help="Most turns of an attempt.")] = DEFAULT_TURNS
    seconds: Annotated[
        float, typer.Option(metavar="S", min=1, help="Time after which an attempt takes no further turn.")
    ] = DEFAULT_SECONDS
    allow_shell: Annotated[
        bool,
        typer.Option(
            "--allow-shell",
            help="Give agents a shell: commands of the model run on this machine, with your rights.",
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class OutsideOptions:
    """The options of agents and people who solve the tasks outside."""

    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write prompts and contexts for others to a new folder; send nothing."
        ),
    ] = None
    skill_usage: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKOUT",
            help="Write tasks of a checkout of Skill-Usage, those without a container, to a new folder.",
        ),
    ] = None
    import_: Annotated[
        Path | None,
        typer.Option("--import-answers", metavar="DIR", help="Check the answers of others: DIR/ARM/TASK/…"),
    ] = None


@reported
def agent(
    folder: Annotated[Path, typer.Argument(metavar="TASKS", help="Folder of tasks.")],
    *,
    which: TaskOptions,
    how: AgentOptions,
    outside: OutsideOptions,
    options: ModelOptions,
    cache_dir: CacheDir = None,
) -> None:
    """Let agents solve tasks, given different parts of the skill that each task needs.

    A task has a prompt, files and a program that checks the result; docs/agents.md has the format. Arms:
    none, whole, first (5,000 tokens), page, page+faults (with a tool for what was left out), mmr (the
    paper's page), mcp (the tools of the MCP server). Agents read and write files in a scratch folder; with
    --allow-shell they run commands too. Checks may run what an agent wrote. Nothing of this is confined:
    run it in a container if you do not trust the model.

    \b
    Examples:
      skillpager bench agent benchmarks/agent/tasks --skills examples/skills --export agent-prompts
      skillpager bench agent benchmarks/agent/tasks --skills examples/skills --import-answers answers
      skillpager bench agent benchmarks/agent/tasks --skills examples/skills --model deepseek-chat --dry-run
      skillpager bench agent benchmarks/agent/tasks --skills examples/skills --out agents --allow-shell
      skillpager bench agent usage-tasks --skill-usage Skill-Usage
    """
    from skillpager.bench.agent.arms import parse_arms
    from skillpager.bench.agent.tasks import load_tasks
    from skillpager.cli.session import open_pager
    from skillpager.folders.agents import search_folders

    if outside.export and outside.import_:
        raise UsageError("--export and --import-answers are two commands: the answers come in between.")
    if outside.skill_usage:
        _convert(outside.skill_usage, folder, as_json=options.as_json)
        return
    pager = open_pager(PagerOptions(cache_dir=cache_dir), show_batches=False)
    arms = parse_arms(which.arms)
    places = [*(which.skills or []), *search_folders(pager.settings.skills_dir)]
    only = [name.strip() for name in (which.only or "").split(",") if name.strip()]
    tasks = load_tasks(folder, places, only=only, limit=which.limit)
    if outside.export:
        _export(tasks, arms, pager, outside.export, as_json=options.as_json)
    elif outside.import_:
        _import(tasks, arms, pager, outside.import_, how.out, options)
    else:
        _run(tasks, arms, pager, how, options)


def _convert(checkout: Path, folder: Path, *, as_json: bool) -> None:
    """Write the tasks of Skill-Usage that need no container, and print which were left out."""
    from skillpager.bench.agent.skill_usage import convert_tasks

    converted = convert_tasks(checkout, folder)
    number = len(converted.taken) + len(converted.left)
    note(f"{len(converted.taken):,} of {counted(number, 'task')} need no container, in {folder}")
    if as_json:
        print_json({"taken": [*converted.taken], "left": {**converted.left}})
        return
    rows = [(name, "taken") for name in converted.taken] + [*converted.left.items()]
    print_table(("task", "taken or left because"), sorted(rows))


def _export(
    tasks: "Sequence[Task]", arms: "Sequence[Arm]", pager: "SkillPager", out: Path, *, as_json: bool
) -> None:
    """Write the prompts, and print how many tokens they have."""
    from skillpager.bench.agent.exchange import COLUMNS, export_prompts

    with progress_bar("prompts") as progress:
        rows = export_prompts(tasks, arms, pager, out, progress=progress)
    note(f"{counted(len(rows), 'prompt')}, in {out}")
    if as_json:
        print_json({"out": str(out), "prompts": [dict(zip(COLUMNS, row, strict=True)) for row in rows]})
    else:
        print_table(COLUMNS, [list(map(str, row)) for row in rows], right=COLUMNS[3:])


def _import(
    tasks: "Sequence[Task]",
    arms: "Sequence[Arm]",
    pager: "SkillPager",
    answers: Path,
    out: Path | None,
    options: ModelOptions,
) -> None:
    """Check the answers of others, and print the tables."""
    from skillpager.bench.agent.exchange import import_answers
    from skillpager.bench.agent.runs import AGENT, ROWS
    from skillpager.bench.data.folder import BenchFolder, write_records

    if out and AGENT in BenchFolder(out).manifest():
        raise UsageError(f"{out} holds the rows of a run: name another folder for those of imported answers.")
    with progress_bar("answers") as progress:
        imported = import_answers(tasks, arms, pager, answers, progress=progress)
    if imported.missing:
        some = ", ".join(f"{arm}/{task}" for task, arm in imported.missing[:5])
        warn(
            f"{counted(len(imported.missing), 'answer')} not there: {some}"
            + ", …" * (len(imported.missing) > 5)
        )
    if out:
        write_records(out / ROWS, imported.rows)
    _report(imported.rows, out, options)


def _run(
    tasks: "Sequence[Task]",
    arms: "Sequence[Arm]",
    pager: "SkillPager",
    how: AgentOptions,
    options: ModelOptions,
) -> None:
    """Make the attempts that are missing, and print the tables; exit code 1 if some are left."""
    from skillpager.bench.agent.loop import Limits
    from skillpager.bench.agent.runs import AgentRun, expected_usage, plan_attempts

    if how.out is None:
        if not options.dry_run:
            raise UsageError("A run needs --out: a folder for its rows, which an interrupted run resumes.")
        model = open_model(options, "bench agent", MAX_RETRIES)
        attempts = plan_attempts(tasks, arms, how.repeats)
        agree(model.spending.estimate(expected_usage(attempts, pager)), options)
        return
    run = AgentRun(how.out, pager, Limits(how.turns, how.seconds, how.allow_shell))
    attempts = run.missing(tasks, arms, how.repeats)
    stopped, failures, spent = "", [], None
    if attempts:
        model = open_model(options, "bench agent", MAX_RETRIES)
        if not agree(model.spending.estimate(expected_usage(attempts, pager)), options):
            return
        if not how.allow_shell:
            note("the agents have no shell: --allow-shell gives them one")
        run.agree(model)
        with progress_bar("attempts") as progress:
            asked = run.solve_all(attempts, model, jobs=options.jobs, progress=progress)
        stopped, spent = asked.stopped, model.spending.bill
        failures = [("/".join(map(str, attempt.key)), reason) for attempt, reason in asked.failures]
        note(bill_text(spent))
    if checked := run.recheck(tasks):
        note(f"{counted(checked, 'attempt')} checked again, whose check had failed or has changed")
    rows = [row for row in run.rows(tasks).values() if row.arm in arms and row.repeat <= how.repeats]
    if rows:
        _report(rows, how.out, options, spent=spent)
    left = len(run.missing(tasks, arms, how.repeats))
    end_asking(
        f"{left:,} of {left + len(rows):,} attempts are not made", failures, stopped, as_json=options.as_json
    )


def _report(
    rows: "Sequence[AgentRow]", out: Path | None, options: ModelOptions, *, spent: "Bill | None" = None
) -> None:
    """Print the tables, and write them into the folder of the run."""
    import json

    from skillpager.bench.agent.table import arms_table, differences_table, write_tables

    tables = [arms_table(rows, read_prices(options)), differences_table(rows)]
    present = [table for table in tables if table is not None]
    failed = [row for row in rows if row.solved is None]
    if failed:
        first = failed[0]
        warn(
            f"{counted(len(failed), 'attempt')} not checked, the first {first.arm}/{first.task}: "
            f"{first.reason}; correct the check and repeat the command"
        )
    if out:
        for path in write_tables(present, out):
            note(f"written: {path}")
    if options.as_json:
        listed = [json.loads(row.to_json()) for row in rows]
        print_json({"rows": listed, "spent": bill_json(spent) if spent else None})
        return
    for table in present:
        numbers = [name for name, right in zip(table.headings, table.are_numbers, strict=True) if right]
        print_table(table.headings, table.texts, right=numbers)

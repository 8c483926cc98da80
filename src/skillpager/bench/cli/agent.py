"""`skillpager bench agent`: agents on tasks with checkable results, with different parts of a skill."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.bench.cli.options import ModelOptions
from skillpager.cli.messages import note, reported
from skillpager.cli.options import CacheDir, PagerOptions
from skillpager.cli.views import print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.agent.tasks import Task
    from skillpager.pager import SkillPager

ARMS = "none,whole,first,page,page+faults,mmr,mcp"


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


@reported
def agent(
    folder: Annotated[Path, typer.Argument(metavar="TASKS", help="Folder of tasks.")],
    export: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write prompts and contexts for agents outside to a new folder."),
    ] = None,
    *,
    which: TaskOptions,
    options: ModelOptions,
    cache_dir: CacheDir = None,
) -> None:
    """Let agents solve tasks with different parts of a skill."""
    from skillpager.bench.agent.arms import parse_arms
    from skillpager.bench.agent.exchange import COLUMNS, export_prompts
    from skillpager.bench.agent.tasks import load_tasks
    from skillpager.cli.session import open_pager
    from skillpager.folders.agents import search_folders

    arms = parse_arms(which.arms)
    pager = open_pager(PagerOptions(cache_dir=cache_dir))
    only = [name for name in (which.only or "").split(",") if name]
    places = [*(which.skills or []), *search_folders(pager.settings.skills_dir)]
    tasks = load_tasks(folder, places, only=only, limit=which.limit)
    if export:
        with progress_bar("prompts") as progress:
            rows = export_prompts(tasks, arms, pager, export, progress=progress)
        note(f"{len(rows):,} prompts, in {export}")
        print_table(COLUMNS, [list(map(str, row)) for row in rows], right=COLUMNS[3:])
        return

"""Agents and people outside: the prompts that they get, and their answers, checked as those of a run.

    EXPORT/manifest.csv                        a row for each task and arm: tokens of prompt, context, skill
    EXPORT/<arm>/<task id>/prompt.md           the task
    EXPORT/<arm>/<task id>/context.md          what the arm gives of the skill
    EXPORT/<arm>/<task id>/files/              the files that the agent finds in its scratch folder

    ANSWERS/<arm>/<task id>/                   the scratch folder as the agent left it
    ANSWERS/<arm>/<task id>/faults.txt         arm page+faults: the addresses that it read, such as L30-57
    ANSWERS/<arm>/<task id>/usage.json         {"tokens_in": 1, "tokens_out": 1, "turns": 1, "seconds": 1.0};
                                               each may be left out

Tokens of prompt, context and page faults are counted here, whatever `usage.json` says of the rest.
"""

import csv
import io
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.bench.agent.arms import SYSTEM, Arm, Context, make_context, task_message
from skillpager.bench.agent.scratch import fill_folder, is_empty
from skillpager.bench.agent.tasks import FILES, Task
from skillpager.errors import BenchError
from skillpager.pager import SkillPager

PROMPT_FILE, CONTEXT_FILE, MANIFEST = "prompt.md", "context.md", "manifest.csv"
COLUMNS = ("task", "arm", "skill", "prompt_tokens", "context_tokens", "skill_tokens")


def export_prompts(
    tasks: Sequence[Task],
    arms: Sequence[Arm],
    pager: SkillPager,
    out: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[tuple[str | int, ...]]:
    """Write what an agent gets for each task in each arm; return the rows of the manifest.

    The legend of a page in the arm `page+faults` names `skillpager show`. An arm without a text has no
    context: in `mcp` the agent is to be given the server, `skillpager mcp`, with the skill of the task.

    Raises:
        BenchError: The folder `out` holds something already.
        SkillPagerError: A skill cannot be read.
    """
    if not is_empty(out):
        raise BenchError(f"{out} holds something already: name a new folder for the export.")
    rows: list[tuple[str | int, ...]] = []
    total = len(tasks) * len(arms)
    for task in tasks:
        for arm in arms:
            context = make_context(task, arm, pager, show=show_command(task))
            prompt = _write(task, arm, context, out / arm / task.id)
            counted = pager.token_counter.count(prompt)
            rows.append((task.id, arm.value, task.skill_name, counted, context.tokens, context.full_tokens))
            if progress:
                progress(len(rows), total)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *rows])
    write_file(out / MANIFEST, text.getvalue())
    return rows


def show_command(task: Task) -> str:
    """Return the command that reads lines of the skill of a task."""
    return f"skillpager show {shlex.quote(str(task.skill.resolve()))}"


def _write(task: Task, arm: Arm, context: Context, folder: Path) -> str:
    """Write the files for one agent, and return its prompt."""
    files = folder / FILES
    files.mkdir(parents=True)
    prompt = f"{SYSTEM}\n\n{task_message(task, fill_folder(task, arm, files))}\n"
    write_file(folder / PROMPT_FILE, prompt)
    write_file(folder / CONTEXT_FILE, context.text)
    return prompt

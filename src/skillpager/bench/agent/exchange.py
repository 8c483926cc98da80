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
from dataclasses import dataclass
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.bench.agent.arms import SYSTEM, Arm, Context, make_context, task_message
from skillpager.bench.agent.records import AgentRow
from skillpager.bench.agent.scratch import check_copy, fill_folder
from skillpager.bench.agent.tasks import FILES, Task
from skillpager.bench.data.folder import check_new
from skillpager.bench.data.records import Record
from skillpager.errors import BenchError, NodeNotFoundError
from skillpager.pager import SkillPager

PROMPT_FILE, CONTEXT_FILE, MANIFEST = "prompt.md", "context.md", "manifest.csv"
FAULTS, USAGE = "faults.txt", "usage.json"
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
    check_new(out, "with --export")
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


@dataclass(frozen=True, slots=True)
class Told(Record):
    """The content of a `usage.json`: what an agent outside says of its work; each field may be left out.

    Attributes:
        tokens_in: Tokens of all requests; without it those of prompt, context and page faults are taken.
        tokens_out: Tokens of all answers.
        turns: Turns of the agent.
        seconds: Its time.
        model: Who answered.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    turns: int | None = None
    seconds: float | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """Answers of others, checked.

    Attributes:
        rows: A row for each answer.
        missing: Task and arm of each answer that is not there.
    """

    rows: list[AgentRow]
    missing: list[tuple[str, str]]


def import_answers(
    tasks: Sequence[Task],
    arms: Sequence[Arm],
    pager: SkillPager,
    folder: Path,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Return the answers of others as the rows of a run; each is checked on a copy.

    Raises:
        BenchError: There are no answers, or a file beside one is damaged.
        SkillPagerError: A skill cannot be read.
    """
    wanted = [(task, arm) for arm in arms for task in tasks]
    found = [(task, arm) for task, arm in wanted if _is_answer(folder / arm / task.id)]
    if not found:
        raise BenchError(
            f"{folder} holds no answers to these tasks: an answer is a folder <arm>/<task id> in it, such as "
            f"{arms[0]}/{tasks[0].id}."
        )
    rows = []
    for task, arm in found:
        rows.append(_check_answer(task, arm, pager, folder / arm / task.id))
        if progress:
            progress(len(rows), len(found))
    missing = [(task.id, arm.value) for task, arm in wanted if (task, arm) not in found]
    return Imported(rows, missing)


def _is_answer(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _check_answer(task: Task, arm: Arm, pager: SkillPager, answer: Path) -> AgentRow:
    """Return the row of an answer."""
    told, faults = _told(answer / USAGE), _faults(answer / FAULTS)
    context = make_context(task, arm, pager, show=show_command(task))
    count = pager.token_counter.count
    prompt = count(f"{SYSTEM}\n\n{task.prompt}\n")
    read = [_fault_tokens(task, pager, address) for address in faults]
    skill_tokens = context.tokens + sum(filter(None, read))
    verdict = check_copy(task, answer)
    return AgentRow(
        task=task.id,
        arm=arm,
        repeat=1,
        digest=task.digest,
        check_digest=task.check_digest,
        skill=task.skill_name,
        solved=verdict.solved,
        reason=verdict.reason,
        skill_tokens=skill_tokens,
        full_tokens=context.full_tokens,
        tokens_in=prompt + skill_tokens if told.tokens_in is None else told.tokens_in,
        tokens_out=told.tokens_out,
        turns=told.turns,
        seconds=told.seconds,
        mistakes=read.count(None),
        faults=len(read) - read.count(None),
        model=told.model,
    )


def _fault_tokens(task: Task, pager: SkillPager, address: str) -> int | None:
    """Return the tokens of a page fault, or None if the address names nothing: its reader got an error."""
    try:
        return pager.expand(task.skill, address).tokens
    except NodeNotFoundError:
        return None


def _told(path: Path) -> Told:
    try:
        return Told.from_json(path.read_bytes())
    except FileNotFoundError:
        return Told()
    except (OSError, ValueError) as error:
        raise BenchError(f"{path} cannot be used ({error}): correct or remove it.") from None


def _faults(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path} cannot be read ({error}): correct or remove it.") from None
    return [line.strip() for line in lines if line.strip()]

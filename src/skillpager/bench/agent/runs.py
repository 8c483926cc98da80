"""Runs of agents: every task in every arm, as often as wanted, in parallel, resumable.

    RUN/manifest.json                              model, limits, prompt, versions
    RUN/rows.jsonl                                 a row for each task, arm and repeat, appended whole
    RUN/transcripts/<arm>/<task>.<repeat>.json     the conversation
    RUN/answers/<repeat>/<arm>/<task>/             the scratch folder as the agent left it

Rows of tasks whose prompt, files or skill have changed since are left out. Where the check itself failed or
has changed since, the files that the agent left are checked again.
"""

import hashlib
import json
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.bench.agent.arms import SYSTEM, Arm, make_context, user_message
from skillpager.bench.agent.loop import EXPECTED_OUT, Conversation, Limits, converse, count_request
from skillpager.bench.agent.records import AgentRow, Key, last_rows
from skillpager.bench.agent.scratch import check_copy, check_scratch, fill_folder, scratch_folder
from skillpager.bench.agent.tasks import Task
from skillpager.bench.agent.tools import FaultTool, FileTools, ShellTool, ToolBox
from skillpager.bench.data.chat import Asked, ChatModel, ask_all
from skillpager.bench.data.folder import BenchFolder, append_records, read_records
from skillpager.bench.data.spending import Usage
from skillpager.errors import BenchError
from skillpager.json_types import JsonObject
from skillpager.pager import SkillPager
from skillpager.remote.tool_calls import said
from skillpager.settings import cache_folder

logger = logging.getLogger(__name__)

ROWS, TRANSCRIPTS, ANSWERS = "rows.jsonl", "transcripts", "answers"
# entry of the manifest
AGENT = "agent"
# a scratch folder with more is not kept
MOST_KEPT_BYTES = 20_000_000
# turns of an attempt, for estimates; each sends all before it again
EXPECTED_TURNS = 8


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to be made."""

    task: Task
    arm: Arm
    repeat: int

    @property
    def key(self) -> Key:
        """What its row is about."""
        return self.task.id, self.arm.value, self.repeat


def plan_attempts(tasks: Sequence[Task], arms: Sequence[Arm], repeats: int) -> list[Attempt]:
    """Return all attempts, repeat by repeat, so that a run that is stopped has whole repeats."""
    return [Attempt(task, arm, number) for number in range(1, repeats + 1) for task in tasks for arm in arms]


def expected_usage(attempts: Sequence[Attempt], pager: SkillPager) -> Iterator[Usage]:
    """Yield the tokens of each request that attempts usually take."""
    for attempt in attempts:
        context = make_context(attempt.task, attempt.arm, pager, show=FaultTool.show)
        text = user_message(attempt.task, attempt.arm, context, ())
        first = count_request([said("system", SYSTEM), said("user", text)], ())
        for turns in range(EXPECTED_TURNS):
            # results of tools are about as long as turns
            yield Usage(first + 2 * EXPECTED_OUT * turns, EXPECTED_OUT)


@dataclass(slots=True)
class AgentRun:
    """A run in a folder. One process writes at a time.

    Attributes:
        path: The folder.
        pager: Makes the pages.
        limits: Limits of each attempt.
    """

    path: Path
    pager: SkillPager
    limits: Limits
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def rows(self, tasks: Sequence[Task]) -> dict[Key, AgentRow]:
        """Return the rows that are about the tasks as they are now.

        Raises:
            BenchError: A row is damaged.
        """
        digests = {task.id: task.digest for task in tasks}
        rows = last_rows(read_records(self.path / ROWS, AgentRow))
        return {key: row for key, row in rows.items() if digests.get(row.task) == row.digest}

    def missing(self, tasks: Sequence[Task], arms: Sequence[Arm], repeats: int) -> list[Attempt]:
        """Return the attempts that have no row."""
        done = self.rows(tasks)
        return [attempt for attempt in plan_attempts(tasks, arms, repeats) if attempt.key not in done]

    def agree(self, model: ChatModel) -> None:
        """Write into the manifest how attempts are made.

        Raises:
            BenchError: Those in the folder were made in another way.
        """
        how: JsonObject = {
            "model": model.id,
            "turns": self.limits.turns,
            "seconds": self.limits.seconds,
            "shell": self.limits.shell,
            "system": hashlib.sha256(SYSTEM.encode()).hexdigest()[:12],
            "skillpager": version("skillpager"),
        }
        folder = BenchFolder(self.path)
        before = folder.manifest().get(AGENT)
        if isinstance(before, dict):
            for name, value in how.items():
                if before.get(name) != value:
                    raise BenchError(
                        f"{self.path} was made with {name} = {before.get(name)}, now it is {value}: use "
                        "another folder, or the same options."
                    )
        folder.update_manifest({AGENT: how})

    def recheck(self, tasks: Sequence[Task]) -> int:
        """Check attempts again whose check itself failed or is another now; return their number."""
        by_id = {task.id: task for task in tasks}
        checked = 0
        for row in self.rows(tasks).values():
            task, answers = by_id[row.task], self._answers(*row.key)
            if (row.solved is None or row.check_digest != task.check_digest) and answers.is_dir():
                verdict = check_copy(task, answers)
                again = replace(
                    row, solved=verdict.solved, reason=verdict.reason, check_digest=task.check_digest
                )
                append_records(self.path / ROWS, [again])
                checked += 1
        return checked

    def solve_all(
        self,
        attempts: Sequence[Attempt],
        model: ChatModel,
        *,
        jobs: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> Asked[Attempt]:
        """Make attempts, and append the row of each when it ends."""
        return ask_all(
            attempts,
            lambda attempt: self._solve(attempt, model),
            jobs=jobs,
            halt=model.halt,
            progress=progress,
        )

    def _solve(self, attempt: Attempt, model: ChatModel) -> None:
        """Let an agent try a task, keep what it leaves, and append its row."""
        task, arm = attempt.task, attempt.arm
        context = make_context(task, arm, self.pager, show=FaultTool.show)
        with scratch_folder() as folder:
            files = fill_folder(task, arm, folder)
            own: list[ToolBox] = [FileTools(folder)]
            if self.limits.shell:
                own.append(ShellTool(folder, seconds=task.seconds))
            with self._skill_tools(task, arm, folder.parent) as skill_tools:
                talk = converse(
                    model,
                    SYSTEM,
                    user_message(task, arm, context, files),
                    own_tools=own,
                    skill_tools=skill_tools,
                    limits=self.limits,
                )
            self._keep(attempt, talk, folder)
            verdict = check_scratch(task, folder)
        count = self.pager.token_counter.count
        faults = sum(len(box.faults) for box in skill_tools if isinstance(box, FaultTool))
        row = AgentRow(
            task=task.id,
            arm=arm,
            repeat=attempt.repeat,
            digest=task.digest,
            check_digest=task.check_digest,
            skill=task.skill_name,
            solved=verdict.solved,
            reason=verdict.reason,
            skill_tokens=context.tokens + sum(map(count, talk.skill_results)),
            full_tokens=context.full_tokens,
            tokens_in=talk.usage.tokens_in,
            tokens_out=talk.usage.tokens_out,
            turns=talk.turns,
            seconds=round(talk.seconds, 3),
            counted=talk.counted,
            calls=talk.calls,
            mistakes=talk.mistakes,
            faults=faults,
            stopped=talk.stopped,
            model=talk.model,
        )
        with self._lock:
            append_records(self.path / ROWS, [row])

    @contextmanager
    def _skill_tools(self, task: Task, arm: Arm, home: Path) -> Iterator[Sequence[ToolBox]]:
        """Make the tools of an arm that read the skill."""
        if arm is Arm.FAULTS:
            yield [FaultTool(self.pager, task.skill)]
        elif arm is Arm.MCP:
            from skillpager.bench.agent.mcp_tools import mcp_tools

            with mcp_tools(task, home, cache_folder(self.pager.settings)) as tools:
                yield [tools]
        else:
            yield []

    def _answers(self, task: str, arm: str, repeat: int) -> Path:
        return self.path / ANSWERS / str(repeat) / arm / task

    def _keep(self, attempt: Attempt, talk: Conversation, folder: Path) -> None:
        """Keep the conversation, and the scratch folder unless it is large."""
        task, arm, repeat = attempt.key
        text = json.dumps(talk.messages, indent=1, ensure_ascii=False)
        write_file(self.path / TRANSCRIPTS / arm / f"{task}.{repeat}.json", text + "\n")
        answers = self._answers(task, arm, repeat)
        # of an attempt without a row
        shutil.rmtree(answers, ignore_errors=True)
        size = sum(path.lstat().st_size for path in folder.rglob("*"))
        if size > MOST_KEPT_BYTES:
            logger.warning("%s/%s left %s bytes, which are not kept", arm, task, f"{size:,}")
            return
        try:
            shutil.copytree(folder, answers, symlinks=True)
        except (OSError, shutil.Error) as error:  # such as pipes
            logger.warning("%s/%s left files that cannot be kept: %s", arm, task, error)

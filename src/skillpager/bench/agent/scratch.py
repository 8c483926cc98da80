"""Scratch folders: the files that an agent begins with, and the check of those that it leaves."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from skillpager.bench.agent.arms import Arm
from skillpager.bench.agent.processes import clean_environment, run_bounded
from skillpager.bench.agent.tasks import Task
from skillpager.errors import BenchError
from skillpager.parsing.folder import own_files
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.remote.endpoint import quoted

# the folder in the scratch folder with the scripts and other files of the skill that are no Markdown
SKILL_FOLDER = "skill"
# exit codes of a check
SOLVED, UNSOLVED = 0, 1
MARKDOWN = (".md", ".markdown")
# runs a check as a script, but ends with another code than 1 after an exception, which is no verdict unless
# the check has a hook that makes it one; nothing is imported from the working folder (-P): an agent filled it
RUN_CHECK = """\
import os, runpy, sys, traceback
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except Exception:
    if sys.excepthook is not sys.__excepthook__:
        raise
    traceback.print_exc()
    sys.exit(70)
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says: solved or not, or None if the check itself failed; and why."""

    solved: bool | None
    reason: str


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make an empty scratch folder, removed at the end."""
    with TemporaryDirectory(prefix="skillpager-agent-", ignore_cleanup_errors=True) as name:
        # the parent is the agent's home, so that what programs store there is no part of the answer
        folder = Path(name).resolve() / "scratch"
        folder.mkdir()
        yield folder


def fill_folder(task: Task, arm: Arm, folder: Path) -> list[str]:
    """Copy the files that an agent begins with into a folder, and return their paths in it.

    These are the files of the task and, except in the arm `none`, those files of the skill's folder that are
    no Markdown. Its Markdown is what the arms differ in.

    Raises:
        BenchError: A file cannot be copied.
    """
    try:
        if task.files:
            shutil.copytree(task.files, folder, dirs_exist_ok=True)
        if arm is not Arm.NONE and (task.skill / ENTRY_FILE).is_file():
            for path in own_files(task.skill):
                if not path.lower().endswith(MARKDOWN):
                    copy = folder / SKILL_FOLDER / path
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(task.skill / path, copy)
    except (OSError, shutil.Error) as error:
        raise BenchError(f"The files of the task {task.id} cannot be copied: {error}") from None
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] != SKILL_FOLDER
    ) + ([f"{SKILL_FOLDER}/"] if (folder / SKILL_FOLDER).is_dir() else [])


def check_scratch(task: Task, folder: Path) -> Verdict:
    """Return what the check of a task says of a scratch folder. It may change the folder."""
    command = [sys.executable, "-P", "-B", "-c", RUN_CHECK, str(task.check.resolve())]
    try:
        done = run_bounded(command, folder, seconds=task.seconds, env=clean_environment(folder.parent))
    except (OSError, subprocess.SubprocessError) as error:
        return Verdict(None, f"the check cannot be run: {error}")
    said = quoted(done.output.strip().splitlines()[-1]) if done.output.strip() else ""
    if done.timed_out:
        return Verdict(None, f"the check did not end within {task.seconds:g} s")
    if done.code not in (SOLVED, UNSOLVED):
        return Verdict(None, f"the check failed with exit code {done.code}: {said}")
    return Verdict(done.code == SOLVED, said)


def check_copy(task: Task, answers: Path) -> Verdict:
    """Return what the check of a task says of a copy of a folder, so that this stays as it is."""
    with scratch_folder() as folder:
        try:
            shutil.copytree(answers, folder, symlinks=True, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            return Verdict(None, f"the answer cannot be copied: {error}")
        return check_scratch(task, folder)

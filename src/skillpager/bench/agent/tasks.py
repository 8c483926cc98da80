"""Tasks for agents, each with a program that checks the result: a folder of folders.

    TASKS/<id>/task.json    {"skill": "csv-cleaning", "prompt": "…", "source": "own", "seconds": 60}
    TASKS/<id>/files/       what the scratch folder holds when the agent begins; optional
    TASKS/<id>/check.py     run in the scratch folder when the agent has ended

`check.py` ends with exit code 0 if the task is solved, and with 1 and a line on stdout that says why if it is
not. Any other end means that the check itself failed.
"""

import hashlib
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillpager.bench.data.records import Record
from skillpager.errors import BenchError, SkillError
from skillpager.library.discovery import locate
from skillpager.parsing.folder import own_files
from skillpager.parsing.skill import ENTRY_FILE

logger = logging.getLogger(__name__)

TASK_FILE, FILES, CHECK = "task.json", "files", "check.py"
# of a command of the agent, and of the check, where the task names no other
SECONDS = 60.0
# ids are names of folders, and stand in tables
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,99}")


@dataclass(frozen=True, slots=True)
class TaskFile(Record):
    """The content of a `task.json`.

    Attributes:
        skill: Name or path of the skill that the task needs.
        prompt: The task in the words of a user.
        source: Where the task is from: `own`, `skill-usage`, or another data set.
        seconds: Most seconds of one command, and of the check.
    """

    skill: str
    prompt: str
    source: str = "own"
    seconds: float = SECONDS


@dataclass(frozen=True, slots=True)
class Task:
    """A task.

    Attributes:
        id: The name of its folder.
        folder: Its folder.
        digest: Digest of what agents get: prompt, files and skill. A row of a run is about this very task.
        check_digest: Digest of the check and what stands beside it.
        skill: Path of the skill that it needs.
    """

    id: str
    folder: Path
    digest: str
    check_digest: str
    skill: Path
    prompt: str
    source: str
    seconds: float

    @property
    def files(self) -> Path | None:
        """The folder with the files that the agent is given, if there are any."""
        path = self.folder / FILES
        return path if path.is_dir() else None

    @property
    def skill_name(self) -> str:
        """The name of the skill's folder or file."""
        return self.skill.name.removesuffix(".md")

    @property
    def check(self) -> Path:
        """The program that checks the result."""
        return self.folder / CHECK


def load_tasks(
    folder: Path, skill_folders: Sequence[Path] = (), *, only: Sequence[str] = (), limit: int | None = None
) -> list[Task]:
    """Return the tasks of a folder, sorted by id. Those without their skill are left out, with a warning.

    Args:
        folder: The folder of tasks.
        skill_folders: Folders in which skills are looked for: by path, then by name.
        only: Ids of the tasks that are wanted; all if there are none.
        limit: Only the first so many.

    Raises:
        BenchError: There are no tasks, one of `only` is not there, or a task is damaged.
        SkillError: No skill is found, or not that of one of `only`.
    """
    found = sorted(path.parent for path in folder.glob(f"*/{TASK_FILE}"))
    if not found:
        raise BenchError(f"{folder} holds no tasks: each is a folder in it, with {TASK_FILE} and {CHECK}.")
    if missing := sorted(set(only) - {path.name for path in found}):
        raise BenchError(f"{folder} has no task {missing[0]!r}. Its tasks: {_some(found)}.")
    tasks: list[Task] = []
    without: list[tuple[Path, SkillError]] = []
    for path in found:
        if len(tasks) == limit or (only and path.name not in only):
            continue
        try:
            tasks.append(_load(path, skill_folders))
        except SkillError as error:
            if only:
                raise
            without.append((path, error))
    if not tasks:
        raise without[0][1]
    if without:
        logger.warning(
            "%d tasks are left out, because their skills are not found: %s; --skills names folders with the "
            "skills of tasks",
            len(without),
            _some([path for path, _ in without]),
        )
    return tasks


def _some(folders: Sequence[Path], most: int = 10) -> str:
    names = [folder.name for folder in folders]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _load(folder: Path, skill_folders: Sequence[Path]) -> Task:
    path = folder / TASK_FILE
    if not _ID.fullmatch(folder.name):
        raise BenchError(
            f"{folder.name!r} is no id of a task: name the folder with letters, digits, '.', '_' and '-'."
        )
    try:
        told = TaskFile.from_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BenchError(f"{path} is no task ({error}): it needs at least a skill and a prompt.") from None
    if not told.prompt.strip() or not told.seconds > 0:
        raise BenchError(f"{path}: the prompt must not be empty, and seconds must be more than 0.")
    if not (folder / CHECK).is_file():
        raise BenchError(f"{folder} has no {CHECK}, the program that checks the result: write one.")
    try:
        skill = _find_skill(told.skill, folder, skill_folders)
    except SkillError as error:
        raise SkillError(f"{path}: {error} --skills names folders with the skills of tasks.") from None
    given = folder / FILES
    beside = [path for path in folder.rglob("*") if path != folder / TASK_FILE and given not in path.parents]
    own = [skill / path for path in own_files(skill)] if skill.is_dir() else [skill]
    return Task(
        id=folder.name,
        folder=folder,
        digest=_digest(told.prompt, [(given, given.rglob("*")), (skill, own)]),
        check_digest=_digest("", [(folder, beside)]),
        skill=skill,
        prompt=told.prompt.strip(),
        source=told.source,
        seconds=told.seconds,
    )


def _find_skill(name: str, folder: Path, skill_folders: Sequence[Path]) -> Path:
    """Return the path of a skill: in the given folders, relative to the task, or by the name that it has.

    Raises:
        SkillError: It is not found.
    """
    for place in (*skill_folders, folder):
        for path in (place / name, place / f"{name}.md"):
            if (path / ENTRY_FILE).is_file() or path.is_file():
                return path
    path = locate(name, skill_folders)
    if not path.exists():
        raise SkillError(f"There is no skill at {path}.")
    return path


def _digest(text: str, files: Iterable[tuple[Path, Iterable[Path]]]) -> str:
    """Return the SHA-256 of a text and of files, each with its path below a folder."""
    digest = hashlib.sha256()
    parts = [text.encode()]
    for folder, paths in files:
        for path in sorted(path for path in paths if path.is_file() and path.suffix != ".pyc"):
            parts += [path.relative_to(folder).as_posix().encode(), path.read_bytes()]
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()

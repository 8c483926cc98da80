"""The tasks of benchmarks/agent/tasks: their form, and every check on right and wrong answers."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TASKS = Path(__file__).parents[2] / "benchmarks" / "agent" / "tasks"
DRAWN = sorted(
    path.parent for path in TASKS.glob("*/task.json") if "document" in json.loads(path.read_text())
)
ANSWERS = sorted(path for task in DRAWN for path in (task / "answers").iterdir())
# a check exits with 1 through `sys.excepthook` too; what it prints then begins with these words
SHAPE = "the answer has another form"


def check(task: Path, scratch: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(task / "check.py")],
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def fill(scratch: Path, *folders: Path) -> None:
    for folder in filter(Path.is_dir, folders):
        shutil.copytree(folder, scratch, dirs_exist_ok=True)


def test_there_are_as_many_tasks_of_each_split_each_from_another_document() -> None:
    told = [json.loads((task / "task.json").read_text(encoding="utf-8")) for task in DRAWN]
    splits = [each["split"] for each in told]
    assert (splits.count("test"), splits.count("skillsbench")) == (24, 24)
    assert len({(each["split"], each["document"]) for each in told}) == 48


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda path: f"{path.parents[1].name}-{path.name}")
def test_a_check_accepts_the_right_answer_and_rejects_wrong_ones(answer: Path, tmp_path: Path) -> None:
    task = answer.parents[1]
    fill(tmp_path, task / "files", answer)
    ended = check(task, tmp_path)
    assert ended.stderr == ""
    assert not ended.stdout.startswith(SHAPE), ended.stdout
    assert ended.returncode == (0 if answer.name == "right" else 1), ended.stdout
    assert len(ended.stdout.splitlines()) == 1


@pytest.mark.parametrize("task", DRAWN, ids=lambda path: path.name)
def test_an_empty_folder_is_not_solved(task: Path, tmp_path: Path) -> None:
    fill(tmp_path, task / "files")
    ended = check(task, tmp_path)
    assert ended.returncode == 1, ended.stdout
    assert len(ended.stdout.splitlines()) == 1

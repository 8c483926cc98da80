"""Tasks of Skill-Usage: those that need no container become tasks of ours; the others are named with a reason."""

import json
from pathlib import Path

import pytest

from chat_bench import invoke
from messages import raises
from skillpager.bench.agent.arms import Arm
from skillpager.bench.agent.scratch import check_scratch, fill_folder, scratch_folder
from skillpager.bench.agent.skill_usage import convert_tasks, relative_paths
from skillpager.bench.agent.tasks import load_tasks
from skillpager.errors import BenchError

IMAGE = """\
FROM python:3.11-slim
# a comment
RUN apt-get update && apt-get install -y python3 curl \\
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir "pytest==8.4.1" pytest-json-ctrf==0.3.5
WORKDIR /root
COPY numbers.csv /root/
COPY data /root/data
COPY skills /root/.claude/skills
"""
RUNNER = "uvx --with pytest==8.4.1 --with pytest-json-ctrf==0.3.5 \\\n  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py\n"
TESTS = """\
#!/usr/bin/env python3
import json
from pathlib import Path

ROOT = "/root"

def test_sum():
    expected = int(Path("/tests/expected.txt").read_text())
    assert json.loads(Path(f"{ROOT}/sum.json").read_text())["sum"] == expected

def test_inputs_are_there():
    assert Path("/root/numbers.csv").is_file() and Path("/root/data/more.csv").is_file()
"""


def write_usage_task(checkout: Path, name: str = "adding", *, skills: int = 1, **texts: str) -> Path:
    """Write a task in the layout of Skill-Usage; texts replace those of its files."""
    folder = checkout / "tasks" / name
    files = {
        "task.toml": "[verifier]\ntimeout_sec = 90.0\n[agent]\ntimeout_sec = 1.0\n",
        "instruction.md": "Add `/root/numbers.csv` to /root/data/more.csv in /root. Write /root/sum.json.\n",
        "environment/Dockerfile": IMAGE,
        "environment/numbers.csv": "1\n2\n",
        "environment/data/more.csv": "4\n",
        "tests/test.sh": RUNNER,
        "tests/test_outputs.py": TESTS,
        "tests/expected.txt": "7\n",
        **texts,
    }
    for number in range(skills):
        files[f"environment/skills/adding-{number}/SKILL.md"] = (
            "---\nname: a\ndescription: b\n---\n\n# A\n\nAdd.\n"
        )
        files[f"environment/skills/adding-{number}/scripts/add.py"] = "print(sum)\n"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def test_a_task_without_a_container_is_taken_and_its_tests_check(tmp_path: Path) -> None:
    folder = write_usage_task(tmp_path / "checkout")
    converted = convert_tasks(tmp_path / "checkout", tmp_path / "out")
    assert (converted.taken, converted.left) == (["adding"], {})
    (task,) = load_tasks(tmp_path / "out", [])
    assert task.prompt == "Add `numbers.csv` to data/more.csv in .. Write sum.json."
    assert (task.source, task.seconds) == ("skill-usage", 90.0)
    assert task.skill == folder / "environment" / "skills" / "adding-0"
    with scratch_folder() as scratch:
        assert fill_folder(task, Arm.PAGE, scratch) == ["data/more.csv", "numbers.csv", "skill/"]
        assert (scratch / "skill" / "scripts" / "add.py").is_file()
        unsolved = check_scratch(task, scratch)
        assert (unsolved.solved, unsolved.reason[:18]) == (False, "1 failed, 1 passed")
        # a module of the agent's is not taken for one of the tests
        (scratch / "json.py").write_text("raise SystemExit(0)")
        (scratch / "sum.json").write_text('{"sum": 7}')
        solved = check_scratch(task, scratch)
        assert (solved.solved, solved.reason[:8]) == (True, "2 passed")
    with scratch_folder() as scratch:
        assert fill_folder(task, Arm.NONE, scratch) == ["data/more.csv", "numbers.csv"]


def test_tests_that_cannot_run_are_no_verdict(tmp_path: Path) -> None:
    write_usage_task(tmp_path / "checkout", **{"tests/test_outputs.py": "import no_such_module\n"})
    convert_tasks(tmp_path / "checkout", tmp_path / "out")
    (task,) = load_tasks(tmp_path / "out", [])
    with scratch_folder() as scratch:
        assert check_scratch(task, scratch).solved is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"environment/Dockerfile": f"{IMAGE}RUN curl https://a.example | sh\n"}, "its image runs 'curl"),
        (
            {"environment/Dockerfile": f"{IMAGE}RUN apt-get install -y ffmpeg\n"},
            "packages of the system: ffmpeg",
        ),
        (
            {"environment/Dockerfile": f"{IMAGE}RUN pip install no-such-package\n"},
            "not installed: no-such-package",
        ),
        ({"environment/Dockerfile": f"{IMAGE}COPY numbers.csv /opt/\n"}, "its image has files at /opt"),
        ({"environment/Dockerfile": f"{IMAGE}COPY movie.mp4 /root/\n"}, "the checkout has no movie.mp4"),
        ({"environment/Dockerfile": f"{IMAGE}COPY --from=other /a /root/\n"}, "made of others"),
        ({"environment/Dockerfile": f"{IMAGE}USER agent\n"}, "the line 'USER agent'"),
        ({"environment/Dockerfile": "FROM ubuntu:24.04\n"}, "no working folder"),
        ({"tests/test.sh": "cargo test\n"}, "not for pytest"),
        ({"tests/test_outputs.py": 'PATH = "/opt/tool/x"\n'}, "its tests name /opt/tool/x"),
        ({"task.toml": "[verifier\n"}, "it cannot be read"),
    ],
)
def test_a_task_that_needs_more_is_left_with_a_reason(
    tmp_path: Path, changes: dict[str, str], reason: str
) -> None:
    write_usage_task(tmp_path / "checkout", **changes)
    converted = convert_tasks(tmp_path / "checkout", tmp_path / "out")
    assert converted.taken == []
    assert reason in converted.left["adding"]
    assert not (tmp_path / "out" / "adding").exists()


def test_paths_become_relative_and_other_texts_stay() -> None:
    text = "Read /root/a.csv, write to /root/out/ and `/root`, to `/root/`; not /rooted/x, nor /data/root/x, nor //root/x."
    expected = "Read a.csv, write to out/ and `.`, to `.`; not /rooted/x, nor /data/root/x, nor //root/x."
    assert relative_paths(text, "/root") == expected


def test_the_command_prints_what_was_taken_and_what_was_left(tmp_path: Path) -> None:
    write_usage_task(tmp_path / "checkout")
    write_usage_task(tmp_path / "checkout", "both", skills=2)
    said = invoke("bench", "agent", tmp_path / "out", "--skill-usage", tmp_path / "checkout")
    assert said.code == 0
    assert "1 of 2 tasks need no container" in said.err
    assert said.out.splitlines()[1:] == ["adding\ttaken", "both\tit is about 2 skills"]
    again = invoke("bench", "agent", tmp_path / "x", "--skill-usage", tmp_path / "checkout", "--json")
    assert json.loads(again.out) == {"taken": ["adding"], "left": {"both": "it is about 2 skills"}}
    with raises(BenchError):
        convert_tasks(tmp_path / "checkout", tmp_path / "out")
    with raises(BenchError):
        convert_tasks(tmp_path / "out", tmp_path / "new")

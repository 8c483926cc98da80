"""docs/cli.md says what `--help` says, and every example of it works when pasted."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli_help import examples, generator
from cli_process import ROOT, SAMPLES, environment
from documents import paste, path_with_skillpager

GROUPS = {("cache",), ("library",), ("bench",), ("bench", "data"), ("bench", "validate")}
# typer's versions differ in how they write arguments and where they break lines
_DIALECT = re.compile(r" <[\w\[\]]+>|\.\.\.|[{}]|\s+")


def test_docs_are_what_help_says() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    remedy = "run `python docs/generate_cli.py`"
    assert _DIALECT.sub(" ", page).split() == _DIALECT.sub(" ", generator().render()).split(), remedy


def test_every_command_has_examples() -> None:
    helps = {words: text for words, text in generator().helps() if words not in GROUPS}
    assert len(helps) > 30
    assert [words for words, text in helps.items() if "Examples:\n    " not in text] == []


@pytest.mark.check
def test_examples_work_when_pasted(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "skills").symlink_to(SAMPLES)
    env = environment(tmp_path / "cache", PATH=path_with_skillpager(tmp_path))

    def failure_of(line: str) -> str:
        done = paste(line, env=env, cwd=tmp_path)
        return "" if done.returncode == 0 else f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"

    # those of the benchmark build on each other: tests/test_bench_cli.py; servers do not end: tests/test_serve.py
    lines = [line for line in examples() if not re.search("skillpager (bench|serve)", line)]
    assert len(lines) > 20
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [failure for failure in pool.map(failure_of, lines) if failure]
    assert failures == []

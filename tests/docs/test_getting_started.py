"""docs/index.md can be followed: every command and program of it runs, in order, in a clone."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from cli_process import SAMPLES, environment, run
from conftest import ROOT
from documents import blocks, paste, path_with_skillpager, run_python, stands_in

START = ROOT / "docs" / "index.md"
CONCEPTS = ROOT / "docs" / "design.md"
INSTALL = "pip install"

Followed = dict[str, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    """What each block of code did; all share a clone and a home folder."""
    folder = tmp_path_factory.mktemp("start")
    clone = folder / "clone"
    clone.mkdir()
    (clone / "examples").symlink_to(ROOT / "examples")
    env = environment(folder / "cache", PATH=path_with_skillpager(folder))
    shell = [block for block in blocks(START, "sh") if INSTALL not in block]
    done = {code: paste(code, env=env, cwd=clone) for code in shell}
    return done | {code: run_python(code, env=env, cwd=clone) for code in blocks(START, "python")}


def output_of(followed: Followed, words: str) -> str:
    (found,) = (done.stdout for code, done in followed.items() if words in code)
    return found


def test_every_block_runs(followed: Followed) -> None:
    failures = [f"{code}\n{done.stderr}" for code, done in followed.items() if done.returncode]
    assert failures == []
    assert len(followed) == 8


def test_what_is_installed_is_an_extra_of_the_package() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (command,) = (block for block in blocks(START, "sh") if INSTALL in block)
    named = re.fullmatch(rf'{INSTALL} "\.\[([\w,]+)\]"\n', command)
    assert named is not None
    assert set(named[1].split(",")) <= set(extras["optional-dependencies"])


def test_the_page_is_the_page_that_is_printed(followed: Followed) -> None:
    (shown,) = blocks(START, "markdown")
    assert stands_in(shown, output_of(followed, 'postgres-backup "restore'))


def test_the_marker_of_the_concepts_is_one_that_is_printed(followed: Followed) -> None:
    shown, _ = blocks(CONCEPTS, "text")
    assert shown.startswith("[… L")
    assert stands_in(shown, output_of(followed, 'postgres-backup "restore'))


def test_the_line_about_coverage_of_the_concepts_is_one_that_is_printed(tmp_path: Path) -> None:
    _, shown = blocks(CONCEPTS, "text")
    uncovered = re.search(r'best that a skill has for "(.+?)"', CONCEPTS.read_text(encoding="utf-8"))
    assert uncovered is not None
    ran = run("page", SAMPLES / "postgres-backup", uncovered[1], env=environment(tmp_path / "cache"))
    assert (ran.code, ran.out.partition("\n\n")[0] + "\n") == (0, shown)


def test_the_command_that_reads_a_marker_is_the_one_the_page_names(followed: Followed) -> None:
    page = output_of(followed, 'postgres-backup "restore')
    (command,) = (code.strip() for code in followed if code.startswith("skillpager show"))
    address = command.split()[-1]
    assert command.removesuffix(address) in page
    assert f"\n[… {address}: " in page

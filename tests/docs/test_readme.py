"""The README tells the truth: its page is the page, its example runs, its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from documents import blocks, run_python, stands_in
from golden import without_other_chances
from skillpager.strategies.registry import FAMILIES

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """What `make demo` runs."""
    command = re.search(
        r"^demo:.*\n\t\$\(BIN\)/skillpager (page \S+) \"(.+)\"$", (ROOT / "Makefile").read_text(), re.M
    )
    assert command is not None
    run = [sys.executable, "-m", "skillpager", *command[1].split(), command[2]]
    env = {"SKILLPAGER_CACHE_DIR": str(tmp_path_factory.mktemp("cache")), "PATH": "", "COLUMNS": "100"}
    return subprocess.run(run, capture_output=True, check=True, cwd=ROOT, env=env, encoding="utf-8")


def test_the_page_in_the_readme_is_the_page_that_is_printed(demo: subprocess.CompletedProcess[str]) -> None:
    (shown,) = blocks(ROOT / "README.md", "markdown")
    assert stands_in(shown, demo.stdout)


def test_the_note_in_the_readme_is_the_note_that_is_printed(demo: subprocess.CompletedProcess[str]) -> None:
    assert without_other_chances(demo.stderr.strip()) in without_other_chances(README)


def test_the_library_example_runs(tmp_path: Path) -> None:
    (code,) = blocks(ROOT / "README.md", "python")
    done = run_python(code, env={"SKILLPAGER_CACHE_DIR": str(tmp_path), "PATH": ""}, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "pg_restore" in done.stdout


def test_the_agent_of_twenty_lines_reads_what_a_mark_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (code,) = [each for each in blocks(ROOT / "docs" / "python.md", "python") if "def answer(" in each]
    assert code.count("\n") <= 20
    monkeypatch.setenv("SKILLPAGER_CACHE_DIR", str(tmp_path))
    monkeypatch.chdir(ROOT)
    told: list[str] = []

    def model(messages: list[dict[str, str]]) -> str:
        told.append(messages[-1]["content"])
        first = re.search(r"read: (READ \S+ \S+)\]", messages[0]["content"])
        return first[1] if first and len(messages) == 2 else "Done."

    made: dict[str, Any] = {}
    exec(code, made)
    assert made["answer"]("restore one dropped table from a dump", model) == "Done."
    assert told[0] == "restore one dropped table from a dump"
    assert told[1].strip()
    assert made["answer"]("bake a sourdough bread", model) == "Done."


def test_the_session_in_the_docs_is_what_the_server_answers(tmp_path: Path) -> None:
    (shown,) = [block for block in blocks(ROOT / "docs" / "hosts.md", "text") if block.startswith("user ")]
    script = str(ROOT / "docs" / "transcript.py")
    env = {"SKILLPAGER_CACHE_DIR": str(tmp_path), "PATH": ""}
    told = subprocess.run(
        [sys.executable, script], env=env, capture_output=True, check=True, encoding="utf-8"
    )
    printed, shown = map(without_other_chances, (told.stdout, shown))
    assert printed == shown, "write what `python docs/transcript.py` prints into docs/hosts.md"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", text):
        assert (document.parent / target).exists(), target


def test_the_number_of_strategies_and_the_size_of_the_models_are_true() -> None:
    assert f"another of {len(FAMILIES) - 1} [strategies]" in README
    models = ROOT / "src" / "skillpager" / "models"
    size = sum(path.stat().st_size for path in models.rglob("*") if path.is_file())
    assert f"models ({round(size / 1e6)} MB)" in README

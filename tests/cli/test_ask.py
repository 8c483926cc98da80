"""`skillpager ask` as a real process: the page, what is said beside it, and exit codes."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli_process import ROOT, SAMPLES, Ran, environment, invoke, run
from conftest import write_skill
from golden import ASKED, asked_text, check
from skillpager import SkillPager
from skillpager.json_types import to_json
from skillpager.library import Library, LibraryPageOptions
from skillpager.settings import Settings

ONE = "restore one table from a dump"
TWO = "Find the commit that broke the build. Then restore one table from last night's dump."
FOLDERS = "examples/skills"

Ask = Callable[..., Ran]


@pytest.fixture
def ask(warm_cache: Path) -> Ask:
    """Run `skillpager ask` on the warm cache."""

    def start(*arguments: str | Path, stdin: bytes = b"", cwd: Path = ROOT, **variables: str) -> Ran:
        return invoke("ask", *arguments, env=environment(warm_cache, **variables), stdin=stdin, cwd=cwd)

    return start


@pytest.fixture(scope="module")
def library(warm_cache: Path) -> Iterator[Library]:
    pager = SkillPager(settings=Settings(cache_dir=warm_cache))
    yield Library(pager, [SAMPLES])
    pager.close()


@pytest.mark.parametrize("name", ASKED)
def test_pages_are_those_of_the_golden_files(warm_cache: Path, name: str) -> None:
    check(name, asked_text(name, warm_cache))


def test_one_skill_gives_the_page_of_that_skill(ask: Ask, warm_cache: Path) -> None:
    page = run("page", f"{FOLDERS}/postgres-backup", ONE, "--max-tokens", "600", env=environment(warm_cache))
    done = ask(ONE, FOLDERS, "--max-tokens", "600")
    assert (done.code, done.out) == (0, page.out)
    right = "postgres-backup is a right skill with an estimated chance of "
    assert re.sub(r"\d+ %\n\Z", "", done.err) == f"postgres-backup: {page.err}{right}"
    assert ask("-", FOLDERS, "--max-tokens", "600", stdin=ONE.encode()).out == page.out


def test_the_notes_tell_of_each_skill_and_of_the_whole(ask: Ask) -> None:
    done = ask(TWO, FOLDERS)
    *skills, whole, right = done.err.splitlines()
    assert re.match(r"(git-bisect|postgres-backup) is a right skill with", right)
    assert {line.partition(":")[0] for line in skills} == {"git-bisect", "postgres-backup"}
    assert re.fullmatch(
        r"2 skills, [\d,]+ tokens, [\d.]+ % saved; holds all that is needed with an estimated chance of \d+ %",
        whole,
    )


def test_the_marks_of_each_part_can_be_read_as_they_say(ask: Ask, warm_cache: Path) -> None:
    done = ask(TWO, FOLDERS, "--max-tokens", "500")
    _, *rest = re.split(r"read: skillpager (show \S+) L\S+\]", done.out)
    assert len(rest) >= 2
    for command, part in zip(rest[::2], rest[1::2], strict=True):
        gap = re.search(r"\[… (L\d+(?:-\d+)?)", part)
        assert gap is not None
        read = run(*command.split(), gap[1], env=environment(warm_cache))
        assert read.code == 0
        assert read.out.strip()


def test_skills_of_the_conventional_folders_are_named(ask: Ask, tmp_path: Path) -> None:
    folder = tmp_path / ".agents" / "skills"
    folder.mkdir(parents=True)
    (folder / "git-bisect").symlink_to(SAMPLES / "git-bisect")
    (folder / "postgres-backup").symlink_to(SAMPLES / "postgres-backup")
    done = ask(ONE, "--max-tokens", "400", cwd=tmp_path)
    assert "read: skillpager show postgres-backup L" in done.out
    (tmp_path / "postgres-backup").mkdir()  # what the name means for `show` from now on
    done = ask(ONE, "--max-tokens", "400", cwd=tmp_path)
    assert f"read: skillpager show {folder / 'postgres-backup'} L" in done.out


@pytest.mark.parametrize("strategy", ["lean", "mmr"])
def test_json_is_that_of_the_library(ask: Ask, library: Library, strategy: str) -> None:
    done = ask(TWO, SAMPLES, "--json", "--max-tokens", "700", "--strategy", strategy)
    assert (done.code, done.err) == (0, "")
    options: LibraryPageOptions = {"max_tokens": 700, "strategy": strategy, "folder": True}
    made = library.page(TWO, **options, show=lambda skill: f"skillpager show {skill.path}")
    assert {part.page.selection.strategy for part in made.parts if part.page.selection} == {strategy}
    assert done.json == json.loads(json.dumps(to_json(made)))


def test_where_no_skill_fits_a_line_says_so(ask: Ask) -> None:
    done = ask("bake a chocolate cake", FOLDERS)
    assert done.code == 0
    assert done.out.startswith("[No skill fits the query: 10 skills searched")
    form = ask("bake a chocolate cake", FOLDERS, "--json").json
    assert (form["has_fit"], form["parts"], form["token_reduction"]) == (False, [], 0.0)


def test_mistakes_end_with_a_remedy(ask: Ask, tmp_path: Path) -> None:
    small = ask(ONE, FOLDERS, "--max-tokens", "20")
    assert small.code == 1
    assert re.fullmatch(
        r"error: Nothing fits: .* has (\d+) tokens. Raise --max-tokens to \1.\n",
        small.err.splitlines(True)[-1],
    )
    empty = ask(ONE, tmp_path)
    assert empty.code == 1
    assert empty.err == f"error: There are no skills in {tmp_path}: name folders with skills.\n"
    trusting = ask(ONE, FOLDERS, SKILLPAGER_TRUSTED=str(tmp_path / "nowhere"))
    assert trusting.err == (
        f"error: There are no skills that the settings `trusted` and `licences` let pass in {FOLDERS}: "
        "name folders with skills, or widen the settings.\n"
    )
    assert ask(ONE, FOLDERS, "--max-skills", "0").code == 2
    assert ask(" ", FOLDERS).code == 2
    assert ask().code == 2


def test_a_skill_that_cannot_be_read_is_named_and_passed_over(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "postgres-backup").symlink_to(SAMPLES / "postgres-backup")
    about = "Sync the ledger with the warehouse."
    write_skill(tmp_path / "ledger-sync", "", description=about)
    done = ask(f"{about} Then {ONE} of last night.", tmp_path)
    assert done.code == 0
    assert "pg_restore" in done.out
    assert "warning: 'ledger-sync' is passed over: " in done.err

"""Names, paths and texts that steer a terminal, forge lines or are not UTF-8, at the command line."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from cli_process import ROOT, TIME_LIMIT, Ran, command, environment, run, run_on_terminal
from conftest import write_skill

ESCAPES = re.compile(r"\x1b\[[\d;]*m")  # colours, which the program itself writes
LATIN = b"cab\xe9"
NASTY = "a\x1b]0;owned\x07\nerror: forged\x9b2J[red]b[/red]"


def make(folder: Path, name: str, body: str = "# One\n\nText of it.\n", description: str = "d") -> Path:
    """Write a skill whose front matter is quoted as YAML needs it."""
    return write_skill(folder, body, name=json.dumps(name), description=json.dumps(description))


def run_bytes(*arguments: bytes | str, env: dict[str, str]) -> Ran:
    """Run the command with arguments that need not be UTF-8; what it says must be."""
    words = [*map(os.fsencode, command()), *map(os.fsencode, arguments)]
    done = subprocess.run(words, capture_output=True, env=env, cwd=ROOT, timeout=TIME_LIMIT)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Skills with odd names, odd folders, and one that cannot be read."""
    folder = tmp_path / "skills"
    make(folder / "nasty", NASTY, description="first\x1b[2J\n- other: forged")
    make(folder / "half", "half\ud800")
    make(folder / os.fsdecode(LATIN), "plain")
    broken = folder / os.fsdecode(b"bro\nwarning: forged\xff")
    broken.mkdir()
    (broken / "SKILL.md").write_bytes(b"\xff\xfe")
    return folder


def assert_steers_nothing(text: str) -> None:
    """Fail if a text has control characters besides line ends, tabs and colours."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", ESCAPES.sub("", text)), ascii(text)


def test_a_list_has_one_line_for_each_skill(skills: Path, tmp_path: Path) -> None:
    done = run("list", skills, env=environment(tmp_path / "cache"))
    assert done.code == 0
    names = [line.split("\t")[0] for line in done.out.splitlines()]
    assert sorted(names) == ["bro-warning-forged", "half", "nasty", "plain", "skill"]
    assert_steers_nothing(done.out + done.err)
    assert not re.search("^(error|warning)", done.out + done.err, re.MULTILINE)


def test_a_list_as_json_is_json_in_utf8(skills: Path, tmp_path: Path) -> None:
    done = run("list", skills, "--json", env=environment(tmp_path / "cache"))
    assert done.code == 0
    assert_steers_nothing(done.out)
    names = {found["path"].rpartition("/")[2]: found["name"] for found in done.json["skills"]}
    assert names["cab\ufffd"] == "plain"


def test_nothing_steers_a_terminal(skills: Path, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", COLUMNS="300")
    nasty = skills / "nasty"
    (nasty / "SKILL.md").write_text(
        (nasty / "SKILL.md").read_text() + "\n## Two \x1b[31m \x9b2J [red]x[/red]\n\nStep \x1b]0;t\x07.\n"
    )
    for arguments in (
        ("list", skills),
        ("list", skills, "--json"),
        ("outline", nasty),
        ("outline", nasty, "--nodes"),
        ("outline", nasty, "--json"),
        ("page", nasty, "text \x1b[2J of it", "-k", "1", "--explain"),
        ("show", nasty, "n0-n1"),
        ("show", nasty, "n\x1b[2J"),
        ("show", nasty, "n0", "--style", "\x1b[2J"),
        ("page", tmp_path / "no\x1b[2Jwhere", "x"),
        ("page", "x\x1b[2J\x9b", "x"),
    ):
        said = run_on_terminal(*arguments, env=env).out
        assert_steers_nothing(said)
        assert "Traceback" not in said
        assert "bug in SkillPager" not in said
    assert "[red]x[/red]" in run_on_terminal("outline", nasty, env=env).out


def test_a_pipe_gets_the_bytes_of_the_author(tmp_path: Path) -> None:
    body = "# One \x1b[31m\n\nText \x9b of \x07 it.\n"
    folder = make(tmp_path / "s", "s", body)
    assert run("page", folder, "x", env=environment(tmp_path / "cache")).out == body


def test_a_folder_that_is_not_utf8_is_a_skill_like_any_other(skills: Path, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    folder = os.fsencode(skills) + b"/" + LATIN
    assert run_bytes("page", folder, "text", env=env).out == "# One\n\nText of it.\n"
    assert run_bytes("show", folder, "n0", env=env).code == 0
    outline = run_bytes("outline", folder, "--json", env=env)
    assert outline.code == 0, outline.err
    assert outline.json["root"].endswith("/cab\ufffd")
    assert run_bytes("index", folder, "--json", env=env).code == 0
    assert "cab" in run_bytes("cache", "info", env=env).out


@pytest.mark.parametrize(
    "arguments",
    [
        (b"page", b"examples/skills/git-bisect", b"m\xfcll"),
        (b"page", b"\xff", b"x"),
        (b"show", b"examples/skills/git-bisect", b"\xff"),
        (b"outline", b"\xff/\x1b[2J.md"),
        (b"outline", b"examples/skills/git-bisect", b"--encoder", b"\xff"),
        (b"page", b"examples/skills/git-bisect", b"x", b"--style", b"\xff"),
        (b"list", b"\xff"),
        (b"\xff",),
    ],
)
@pytest.mark.parametrize("form", [(), (b"--json",)])
def test_arguments_that_are_not_utf8_are_mistakes_with_a_message(
    tmp_path: Path, arguments: tuple[bytes, ...], form: tuple[bytes, ...]
) -> None:
    done = run_bytes(*arguments, *form, env=environment(tmp_path / "cache"))
    assert done.code in (1, 2)
    assert done.out == ""
    assert "bug in SkillPager" not in done.err
    assert "Traceback" not in done.err
    assert_steers_nothing(done.err)


def test_a_message_forges_no_other(tmp_path: Path) -> None:
    done = run(
        "page", f"{tmp_path}/a\nerror: forged\nwarning: forged", "x", env=environment(tmp_path / "cache")
    )
    assert done.code == 1
    assert len(re.findall(r"^(?:error|warning)", done.err, re.MULTILINE)) == 1

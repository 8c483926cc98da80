"""Stubs of skills: valid skills themselves, whose command pages the original whatever it is asked."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cli_process import SAMPLES, environment, run
from conftest import write_skill
from documents import path_with_skillpager
from messages import raises
from skillpager import SkillPager
from skillpager.errors import SkillError
from skillpager.install.stubs import OWN_TOOLS, stub_text, write_stub
from skillpager.library import STUB_OF, Library, discover, stub_of
from skillpager.parsing.skill import read_skill
from skillpager.types import Skill

POSTGRES = SAMPLES / "postgres-backup"
QUERY = "restore one table from a dump"
# fields of the Agent Skills specification, which uploads and validators insist on
SPECIFIED = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
BLOCK = re.compile(r"^```!\n(.*?)\n?```", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `skillpager` is on the search path and the skill is indexed."""
    folder = tmp_path_factory.mktemp("stubs")
    env = environment(folder / "cache", PATH=path_with_skillpager(folder))
    assert run("index", POSTGRES, env=env).code == 0
    return env


def render(text: str, arguments: str, *, env: dict[str, str], cwd: Path) -> tuple[int, str]:
    """Return what a host makes of a stub: arguments put in as they are, then each command run by bash."""
    command = BLOCK.search(text.replace("$ARGUMENTS", arguments))
    assert command is not None
    done = subprocess.run(
        ["bash", "-c", command[1]],
        env=env,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def made(name: str, description: str = "Does things.") -> str:
    return f"---\n{yaml.safe_dump({'name': name, 'description': description})}---\n\nText.\n"


def test_stub_is_a_valid_skill_of_the_same_name_and_description(tmp_path: Path) -> None:
    file = write_stub(POSTGRES, tmp_path)
    original, stub = read_skill(POSTGRES), read_skill(file)
    assert file == tmp_path / "postgres-backup" / "SKILL.md"
    assert (stub.name, stub.description, stub.warnings) == (original.name, original.description, ())
    front = yaml.safe_load(file.read_text().split("---")[1])
    assert set(front) <= SPECIFIED
    assert front["metadata"] == {"version": "1.2", "topic": "operations", STUB_OF: str(POSTGRES)}
    assert stub_of(stub.metadata) == str(POSTGRES)
    assert stub_of(original.metadata) is None
    assert len(file.read_text()) < 2500


STEERING = """\
disable-model-invocation: true
user-invocable: false
argument-hint: [issue] [branch]
allowed-tools: Read, Bash(git log:*, --all)
context: fork
agent: Explore
model: opus
paths: ["src/**/*.ts", "*.md"]
hooks:
  PreToolUse:
    - command: ${CLAUDE_SKILL_DIR}/guard.sh
shell: powershell
license: MIT
metadata:
  author: somebody
"""


def test_stub_keeps_the_fields_that_steer_a_host(tmp_path: Path) -> None:
    original = write_skill(tmp_path / "guarded", more=STEERING)
    file = write_stub(original, tmp_path / "out")
    front = yaml.safe_load(file.read_text().split("---")[1])
    assert front.pop("allowed-tools") == f"Read, Bash(git log:*, --all), {', '.join(OWN_TOOLS)}"
    assert front == {
        "name": "guarded",
        "description": "d",
        "disable-model-invocation": True,
        "user-invocable": False,
        "argument-hint": "[issue] [branch]",
        "context": "fork",
        "agent": "Explore",
        "model": "opus",
        "paths": ["src/**/*.ts", "*.md"],
        "hooks": {"PreToolUse": [{"command": f"{original}/guard.sh"}]},
        "license": "MIT",
        "metadata": {"author": "somebody", STUB_OF: str(original)},
    }


@pytest.mark.parametrize(
    ("allowed", "kept"),
    [
        ("allowed-tools: Read Grep\n", f"Read Grep {' '.join(OWN_TOOLS)}"),
        ("allowed-tools: Bash(a, b)\n", f"Bash(a, b) {' '.join(OWN_TOOLS)}"),
        ("allowed-tools: [Read, Grep]\n", ["Read", "Grep", *OWN_TOOLS]),
        ("allowed-tools:\n", " ".join(OWN_TOOLS)),
        ("", " ".join(OWN_TOOLS)),
    ],
)
def test_stub_adds_its_commands_to_the_allowed_tools(
    allowed: str, kept: str | list[str], tmp_path: Path
) -> None:
    file = write_stub(write_skill(tmp_path, name="fine", more=allowed), tmp_path / "out")
    assert yaml.safe_load(file.read_text().split("---")[1])["allowed-tools"] == kept


NASTY = {
    "quotes": """don't "drop" 'tables'""",
    "substitution": "$(touch hacked) `touch hacked` ${HOME} $((1+1))",
    "operators": "x; touch hacked && touch hacked | tee hacked > hacked &",
    "line breaks": "restore\n\none table\nEOF\ntouch hacked\n",
    "guessed end": "x\nSKILLPAGER\nSKILLPAGER_0\n'SKILLPAGER_'\ntouch hacked",
    "fence": "restore one table from a dump\n```\n\n```bash\ntouch hacked\n```\n",
    "option": "--strategy none",
    "backslashes": "a\\\nb \\' \\$(touch hacked) !! ~ * ?",
    "other script": "恢复一个表 — für „einen“ Tisch 🙂",
}


@pytest.mark.parametrize("name", NASTY)
def test_command_of_a_stub_pages_the_original_and_runs_nothing_else(
    name: str, tmp_path: Path, warm: dict[str, str]
) -> None:
    text = write_stub(POSTGRES, tmp_path / "skills").read_text()
    query = f"{NASTY[name]} restore one table from a dump"  # which the skill answers
    code, page = render(text, query, env=warm, cwd=tmp_path)
    assert code == 0, page
    assert "[Page of a skill. " in page
    assert "postgres-backup" in next(line for line in page.splitlines() if line.startswith("[Page"))
    assert not (tmp_path / "hacked").exists()


def test_only_a_skill_that_hosts_would_cut_has_a_ceiling_on_its_pages(
    tmp_path: Path, warm: dict[str, str]
) -> None:
    steps = "".join(f"## Part {n}\n\nRun `part-{n}` and note each of its results.\n\n" for n in range(400))
    large = write_skill(tmp_path / "large", f"# Large\n\n{steps}")
    assert "--max-tokens 4000 " in write_stub(large, tmp_path / "out").read_text()
    assert "--max-tokens" not in write_stub(POSTGRES, tmp_path / "out").read_text()


def test_stub_without_arguments_shows_the_outline(tmp_path: Path, warm: dict[str, str]) -> None:
    text = write_stub(POSTGRES, tmp_path).read_text()
    code, shown = render(text, "", env=warm, cwd=tmp_path)
    assert (code, shown) == (0, run("outline", POSTGRES, env=warm).out)


def test_path_with_spaces_and_quotes_is_quoted(tmp_path: Path, warm: dict[str, str]) -> None:
    folder = write_skill(tmp_path / "it's; touch hacked #" / "odd")
    text = write_stub(folder, tmp_path / "out").read_text()
    code, page = render(text, QUERY, env=warm, cwd=tmp_path)
    assert (code, "Text." in page) == (0, True)
    assert not (tmp_path / "hacked").exists()


def test_markdown_file_without_a_folder_of_its_own_is_named_by_its_path(tmp_path: Path) -> None:
    source = tmp_path / "notes.md"
    source.write_text(made("notes"))
    file = write_stub(source, tmp_path / "out")
    assert stub_of(read_skill(file).metadata) == str(source)


def test_stub_is_written_anew_but_no_skill_is_replaced(tmp_path: Path) -> None:
    file = write_stub(POSTGRES, tmp_path)
    assert "--max-tokens 700 " in write_stub(POSTGRES, tmp_path, max_tokens=700).read_text()

    file.write_text(made("postgres-backup"))
    with raises(SkillError):
        write_stub(POSTGRES, tmp_path)
    assert file.read_text() == made("postgres-backup")
    write_stub(POSTGRES, tmp_path, force=True)
    assert stub_of(read_skill(file).metadata) == str(POSTGRES)
    with raises(SkillError):
        write_stub(file.parent, tmp_path / "out")
    file.write_bytes(b"\xff")
    with raises(SkillError):
        write_stub(POSTGRES, tmp_path)


@pytest.mark.parametrize("force", [True, False])
def test_skill_is_never_replaced_by_its_own_stub(force: bool, tmp_path: Path) -> None:
    own = write_skill(tmp_path / "skills" / "mine")
    before = (own / "SKILL.md").read_text()
    (tmp_path / "linked").symlink_to(tmp_path / "skills")
    for folder in (tmp_path / "skills", tmp_path / "linked"):
        with raises(SkillError):
            write_stub(own, folder, force=force)
    assert (own / "SKILL.md").read_text() == before


@pytest.mark.parametrize("text", [made("Not-Valid"), made("fine", ""), made("fine", "d" * 1025)])
def test_skill_without_a_valid_stub_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text(text)
    with raises(SkillError):
        write_stub(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("name", ["a$1", "a`b", "a\nb"])
def test_path_that_hosts_would_misread_is_told(name: str, tmp_path: Path) -> None:
    with raises(SkillError):
        write_stub(write_skill(tmp_path / name, name="fine"), tmp_path / "out")


def test_discovery_leaves_stubs_out(tmp_path: Path, hashing_pager: SkillPager) -> None:
    write_stub(POSTGRES, tmp_path)
    assert discover([tmp_path]) == []
    assert [found.path for found in discover([tmp_path, SAMPLES]) if found.name == "postgres-backup"] == [
        POSTGRES
    ]
    assert Library(hashing_pager, [tmp_path, SAMPLES]).skill("postgres-backup").path == POSTGRES


@given(st.text(min_size=1, max_size=80).filter(lambda text: text.strip() and text.isprintable()))
def test_any_description_is_kept(description: str) -> None:
    told = description.strip()
    skills = [Skill("fine", text, {}, (), None) for text in (told, "d")]
    texts = [stub_text(each, Path("/skills/fine/SKILL.md"), end="X_1", max_tokens=10) for each in skills]
    (front, body), (_, other) = (text.removeprefix("---\n").split("\n---\n", 1) for text in texts)
    assert yaml.safe_load(front)["description"] == told
    assert body.count("$ARGUMENTS") == 1
    assert told in ("`", "!", "$") or body == other


def test_end_of_the_query_differs_from_stub_to_stub(tmp_path: Path) -> None:
    ends = {
        re.findall(r"<<'(\w+)'", write_stub(POSTGRES, tmp_path / str(number)).read_text())[0]
        for number in range(5)
    }
    assert len(ends) == 5


def test_command_line_writes_a_stub_and_tells_what_is_wrong(tmp_path: Path, warm: dict[str, str]) -> None:
    done = run("stub", POSTGRES, env=warm, cwd=tmp_path)
    assert (done.code, done.out) == (0, ".claude/skills/postgres-backup/SKILL.md\n")
    assert str(POSTGRES) in done.err
    assert "PATH" not in done.err
    lost = run("stub", POSTGRES, "--out", tmp_path, env={**warm, "PATH": "/nowhere"}, cwd=tmp_path)
    assert "not on the PATH" in lost.err
    assert "names its original by path" in run("stub", "-", env=warm, cwd=tmp_path).err
    missing = run("stub", "no-such-skill", env=warm, cwd=tmp_path)
    assert (missing.code, "no-such-skill" in missing.err) == (1, True)


def test_stub_names_its_original_in_a_command_to_copy(tmp_path: Path, warm: dict[str, str]) -> None:
    text = write_stub(POSTGRES, tmp_path).read_text()
    (inline,) = re.findall(r"`(skillpager page [^`]+ -)`", text)
    done = run(*shlex.split(inline)[1:], env=warm, stdin=QUERY.encode())
    assert (done.code, "pg_restore" in done.out) == (0, True)

"""What a person gets wrong on the command line: exit code, one clear paragraph, no traceback."""

import re
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from cli_mistakes import BISECT, MISTAKES, make, messages
from cli_process import SAMPLES, Ran, environment, run
from golden import FOLDER, MESSAGES
from openai_server import OpenAIServer, error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files that mistakes name, and a cache."""
    return tmp_path_factory.mktemp("mistakes")


@pytest.fixture(scope="module")
def outcomes(folder: Path) -> Callable[[str], Ran]:
    """Returns the outcome of a mistake, which is made when a test first asks for it."""
    return cache(lambda name: make(MISTAKES[name], folder))


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str, folder: Path, outcomes: Callable[[str], Ran]) -> None:
    mistake, done = MISTAKES[name], outcomes(name)
    assert done.code == mistake.code, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    for place in mistake.names:
        assert place.format(files=folder / "files") in done.err
    if mistake.code == 1:
        lines = [line for line in done.err.splitlines() if not line.startswith("warning: ")]
        assert len(lines) == 1
        assert lines[0].startswith("error: ")


def test_messages_are_the_golden_ones(folder: Path, outcomes: Callable[[str], Ran]) -> None:
    expected = (FOLDER / MESSAGES).read_text(encoding="utf-8")
    assert "\n".join(messages(folder, outcomes)) == expected, "review the new wording, then run `make golden`"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    """An endpoint that refuses every key."""
    with OpenAIServer() as made:
        made.respond = lambda asked: error(401, f"Incorrect API key provided: {asked.authorization}")
        yield made


def test_wrong_key_is_told_as_json_and_never_shown(server: OpenAIServer, tmp_path: Path) -> None:
    variables = {"SKILLPAGER_EMBED_BASE_URL": server.base_url, "SKILLPAGER_EMBED_API_KEY": "sk-wrong"}
    env = environment(tmp_path / "cache", **variables)
    done = run("page", BISECT, "q", "--encoder", "openai:m", "--json", env=env)
    assert (done.code, done.out) == (1, "")
    assert done.error["type"] == "EncoderError"
    assert "refused the API key (status 401)" in done.error["message"]
    assert "SKILLPAGER_EMBED_API_KEY" in done.error["message"]
    assert "sk-wrong" not in done.err


def test_wrong_key_of_the_llm(server: OpenAIServer, tmp_path: Path) -> None:
    variables = {"BASE_URL": server.base_url, "API_KEY": "sk-wrong", "MODEL": "m"}
    env = environment(
        tmp_path / "cache", **{f"SKILLPAGER_LLM_{name}": value for name, value in variables.items()}
    )
    done = run("outline", BISECT, "--classifier", "llm", env=env)
    assert done.code == 1
    assert re.match(r"error: Batch 1 of \d+ .*refused the API key \(status 401\)", done.err)
    assert "sk-wrong" not in done.err


def test_an_endpoint_that_fails_every_skill_is_asked_no_more(server: OpenAIServer, tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", SKILLPAGER_EMBED_BASE_URL=server.base_url)
    done = run("index", SAMPLES, "--encoder", "openai:m", "--jobs", "1", "--json", env=env)
    assert done.code == 1
    assert done.json["skills"] == []
    types = [failure["error"]["type"] for failure in done.json["failed"]]
    assert types == ["EncoderError"] * 3 + ["SkillError"] * (len(types) - 3)
    assert len(types) == len(list(SAMPLES.iterdir()))
    assert "was not tried" in done.json["failed"][-1]["error"]["message"]
    assert len(server.asked) < 6


def test_broken_front_matter_warns_and_works(tmp_path: Path) -> None:
    skill = tmp_path / "x.md"
    skill.write_text("---\nname: [x\n---\n# Title\n\nBody text.\n")
    done = run("page", skill, "body", env=environment(tmp_path / "cache"))
    assert done.code == 0
    assert done.out == "# Title\n\nBody text.\n"
    assert re.match(r"warning: x: x\.md:\d+: the front matter is not valid YAML", done.err)


def test_a_project_file_may_not_choose_an_endpoint(tmp_path: Path) -> None:
    (tmp_path / "skillpager.toml").write_text('encoder = "openai:evil"\nstyle = "plain"\n')
    done = run("page", SAMPLES / "git-bisect", "skip", env=environment(tmp_path / "cache"), cwd=tmp_path)
    assert done.code == 0
    assert done.err.count("warning: skillpager.toml: encoder is ignored") == 1


def test_a_store_that_cannot_be_opened_costs_a_warning_and_commands_for_it_say_why(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    env = environment(tmp_path / "cache", samples=False)
    done = run("page", SAMPLES / "git-bisect", "skip a commit", env=env)
    assert done.code == 0
    assert "git bisect skip" in done.out
    assert done.err.count("warning: ") == 1
    for command in (["index", SAMPLES / "git-bisect"], ["cache", "info"], ["doctor"]):
        done = run(*command, env=env)
        assert done.code == 1
        assert str(tmp_path / "cache") in done.err + done.out
        assert "Traceback" not in done.err


def test_a_project_file_that_is_a_device_stops_no_command(tmp_path: Path) -> None:
    (tmp_path / "skillpager.toml").symlink_to("/dev/zero")
    done = run("cache", "info", env=environment(tmp_path / "cache"), cwd=tmp_path)
    assert done.code == 0
    assert done.err.count("warning: skillpager.toml cannot be read") == 1


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for an empty store, and for no index."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_full_disk_costs_the_cache_but_not_the_page(tiny_disk: Path) -> None:
    env = {**environment(tiny_disk.parent / "cache"), "SKILLPAGER_CACHE_DIR": str(tiny_disk)}
    skill = "examples/skills/kubernetes-debugging"
    done = run("page", skill, "pod stuck in Pending", env=env)
    assert done.code == 0
    assert done.out.startswith(f"[Page of a skill. […] = omitted lines; read: skillpager show {skill} L2-9]")
    assert "warning: the index of kubernetes-debugging is not stored" in done.err
    assert "disk" in done.err
    indexed = run("index", skill, env=env)
    assert indexed.code == 1
    assert indexed.out == ""
    assert "disk is full" in indexed.err
    assert "free some space" in indexed.err

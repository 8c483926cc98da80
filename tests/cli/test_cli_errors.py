"""What a person gets wrong on the command line: exit code, one clear paragraph, no traceback."""

import re
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
def test_mistake(name: str, outcomes: Callable[[str], Ran]) -> None:
    done = outcomes(name)
    assert done.out == ""
    assert "Traceback" not in done.err
    if done.code == 1:
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

"""What a person gets wrong on the command line: exit code, one clear paragraph, no traceback."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from cli_mistakes import MISTAKES, make, messages
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
    if not done.err.startswith("Usage: "):  # an error of typer
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

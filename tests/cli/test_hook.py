"""`skillpager hook` as an agent runs it: a JSON object on stdin, context on stdout, and never a failure."""

import json
import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli_process import SAMPLES, Ran, command, environment, run
from skillpager.cli.hook import (
    MAX_SESSIONS,
    MAX_SKILLS,
    MOST_CHARS,
    read_prompt,
    read_shown,
    session_file,
    write_shown,
)
from skillpager.tokens import default_counter

QUERY = "Restore a single table from last night's PostgreSQL dump."
PAGE_LINE = "pg_restore --dbname=scratch --table=orders --no-owner"
ELSEWHERE = "Thanks, that looks good to me."


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return environment(tmp_path_factory.mktemp("hook") / "cache")


def hook(event: Mapping[str, object] | bytes, *options: str | Path, env: dict[str, str]) -> Ran:
    """Run the hook for an event, with the samples as skills."""
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    # a loaded machine is no failure
    words = ["--skills-dir", SAMPLES, "--seconds", "50", *options]
    return run("hook", *words, env=env, stdin=data)


def context_of(ran: Ran) -> str:
    """Return the context for the model."""
    told: Any = ran.json["hookSpecificOutput"]
    assert told["hookEventName"] == "UserPromptSubmit"
    text: str = told["additionalContext"]
    return text


def test_the_page_of_a_prompt_is_its_context_and_its_cost_is_told(env: dict[str, str]) -> None:
    done = hook({"hook_event_name": "UserPromptSubmit", "prompt": QUERY, "cwd": str(SAMPLES)}, env=env)
    assert done.code == 0
    text = context_of(done)
    assert text.startswith("[For this prompt SkillPager found a skill: postgres-backup]\n")
    assert PAGE_LINE in text
    tokens = default_counter().count(text)
    message = done.json["systemMessage"]
    assert message.startswith(f"SkillPager: postgres-backup, {tokens:,} tokens, ")
    assert message.endswith(" ms")
    assert message in done.err
    # what the page leaves out can be read with the command that it names
    show = text.partition("read: ")[2].partition(" L2-9]")[0].split()
    assert show[:2] == ["skillpager", "show"]
    assert "How it works" in run(*show[1:], "L13-45", env=env).out
    quiet = hook({"prompt": QUERY}, "--quiet", env=env)
    assert (sorted(quiet.json), quiet.err) == (["hookSpecificOutput"], "")


@pytest.mark.parametrize("limit", [300, 700])
def test_the_page_stays_within_its_limit(limit: int, env: dict[str, str]) -> None:
    text = context_of(hook({"prompt": QUERY}, "--max-tokens", str(limit), env=env))
    assert default_counter().count(text.partition("\n\n")[2]) <= limit


@pytest.mark.parametrize(
    "event",
    [
        {"prompt": ELSEWHERE},
        {"prompt": " "},
        {"prompt": f"/postgres-backup {QUERY}"},
        {"prompt": 7},
        {"hook_event_name": "SessionStart", "prompt": QUERY},
        {},
    ],
)
def test_nothing_is_printed_where_no_page_is_wanted(event: Mapping[str, object], env: dict[str, str]) -> None:
    done = hook(event, env=env)
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        (b"", [], "stdin does not hold a JSON object"),
        (b"[" * 100_000, [], "stdin does not hold a JSON object"),
        (b"{}", ["--colour"], "No such option"),
        (json.dumps({"prompt": QUERY}).encode(), ["--max-tokens", "0"], "greater than or equal to 1"),
    ],
)
def test_a_failure_is_a_note_and_no_failure_of_the_prompt(
    data: bytes, options: list[str], says: str, env: dict[str, str]
) -> None:
    done = hook(data, *options, env=env)
    assert (done.code, done.out) == (0, "")
    assert says in done.err


def test_a_broken_configuration_fails_no_prompt(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "skillpager.toml").write_text("max_tokens = [")
    done = subprocess.run(
        command("hook"),
        input=json.dumps({"prompt": QUERY}).encode(),
        env=env,
        cwd=tmp_path,
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"skillpager.toml" in done.stderr


def test_a_prompt_does_not_wait_longer_than_the_limit(env: dict[str, str], tmp_path: Path) -> None:
    own = {**env, "SKILLPAGER_CACHE_DIR": str(tmp_path / "cache")}
    done = run(
        "hook",
        "--skills-dir",
        SAMPLES,
        "--seconds",
        "0.01",
        env=own,
        stdin=json.dumps({"prompt": QUERY}).encode(),
    )
    assert done.code == 0
    assert "no page within 0.01 s" in done.json["systemMessage"]


def test_a_session_is_shown_a_part_once(env: dict[str, str]) -> None:
    first = hook({"prompt": QUERY, "session_id": "one"}, env=env)
    assert PAGE_LINE in context_of(first)
    assert hook({"prompt": QUERY, "session_id": "one"}, env=env).out == ""
    assert PAGE_LINE in context_of(hook({"prompt": QUERY, "session_id": "two"}, env=env))


def test_skills_that_only_the_user_may_start_are_not_shown(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "deploy").mkdir()
    text = "---\nname: deploy\ndescription: Deploy the service.\ndisable-model-invocation: true\n---\n\nDeploy it.\n"
    (tmp_path / "deploy" / "SKILL.md").write_text(text)
    words = ["hook", "--skills-dir", tmp_path, "--seconds", "50"]
    done = run(*words, env=env, stdin=json.dumps({"prompt": "Deploy the service."}).encode())
    assert (done.code, done.out) == (0, "")


def test_of_a_long_prompt_both_ends_count() -> None:
    prompt = read_prompt(json.dumps({"prompt": "a" * MOST_CHARS + "b" * MOST_CHARS}).encode())
    assert prompt is not None
    assert (len(prompt.text), prompt.text[0], prompt.text[-1]) == (MOST_CHARS + 1, "a", "b")


def test_what_sessions_were_shown_is_bounded_and_damage_is_nothing(tmp_path: Path) -> None:
    file = session_file(tmp_path, "a")
    write_shown(file, {}, {f"key{number}": ["n1"] for number in range(MAX_SKILLS + 5)})
    assert [*read_shown(file)] == [f"key{number}" for number in range(5, MAX_SKILLS + 5)]
    write_shown(file, read_shown(file), {"key9": ["n2", "n1"]})
    assert [*read_shown(file).items()][-1] == ("key9", ["n1", "n2"])
    for number in range(MAX_SESSIONS + 5):
        write_shown(session_file(tmp_path, str(number)), {}, {"key": ["n1"]})
    files = list((tmp_path / "hook").iterdir())
    assert len(files) == MAX_SESSIONS
    for damaged in files:
        damaged.write_text('{"key": 3}')
    assert read_shown(files[0]) == {}
    assert session_file(tmp_path, "") is None
    write_shown(None, {}, {"key": ["n1"]})


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_the_first_run_makes_folders_for_their_owner_alone(tmp_path: Path) -> None:
    above = tmp_path / "new" / "deep"
    first = environment(tmp_path / "cache") | {"SKILLPAGER_CACHE_DIR": str(above / "cache")}
    hook({"prompt": QUERY, "session_id": "one", "cwd": str(SAMPLES)}, env=first)
    made = [path for path in (above.parent, *above.parent.rglob("*")) if path.is_dir()]
    assert len(made) > 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in made} == {0o700}

"""The hook in Claude Code's settings: added to what is there, and taken out again to the byte."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_process import environment, run
from messages import raises
from skillpager.errors import SettingsError
from skillpager.install import claude_hooks
from skillpager.install.changes import installed_entry, plan_install, plan_uninstall, write
from skillpager.install.hosts import HOOK_SECONDS, HOOKS, Places, file_of, find_host, hook_entry
from skillpager.install.jsonc import EditError, JsonValue

(HOST,) = HOOKS
PLACE = ("hooks", "skillpager")
COMMAND = ["/opt/my programs/skillpager"]
ENTRY = hook_entry(COMMAND)
OTHER = '{"hooks": [{"type": "command", "command": "date +%F"}]}'
SETTINGS = {
    "none": "",
    "empty": "{}\n",
    "others": '{\n  "model": "opus",\n  "permissions": {\n    "allow": []\n  }\n}\n',
    "no event": '{\n  "hooks": {\n    "Stop": [\n      {\n        "hooks": []\n      }\n    ]\n  }\n}\n',
    "one": '{\n  "hooks": {\n    "UserPromptSubmit": [\n      {\n        "hooks": [\n          '
    '{"type": "command", "command": "date"}\n        ]\n      }\n    ]\n  },\n  "model": "opus"\n}\n',
    "lines": f'{{\r\n\t"hooks": {{\r\n\t\t"UserPromptSubmit": [\r\n\t\t\t{OTHER}, // mine\r\n\t\t\t{OTHER}\r\n'
    "\t\t]\r\n\t}\r\n}\r\n",
    "one line": f'{{"hooks": {{"UserPromptSubmit": [{OTHER}], "Stop": []}}}}',
}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def hooks_of(text: str) -> list[JsonValue]:
    """Return the hooks of the event, of all groups."""
    lines = [line.partition(" // ")[0] for line in text.splitlines()]
    groups = json.loads("\n".join(lines))["hooks"].get("UserPromptSubmit", [])
    return [hook for group in groups for hook in group["hooks"]]


@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_added_is_removed_to_the_character(name: str) -> None:
    text = SETTINGS[name]
    made = not claude_hooks.has_container(text, "hooks")
    added = claude_hooks.with_entry(text, *PLACE, ENTRY)
    assert claude_hooks.read_entry(added, *PLACE) == ENTRY
    assert hooks_of(added) == [*(hooks_of(text) if "UserPromptSubmit" in text else []), ENTRY]
    removed = claude_hooks.without_entry(added, *PLACE, drop_container=made)
    assert removed.strip() in (text.strip(), "{\n}") if name in ("none", "empty") else removed == text


def test_a_hook_among_others_of_its_group_is_renewed_and_removed_alone() -> None:
    mine: JsonValue = {"type": "command", "command": "skillpager hook", "timeout": 3}
    date: JsonValue = {"type": "command", "command": "date"}
    text = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [mine, date]}]}}, indent=2)
    renewed = claude_hooks.with_entry(text, *PLACE, hook_entry(COMMAND, now=mine))
    assert hooks_of(renewed) == [{**ENTRY, "timeout": 3}, date]  # type: ignore[dict-item]
    assert hooks_of(claude_hooks.without_entry(renewed, *PLACE)) == [date]


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("skillpager hook", True),
        ("'/a b/skillpager' hook --skills-dir /x", True),
        (r"'C:\tools\skillpager.exe' hook", True),
        ("/usr/bin/python -P -m skillpager hook", True),
        ("skillpager page x y", False),
        ("my-hook", False),
        ("echo 'skillpager hook'", False),
        ("echo 'unended", False),
        (7, False),
        (None, False),
    ],
)
def test_the_hook_is_known_by_its_command(command: JsonValue, ours: bool) -> None:
    text = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [{"command": command}]}, {}, 3]}})
    assert (claude_hooks.read_entry(text, *PLACE) is not None) is ours


@given(
    st.lists(st.lists(st.sampled_from(["date", "pwd", "ls"]), max_size=3), max_size=4),
    st.integers(1, 8) | st.none(),
)
def test_the_hooks_of_others_stay(groups: list[list[str]], indent: int | None) -> None:
    others = [{"hooks": [{"type": "command", "command": command} for command in group]} for group in groups]
    text = json.dumps({"a": 1, "hooks": {"UserPromptSubmit": others}, "b": [2]}, indent=indent)
    added = claude_hooks.with_entry(text, *PLACE, ENTRY)
    assert json.loads(added) == {
        "a": 1,
        "hooks": {"UserPromptSubmit": [*others, {"hooks": [ENTRY]}]},
        "b": [2],
    }
    removed = claude_hooks.without_entry(added, *PLACE)
    assert removed == text or not others


@pytest.mark.parametrize("value", ["{}", '"x"', "3"])
def test_settings_of_another_form_are_refused(value: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(f'{{"hooks": {{"UserPromptSubmit": {value}}}}}')
    with raises(SettingsError):
        plan_install(HOST, file, ENTRY)
    with pytest.raises(EditError):
        claude_hooks.with_entry('{"hooks": []}', *PLACE, ENTRY)


def test_install_and_uninstall_of_a_file_and_of_what_others_added_since(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    write(plan_install(HOST, file, ENTRY), keep=True)
    assert plan_install(HOST, file, hook_entry(COMMAND, now=installed_entry(HOST, file))).is_none
    write(plan_uninstall(HOST, file), keep=False)
    assert not file.parent.exists()
    write(plan_install(HOST, file, ENTRY), keep=True)
    data = json.loads(file.read_text())
    data["model"] = "opus"
    file.write_text(json.dumps(data))
    write(plan_uninstall(HOST, file), keep=False)
    assert json.loads(file.read_text()) == {"model": "opus"}


def test_folders_of_skills_are_named_in_the_command_and_stay() -> None:
    entry = hook_entry(COMMAND, skills_dirs=[Path("/my skills")])
    assert entry == {
        "type": "command",
        "command": "'/opt/my programs/skillpager' hook --skills-dir '/my skills'",
        "timeout": HOOK_SECONDS,
    }
    again = hook_entry(["skillpager"], now=entry)
    assert again == {**entry, "command": "skillpager hook --skills-dir '/my skills'"}  # type: ignore[dict-item]


def test_agents_without_hooks_are_told() -> None:
    with raises(SettingsError):
        find_host("cursor", hook=True)
    places = Places(home=Path("/home/me"), project=Path("/p"), platform="linux", environ={})
    assert str(file_of(HOST, "user", places)) == "/home/me/.claude/settings.json"
    assert str(file_of(HOST, "project", places)) == "/p/.claude/settings.json"


def test_the_commands_write_and_remove_it(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", XDG_STATE_HOME=str(tmp_path / "state"))
    file = Path(env["HOME"]) / ".claude" / "settings.json"
    options = ["--agent", "claude-code", "--hook"]
    shown = run("install", *options, "--dry-run", env=env)
    assert (shown.code, file.exists()) == (0, False)
    assert '+            "type": "command",' in shown.out
    skills = tmp_path / "skills"
    skills.mkdir()
    done = run("install", *options, "--skills-dir", skills, "--yes", env=env)
    assert done.code == 0
    (hook,) = hooks_of(file.read_text())
    assert isinstance(hook, dict)
    assert str(hook["command"]).endswith(f"hook --skills-dir {skills}")
    assert "restart Claude Code" in done.err
    rows = run("install", "--hook", "--json", env=env).json["agents"]
    assert [(row["agent"], row["scope"], row["installed"]) for row in rows] == [
        ("claude-code", "user", True),
        ("claude-code", "project", False),
    ]
    assert run("uninstall", *options, "--yes", env=env).code == 0
    assert not file.exists()
    refused = run("install", "--agent", "zed", "--hook", "--yes", env=env)
    assert (refused.code, "--hook is for claude-code" in refused.err) == (1, True)
    assert list(Path(env["HOME"]).iterdir()) == []

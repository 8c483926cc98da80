"""Agents' configuration files: what `install` does to them, and that `uninstall` undoes it to the byte."""

import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli_process import ROOT, environment, invoke, run_on_terminal
from messages import raises
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.install.changes import installed_entry, plan_install, plan_uninstall, write
from skillpager.install.hosts import (
    HOOKS,
    HOSTS,
    Host,
    Places,
    file_of,
    find_host,
    hook_entry,
    is_used,
    own_command,
    server_entry,
)
from skillpager.install.jsonc import JsonValue
from test_host_formats import CLAUDE, CODEX, VSCODE, ZED

COMMAND = ["/opt/bin/skillpager"]
BY_NAME = {host.name: host for host in HOSTS}
# a file of an agent as people have it, for each form of entry and of file
EXISTING = {
    "claude-code": CLAUDE,
    "codex": CODEX,
    "vscode": VSCODE.replace("mcpServers", "servers"),
    "zed": ZED.replace("mcpServers", "context_servers").replace("// none yet", '"a": {} // mine'),
    "cursor": '{"mcpServers":{"docs":{"command":"npx","args":["-y","docs"]}}}',
    "windsurf": '{\r\n\t"mcpServers": {}\r\n}\r\n',
    "claude-desktop": "\ufeff" + '{\n    "mcpServers": {\n    }\n}',
    "cline": '{\n  "mcpServers": {\n    "a": {"transport": {"type": "stdio", "command": "a"}}\n  }\n}\n',
    "copilot": '{\n  "mcpServers": {"a": {"type": "http", "url": "https://example.com", "tools": ["b"]}}\n}\n',
    "opencode": '{\n  // mine\n  "mcp": {\n    "a": {"type": "local", "command": ["a"],},\n  },\n}\n',
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.txt"


def install(host: Host, file: Path, command: list[str] = COMMAND) -> None:
    write(plan_install(host, file, server_entry(host, command)))


def uninstall(host: Host, file: Path) -> None:
    write(plan_uninstall(host, file))


def servers(host: Host, file: Path) -> Mapping[str, object]:
    """Return the servers that a file without comments names, read by the standard library."""
    text = file.read_text(encoding="utf-8-sig")
    data = tomllib.loads(text) if host.name == "codex" else json.loads(text)
    found: Mapping[str, object] = data[host.container]
    return found


@pytest.mark.parametrize("name", EXISTING)
def test_install_and_uninstall_give_back_the_same_bytes(name: str, config: Path) -> None:
    host = BY_NAME[name]
    before = EXISTING[name].encode()
    config.write_bytes(before)
    install(host, config)
    assert installed_entry(host, config) == server_entry(host, COMMAND)
    assert config.read_bytes() != before
    uninstall(host, config)
    if name == "windsurf" or name == "claude-desktop":  # nothing else was in it
        assert not config.exists()
    else:
        assert config.read_bytes() == before


@pytest.mark.parametrize("name", BY_NAME)
def test_uninstall_deletes_a_file_with_nothing_else_in_it(name: str, tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "file"
    install(BY_NAME[name], file)
    assert servers(BY_NAME[name], file) == {"skillpager": server_entry(BY_NAME[name], COMMAND)}
    uninstall(BY_NAME[name], file)
    assert not file.exists()


def test_uninstall_without_an_entry_has_nothing_to_do(config: Path) -> None:
    assert plan_uninstall(BY_NAME["cursor"], config).is_none
    config.write_text(CLAUDE)
    assert plan_uninstall(BY_NAME["cursor"], config).is_none


def test_link_and_permissions_stay(config: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text(CLAUDE)
    real.chmod(0o640)
    config.symlink_to(real)
    for change in (install, uninstall):
        change(BY_NAME["claude-code"], config)
        assert config.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_text() == CLAUDE


def test_read_only_file_is_left_alone(config: Path) -> None:
    config.write_text(CLAUDE)
    config.chmod(0o444)
    with raises(SkillPagerError):
        install(BY_NAME["claude-code"], config)
    assert config.read_text() == CLAUDE


def test_change_by_another_program_meanwhile_is_not_lost(config: Path) -> None:
    config.write_text(CLAUDE)
    change = plan_install(BY_NAME["claude-code"], config, server_entry(BY_NAME["claude-code"], COMMAND))
    config.write_text(CLAUDE + "\n")
    with raises(SkillPagerError):
        write(change)
    assert config.read_text() == CLAUDE + "\n"


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("cursor", b'{\n  "a": 1,,\n}', ":2:10: "),
        ("codex", b"a = 1\nb = \n", ":2:5: "),
        ("cursor", b'{\n "\xfc": 1}', ":2 is not UTF-8"),
        ("cursor", "{}".encode("utf-16"), ":1 is not UTF-8"),
    ],
)
def test_file_that_cannot_be_read_is_told_with_its_place_and_left_alone(
    name: str, data: bytes, says: str, config: Path
) -> None:
    config.write_bytes(data)
    for change in (install, uninstall):
        with pytest.raises(SkillPagerError) as raised:
            change(BY_NAME[name], config)
        assert f"{config}{says}" in str(raised.value)
        assert "nothing was changed" in str(raised.value)
    assert config.read_bytes() == data
    assert installed_entry(BY_NAME[name], config) is None


def test_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    with raises(SkillPagerError):
        install(BY_NAME["cursor"], tmp_path)


FILES = {
    ("linux", "claude-code"): ("/home/me/.claude.json", "/p/.mcp.json"),
    ("linux", "codex"): ("/home/me/.codex/config.toml", "/p/.codex/config.toml"),
    ("linux", "vscode"): ("/home/me/.config/Code/User/mcp.json", "/p/.vscode/mcp.json"),
    ("darwin", "vscode"): ("/home/me/Library/Application Support/Code/User/mcp.json", "/p/.vscode/mcp.json"),
    ("win32", "vscode"): ("/home/me/AppData/Roaming/Code/User/mcp.json", "/p/.vscode/mcp.json"),
    ("linux", "copilot"): ("/home/me/.copilot/mcp-config.json", "/p/.github/mcp.json"),
    ("win32", "kilo"): ("/home/me/.config/kilo/kilo.jsonc", "/p/kilo.jsonc"),
    ("darwin", "zed"): ("/home/me/.config/zed/settings.json", None),
    ("win32", "zed"): ("/home/me/AppData/Roaming/zed/settings.json", None),
}


@pytest.mark.parametrize(("platform", "name"), FILES)
def test_files_are_where_the_documentation_says(platform: str, name: str) -> None:
    places = Places(home=Path("/home/me"), project=Path("/p"), platform=platform, environ={})
    user, project = FILES[platform, name]
    assert str(file_of(BY_NAME[name], "user", places)) == user
    if project:
        assert str(file_of(BY_NAME[name], "project", places)) == project
    else:
        with raises(SettingsError):
            file_of(BY_NAME[name], "project", places)


def test_documentation_lists_each_host_as_it_is() -> None:
    _, *rows = [
        line
        for line in (ROOT / "docs" / "hosts.md").read_text().partition("## MCP server")[0].splitlines()
        if line.startswith("| `")
    ]
    assert len(rows) == len(HOSTS)
    for host, row in zip(HOSTS, rows, strict=True):
        assert row.startswith(f"| `{host.name}`")
        assert f"`{host.container}`" in row
        assert f"({host.documentation})" in row
        assert (f"`{host.project.removeprefix('{project}/')}`" if host.project else "|  |") in row.replace(
            "| |", "|  |"
        )


def test_variables_move_files() -> None:
    moved = {"CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/cc", "XDG_CONFIG_HOME": "/x"}
    places = Places(home=Path("/home/me"), platform="linux", environ=moved)
    files = {
        name: str(file_of(BY_NAME[name], "user", places))
        for name in ("codex", "claude-code", "vscode", "zed")
    }
    assert files == {
        "codex": "/c/config.toml",
        "claude-code": "/cc/.claude.json",
        "vscode": "/x/Code/User/mcp.json",
        "zed": "/x/zed/settings.json",
    }


def test_host_that_does_not_run_here_is_told(tmp_path: Path) -> None:
    places = Places(home=tmp_path, platform="linux", environ={})
    with raises(SettingsError):
        file_of(BY_NAME["claude-desktop"], "user", places)
    with raises(SettingsError):
        file_of(BY_NAME["cursor"], "x", places)
    with raises(SettingsError):
        find_host("x")


def test_agents_are_found_by_their_folders(tmp_path: Path) -> None:
    places = Places(home=tmp_path, platform="linux", environ={})
    assert not any(is_used(host, places) for host in HOSTS)
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".claude.json").touch()
    assert [host.name for host in HOSTS if is_used(host, places)] == ["claude-code", "cursor"]


def test_entry_names_transport_and_folders_of_skills_in_each_form() -> None:
    entry = server_entry(
        BY_NAME["vscode"], ["/py", "-m", "skillpager"], skills_dirs=[Path("/a b"), Path("/c")]
    )
    assert entry == {
        "type": "stdio",
        "command": "/py",
        "args": ["-m", "skillpager", "mcp"],
        "env": {"SKILLPAGER_SKILLS_DIR": f"/a b{os.pathsep}/c"},
    }
    assert server_entry(BY_NAME["zed"], COMMAND) == {"command": COMMAND[0], "args": ["mcp"]}
    assert server_entry(BY_NAME["opencode"], COMMAND, skills_dirs=[Path("/a")]) == {
        "type": "local",
        "command": [COMMAND[0], "mcp"],
        "environment": {"SKILLPAGER_SKILLS_DIR": "/a"},
    }
    plain = {"type": "stdio", "command": COMMAND[0], "args": ["mcp"]}
    assert server_entry(BY_NAME["cline"], COMMAND) == {"transport": plain}
    assert server_entry(BY_NAME["copilot"], COMMAND) == {**plain, "type": "local", "tools": ["*"]}


def added(host: Host, entry: JsonValue) -> JsonValue:
    """Return an entry with what its owner may add to it, in the form of the agent."""
    assert isinstance(entry, dict)
    if host.form == "nested":
        return {**entry, "transport": added(BY_NAME["droid"], entry["transport"]), "disabled": False}
    variables = "environment" if host.form == "list" else "env"
    words = "command" if host.form == "list" else "args"
    held = entry[words]
    assert isinstance(held, list)
    return {
        **entry,
        words: [*held, "--resend", "/my skills"],
        variables: {"SKILLPAGER_SKILLS_DIR": "/mine", "KEY": "x", "a.b": "y"},
        "timeout": 60,
        "trust": True,
        "tools": ["load_skill"],
    }


@pytest.mark.parametrize("name", EXISTING)
def test_second_install_keeps_what_its_owner_added_to_the_entry(name: str, config: Path) -> None:
    host = BY_NAME[name]
    config.write_text(EXISTING[name])
    mine = added(host, server_entry(host, COMMAND))
    write(plan_install(host, config, mine))
    now = installed_entry(host, config)
    assert plan_install(host, config, server_entry(host, COMMAND, now=now)).is_none
    moved = server_entry(host, ["/py", "-m", "skillpager"], now=now)
    write(plan_install(host, config, moved))
    expected = added(host, server_entry(host, ["/py", "-m", "skillpager"]))
    again = installed_entry(host, config)
    assert again == expected
    folders = server_entry(host, COMMAND, skills_dirs=[Path("/new")], now=again)
    assert '"SKILLPAGER_SKILLS_DIR": "/new"' in json.dumps(folders)
    assert '"KEY": "x"' in json.dumps(folders)


def test_a_later_write_removes_what_a_killed_one_left(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = BY_NAME["cursor"]
    change = plan_install(host, config, server_entry(host, COMMAND))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", Mock(side_effect=OSError("killed")))
        patch.setattr(Path, "unlink", Mock())
        with pytest.raises(OSError, match="killed"):
            write(change)
    (left,) = config.parent.glob(".*.tmp")
    other = config.with_name(".mine.tmp")
    other.touch()
    write(change)
    assert left.exists()  # another process may be writing it
    for path in (left, other):
        os.utime(path, (0, 0))
    write(plan_uninstall(host, config))
    assert [*config.parent.glob(".*.tmp")] == [other]


def test_second_install_keeps_numbers_as_they_are_written(config: Path) -> None:
    host = BY_NAME["codex"]
    config.write_text(
        '[mcp_servers.skillpager]\ncommand = "old"\nstartup_timeout_sec = 12.50\n'
        '[mcp_servers.skillpager.env]\n"a.b" = "c"\n[mcp_servers.skillpager.tools.load_skill]\n'
        'approval_mode = "approve"\n'
    )
    install_again = server_entry(host, COMMAND, now=installed_entry(host, config))
    write(plan_install(host, config, install_again))
    assert config.read_text() == (
        '[mcp_servers.skillpager]\ncommand = "/opt/bin/skillpager"\nargs = ["mcp"]\n'
        'startup_timeout_sec = 12.50\nenv = { "a.b" = "c" }\n'
        'tools = { load_skill = { approval_mode = "approve" } }\n'
    )


def test_entry_of_an_address_becomes_one_of_a_command() -> None:
    now: JsonValue = {"type": "http", "url": "http://127.0.0.1:8642/mcp", "headers": {"a": "b"}, "timeout": 9}
    plain = {"type": "stdio", "command": COMMAND[0], "args": ["mcp"]}
    assert server_entry(BY_NAME["claude-code"], COMMAND, now=now) == plain
    nested: JsonValue = {"disabled": True, "transport": now}
    assert server_entry(BY_NAME["cline"], COMMAND, now=nested) == {"disabled": True, "transport": plain}
    other: JsonValue = {"command": "npx", "args": ["mcp", "docs"], "env": {"A": "b"}}
    entry = {"command": COMMAND[0], "args": ["mcp"], "env": {"A": "b"}}
    assert server_entry(BY_NAME["zed"], COMMAND, now=other) == entry


def test_file_of_another_name_is_changed_if_it_is_the_only_one(tmp_path: Path) -> None:
    places = Places(home=tmp_path, project=tmp_path / "p", platform="linux", environ={})
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").touch()
    assert file_of(BY_NAME["opencode"], "user", places) == folder / "opencode.json"
    (folder / "opencode.jsonc").touch()
    assert file_of(BY_NAME["opencode"], "user", places) == folder / "opencode.jsonc"


def test_command_starts_this_package_whatever_is_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trap = tmp_path / "skillpager.py"
    trap.write_text("raise SystemExit('from the project')")
    for program in (own_command("user"), [sys.executable, "-P", "-m", "skillpager"]):
        done = subprocess.run(
            [*program, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.stdout.startswith("skillpager "), done.stderr
    monkeypatch.setenv("PATH", str(Path(own_command("user")[0]).parent))
    assert own_command("project") == ["skillpager"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert own_command("project") == own_command("user")


def test_command_line_shows_asks_installs_and_undoes(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text('{\n  "mcpServers": {}\n}\n')

    refused = invoke("install", "--agent", "cursor", env=env)
    assert refused.code == 2
    assert "add --yes to change" in refused.err
    shown = invoke("install", "--agent", "cursor", "--dry-run", env=env)
    assert shown.out == refused.out
    assert '+    "skillpager": {' in shown.out
    declined = run_on_terminal("install", "--agent", "cursor", env=env, typed=b"n\n")
    assert declined.code == 1
    assert "skillpager" not in file.read_text()

    assert "Change" in run_on_terminal("install", "--agent", "cursor", env=env, typed=b"y\n").out
    entry = json.loads(file.read_text())["mcpServers"]["skillpager"]
    assert Path(entry["command"]).is_absolute()
    again = invoke("install", "--agent", "cursor", env=env)
    assert (again.code, again.out) == (0, "")
    assert "Nothing to do" in again.err

    assert '-    "skillpager": {' in invoke("uninstall", "--agent", "cursor", "--yes", env=env).out
    assert not file.exists()


def test_command_line_without_agent_lists_agents(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", XDG_CONFIG_HOME=str(tmp_path / "config"))
    (tmp_path / "home" / ".gemini").mkdir()
    assert invoke("install", "--agent", "gemini", "--yes", env=env, cwd=tmp_path).code == 0
    listed = invoke("install", env=env, cwd=tmp_path)
    rows = [line.split("\t") for line in listed.out.splitlines()]
    assert rows[0] == ["agent", "scope", "file", "found", "installed"]
    assert ["gemini", "user", str(tmp_path / "home" / ".gemini" / "settings.json"), "yes", "yes"] in rows
    assert ["cursor", "project", str(tmp_path / ".cursor" / "mcp.json"), "no", "no"] in rows
    assert "install --agent NAME" in listed.err


def test_new_file_of_the_user_is_private_and_that_of_a_project_is_not(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    args = ("install", "--agent", "claude-code", "--yes")
    assert invoke(*args, env=env, cwd=tmp_path).code == 0
    file = tmp_path / "home" / ".claude.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert invoke(*args, "--scope", "project", env=env, cwd=tmp_path).code == 0
    (tmp_path / "any").touch()
    assert (tmp_path / ".mcp.json").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_project_file_with_a_private_path_is_told(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", PATH="/nowhere")
    done = invoke("install", "--agent", "vscode", "--scope", "project", "--dry-run", env=env, cwd=tmp_path)
    assert "other members of the project" in done.err


# ---- the hook in Claude Code's settings


(HOOKED,) = HOOKS
HOOK_COMMAND = ["/opt/my programs/skillpager"]
DATE = {"type": "command", "command": "date"}


def groups_of(file: Path) -> list[JsonValue]:
    groups: list[JsonValue] = json.loads(file.read_text())["hooks"]["UserPromptSubmit"]
    return groups


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
        (7, False),
    ],
)
def test_the_hook_is_known_by_its_command(command: JsonValue, ours: bool) -> None:
    data: JsonValue = {"hooks": {"UserPromptSubmit": [{"hooks": [{"command": command}]}, {}, 3]}}
    assert (HOOKED.find(data)[1] is not None) is ours


@given(
    st.lists(st.lists(st.sampled_from(["date", "pwd", "ls"]), max_size=3), max_size=4),
    st.integers(1, 8) | st.none(),
)
def test_the_hooks_of_others_stay_to_the_byte(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[str]], indent: int | None
) -> None:
    file = tmp_path_factory.mktemp("claude") / "settings.json"
    others = [{"hooks": [{"type": "command", "command": command} for command in group]} for group in groups]
    text = json.dumps({"a": 1, "hooks": {"UserPromptSubmit": others}, "b": [2]}, indent=indent)
    file.write_text(text)
    entry = hook_entry(HOOK_COMMAND)
    write(plan_install(HOOKED, file, entry))
    assert groups_of(file) == [{"hooks": [entry]}, *others]
    assert plan_install(HOOKED, file, hook_entry(HOOK_COMMAND, now=installed_entry(HOOKED, file))).is_none
    write(plan_uninstall(HOOKED, file))
    assert json.loads(file.read_text()) == json.loads(text) if others else {"a": 1, "b": [2]}
    assert file.read_text() == text or not others


def test_a_hook_in_a_group_with_others_is_renewed_and_removed_alone(config: Path) -> None:
    mine: JsonValue = {"type": "command", "command": "skillpager hook --skills-dir /x", "timeout": 3}
    config.write_text(json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [mine, DATE]}]}}, indent=2))
    write(plan_install(HOOKED, config, hook_entry(HOOK_COMMAND, now=mine)))
    line = "'/opt/my programs/skillpager' hook --skills-dir /x"
    assert groups_of(config) == [{"hooks": [{"type": "command", "command": line, "timeout": 3}, DATE]}]
    write(plan_uninstall(HOOKED, config))
    assert groups_of(config) == [{"hooks": [DATE]}]


@pytest.mark.parametrize("value", ["{}", '"x"', "3"])
def test_settings_of_another_form_are_refused(value: str, config: Path) -> None:
    config.write_text(f'{{"hooks": {{"UserPromptSubmit": {value}}}}}')
    with raises(SkillPagerError):
        plan_install(HOOKED, config, hook_entry(HOOK_COMMAND))


def test_the_commands_write_and_remove_the_hook(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    file = Path(env["HOME"]) / ".claude" / "settings.json"
    options = ["--agent", "claude-code", "--hook"]
    skills = tmp_path / "skills"
    skills.mkdir()
    done = invoke("install", *options, "--skills-dir", skills, "--yes", env=env)
    assert done.code == 0
    [group] = groups_of(file)
    assert f"hook --skills-dir {skills}" in json.dumps(group)
    assert "restart Claude Code" in done.err
    assert invoke("install", *options, "--project", "--yes", env=env).code == 0
    assert f"hook --skills-dir {skills} --project" in file.read_text()
    assert "Nothing to do" in invoke("install", *options, "--project", "--yes", env=env).err
    assert invoke("install", "--agent", "zed", "--project", env=env).code == 2
    rows = [line.split("\t") for line in invoke("install", "--hook", env=env).out.splitlines()[1:]]
    assert [(row[1], row[4]) for row in rows] == [("user", "yes"), ("project", "no")]
    assert invoke("uninstall", *options, "--yes", env=env).code == 0
    assert not file.exists()
    refused = invoke("install", "--agent", "zed", "--hook", "--yes", env=env)
    assert (refused.code, "--hook is for claude-code" in refused.err) == (2, True)

"""The agents that `skillpager install` knows, the files that list their servers, and the entries in them."""

import os
import re
import shlex
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Literal

from skillpager.errors import SettingsError
from skillpager.install import jsonc, toml
from skillpager.install.jsonc import JsonValue

SERVER = "skillpager"
SERVER_ARGUMENTS = ("mcp",)
SCOPES = ("user", "project")
# the command that Claude Code runs with every prompt, and where its settings list such commands
HOOK, HOOK_EVENT, HOOKS_CONTAINER = "hook", "UserPromptSubmit", "hooks"
PROJECT_OPTION = "--project"
_RUNS_HOOK = re.compile(rf"(?:.*[\s/\\])?{SERVER}(?:\.exe)?['\"]?\s+{HOOK}(?:\s.*)?")


@dataclass(frozen=True, slots=True)
class Host:
    """An agent and its configuration file."""

    name: str  # for `--agent`
    title: str  # of the product
    documentation: str  # address of the page that documents this
    traces: Sequence[str]  # files or folders that exist if the agent has been used
    user: str  # the user's file; `Places` replaces the names in braces
    project: str | None = None  # the project's file, if there is one
    container: str = "mcpServers"  # key in the file under which servers are listed by name
    also: Sequence[str] = ()  # other names of these files; one is changed if there is none of the first
    format: str = "jsonc"  # or `toml`
    fixed: Mapping[str, JsonValue] = field(default_factory=dict)  # what every entry has, as a transport
    # of an entry; `list`: a command with its arguments in one list, and variables under `environment`;
    # `nested`: under `transport`
    form: Literal["plain", "list", "nested"] = "plain"
    platforms: Sequence[str] = ()  # values of `sys.platform` that it runs on; empty for all

    @property
    def editor(self) -> ModuleType:
        """Reads and changes the file: `jsonc` or `toml`, two modules with the same functions."""
        return {"jsonc": jsonc, "toml": toml}[self.format]

    def find(self, data: JsonValue) -> tuple[list[str | int], JsonValue]:
        """Return where SkillPager's entry is in the data of the file, or is to be, and the entry, if any."""
        held = data.get(self.container) if isinstance(data, dict) else None
        if self.container != HOOKS_CONTAINER:
            return [self.container, SERVER], held.get(SERVER) if isinstance(held, dict) else None
        groups = held.get(HOOK_EVENT) if isinstance(held, dict) else None
        groups = groups if isinstance(groups, list) else []
        for number, group in enumerate(groups):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(hooks if isinstance(hooks, list) else []):
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str) and _RUNS_HOOK.fullmatch(command):
                    return [self.container, HOOK_EVENT, number, "hooks", place], hook
        return [self.container, HOOK_EVENT, len(groups), "hooks", 0], None


def _read_hosts(table: str) -> tuple[Host, ...]:
    text = files(__package__).joinpath("hosts.toml").read_text(encoding="utf-8")
    return tuple(Host(**row) for row in tomllib.loads(text)[table])


HOSTS = _read_hosts("hosts")
AGENTS = tuple(host.name for host in HOSTS)
# agents that show their model what a command prints about a prompt
HOOKS = _read_hosts("hooks")
# seconds after which the agent gives the command up; it gives itself up before
HOOK_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Places:
    """The folders on this machine in which agents have their files; some variables move a folder."""

    home: Path = field(default_factory=Path.home)
    project: Path = field(default_factory=Path.cwd)
    platform: str = sys.platform
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def path(self, template: str) -> Path:
        """Return the path of a template such as `{home}/.cursor/mcp.json`."""
        from skillpager.library.discovery import moved_folders

        def folder(variable: str, default: Path) -> Path:
            return Path(self.environ.get(variable) or default)

        roaming = folder("APPDATA", self.home / "AppData" / "Roaming")
        moved = moved_folders(self.home, self.environ)
        programs = {"darwin": self.home / "Library" / "Application Support", "win32": roaming}
        settings = {"darwin": self.home / ".config", "win32": roaming}
        known = {
            "home": self.home,
            "project": self.project,
            **moved,
            # Claude Code has this file beside its folder, but in the folder if that is moved
            "claude_json": folder("CLAUDE_CONFIG_DIR", self.home) / ".claude.json",
            "programs": programs.get(self.platform, moved["config"]),
            "settings": settings.get(self.platform, moved["config"]),
        }
        return Path(template.format(**known))


def find_host(name: str, *, hook: bool = False) -> Host:
    """Return the agent of this name, with the file of its servers or hooks; a `SettingsError` if unknown."""
    if name not in AGENTS:
        raise SettingsError(f"Unknown agent {name!r}: choose one of {', '.join(AGENTS)}.")
    host = HOSTS[AGENTS.index(name)]
    hooked = {each.name: each for each in HOOKS}
    if hook and name not in hooked:
        raise SettingsError(
            f"{host.title} has no hook for prompts that SkillPager knows: --hook is for {', '.join(hooked)}."
        )
    return hooked[name] if hook else host


def file_of(host: Host, scope: str, places: Places) -> Path:
    """Return the file in which the agent looks for servers; a `SettingsError` if it has none here."""
    if scope not in SCOPES:
        raise SettingsError(f"Unknown scope {scope!r}: choose one of {', '.join(SCOPES)}.")
    if host.platforms and places.platform not in host.platforms:
        raise SettingsError(f"{host.title} does not run on this system ({places.platform}).")
    template = host.user if scope == "user" else host.project
    if template is None:
        raise SettingsError(f"{host.title} has no project configuration: use --scope user.")
    path = places.path(template)
    others = (path.with_name(name) for name in host.also)
    return path if path.exists() else next((other for other in others if other.exists()), path)


def is_used(host: Host, places: Places) -> bool:
    """Return True if the agent has been used on this machine."""
    runs = not host.platforms or places.platform in host.platforms
    return runs and any(places.path(trace).exists() for trace in host.traces)


def server_entry(
    host: Host, command: Sequence[str], *, skills_dirs: Sequence[Path] = (), now: JsonValue = None
) -> JsonValue:
    """Return the entry that makes the agent start the server by a command, with further folders of skills.

    If `now`, the entry that is there, starts a server by a command, its other members stay: variables, trust,
    time limits, arguments for the server, and its folders if none are given.
    """
    outer = dict(now) if isinstance(now, dict) and host.form == "nested" else {}
    inner = outer.get("transport") if host.form == "nested" else now
    held = dict(inner) if isinstance(inner, dict) and "command" in inner else {}
    words: list[JsonValue] = [*command, *SERVER_ARGUMENTS, *_further_arguments(held)]
    entry: dict[str, JsonValue] = {**host.fixed}
    if host.form == "list":
        entry["command"] = words
    else:
        entry |= {"command": words[0], "args": words[1:]}
    # what the user chose of the other fixed members stays, such as a shorter list of tools
    entry |= {key: value for key, value in held.items() if key not in ("type", "command", "args")}
    if skills_dirs:
        variables = "environment" if host.form == "list" else "env"
        known = held.get(variables)
        folders = os.pathsep.join(map(str, skills_dirs))
        entry[variables] = {**(known if isinstance(known, dict) else {}), "SKILLPAGER_SKILLS_DIR": folders}
    return {**outer, "transport": entry} if host.form == "nested" else entry


def hook_entry(
    command: Sequence[str], *, skills_dirs: Sequence[Path] = (), project: bool = False, now: JsonValue = None
) -> JsonValue:
    """Return the entry that makes an agent run `skillpager hook` with every prompt.

    It searches further folders, without any those of `now` stay, and with `project` the project's, too. Other
    members of `now`, the entry that is there, stay.
    """
    held = dict(now) if isinstance(now, dict) else {}
    words = shlex.split(str(held.get("command", "")))
    further = words[words.index(HOOK) + 1 :] if HOOK in words else []
    if skills_dirs:
        further = [word for folder in skills_dirs for word in ("--skills-dir", str(folder))]
    if project and PROJECT_OPTION not in further:
        further.append(PROJECT_OPTION)
    line = shlex.join([*command, HOOK, *further])
    return {"timeout": HOOK_SECONDS, **held, "type": "command", "command": line}


def _further_arguments(entry: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return the arguments of an entry that its owner gave `skillpager mcp`, such as folders."""
    words: list[JsonValue] = []
    for member in ("command", "args"):
        value = entry.get(member, [])
        words += value if isinstance(value, list) else [value]
    if not any(SERVER in str(word) for word in words) or SERVER_ARGUMENTS[0] not in words:
        return []
    own = words[words.index(SERVER_ARGUMENTS[0]) + 1 :]
    return [word for word in own if word not in SERVER_ARGUMENTS]


def own_command(scope: str) -> list[str]:
    """Return the command line that starts this copy of SkillPager.

    A user's file gets the full path of the program: agents with a graphical interface do not have the PATH of
    a shell. A project's file is shared, so it gets the bare name, if that is found and is this copy. If the
    program is not installed, the module is run, and not from the current folder (`-P`): a project may
    contain anything.
    """
    suffix = ".exe" if sys.platform == "win32" else ""
    program = Path(sysconfig.get_path("scripts")) / f"{SERVER}{suffix}"
    if not program.is_file():
        return [sys.executable, "-P", "-m", SERVER]
    found = shutil.which(SERVER)
    if scope == "project" and found is not None and Path(found).resolve() == program.resolve():
        return [SERVER]
    return [str(program)]

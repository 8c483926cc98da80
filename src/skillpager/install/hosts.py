"""The agents that `skillpager install` knows: which file lists their MCP servers, and in which form.

Each row follows the documentation that it cites. An agent whose documentation leaves file or form open is
not here.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from skillpager.errors import SettingsError
from skillpager.install import jsonc, toml
from skillpager.install.jsonc import JsonValue

SERVER = "skillpager"
# several agents show their model the structured content instead of the text, at twice the tokens
SERVER_ARGUMENTS = ("mcp", "--text-only")
SCOPES = ("user", "project")


class Editor(Protocol):
    """Reads and changes one file format: the modules `jsonc` and `toml`.

    An entry is the member `name` of `container`, which the root of the file holds. All functions raise
    `EditError` for a text that cannot be read or changed.
    """

    def has_container(self, text: str, container: str) -> bool:
        """Return True if the text has a place for entries."""

    def read_entry(self, text: str, container: str, name: str) -> JsonValue:
        """Return the entry, None if there is none."""

    def with_entry(self, text: str, container: str, name: str, entry: JsonValue) -> str:
        """Return the text with the entry, everything else as it was."""

    def without_entry(self, text: str, container: str, name: str, *, drop_container: bool = False) -> str:
        """Return the text without the entry, everything else as it was."""

    def is_empty(self, text: str) -> bool:
        """Return True if the text is empty."""


@dataclass(frozen=True, slots=True)
class Host:
    """An agent and its configuration file.

    Attributes:
        name: Its name for `--agent`.
        title: Its product name.
        documentation: Address of the page that documents this.
        traces: Files or folders that exist if the agent has been used.
        user: The user's file; `Places` replaces the names in braces.
        project: The project's file; None if there is none.
        container: Key in the file under which servers are listed by name.
        editor: Reads and changes the file.
        typed: Whether an entry names its transport.
        platforms: Values of `sys.platform` that it runs on; empty for all.
    """

    name: str
    title: str
    documentation: str
    traces: tuple[str, ...]
    user: str
    project: str | None = None
    container: str = "mcpServers"
    editor: Editor = jsonc
    typed: bool = False
    platforms: tuple[str, ...] = ()


HOSTS = (
    Host(
        name="claude-code",
        title="Claude Code",
        documentation="https://code.claude.com/docs/en/mcp",
        user="{claude}/.claude.json",
        project="{project}/.mcp.json",
        traces=("{claude}/.claude.json", "{home}/.claude"),
        typed=True,
    ),
    Host(
        name="claude-desktop",
        title="Claude Desktop",
        documentation="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        user="{programs}/Claude/claude_desktop_config.json",
        traces=("{programs}/Claude",),
        platforms=("darwin", "win32"),
    ),
    Host(
        name="codex",
        title="Codex",
        container="mcp_servers",
        documentation="https://developers.openai.com/codex/mcp",
        user="{codex}/config.toml",
        project="{project}/.codex/config.toml",
        traces=("{codex}",),
        editor=toml,
    ),
    Host(
        name="cursor",
        title="Cursor",
        documentation="https://cursor.com/docs/mcp",
        user="{home}/.cursor/mcp.json",
        project="{project}/.cursor/mcp.json",
        traces=("{home}/.cursor",),
        typed=True,
    ),
    Host(
        name="gemini",
        title="Gemini CLI",
        documentation="https://geminicli.com/docs/tools/mcp-server",
        user="{home}/.gemini/settings.json",
        project="{project}/.gemini/settings.json",
        traces=("{home}/.gemini",),
    ),
    Host(
        name="vscode",
        title="Visual Studio Code",
        container="servers",
        documentation="https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
        user="{programs}/Code/User/mcp.json",
        project="{project}/.vscode/mcp.json",
        traces=("{programs}/Code",),
        typed=True,
    ),
    Host(
        name="windsurf",
        title="Windsurf",
        documentation="https://docs.windsurf.com/windsurf/cascade/mcp",
        user="{home}/.codeium/windsurf/mcp_config.json",
        traces=("{home}/.codeium/windsurf",),
    ),
    Host(
        name="zed",
        title="Zed",
        container="context_servers",
        documentation="https://zed.dev/docs/ai/mcp",
        user="{settings}/zed/settings.json",
        traces=("{settings}/zed",),
    ),
)


AGENTS = tuple(host.name for host in HOSTS)


@dataclass(frozen=True, slots=True)
class Places:
    """The folders on this machine in which agents have their files; some variables move a folder."""

    home: Path = field(default_factory=Path.home)
    project: Path = field(default_factory=Path.cwd)
    platform: str = sys.platform
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def path(self, template: str) -> Path:
        """Return the path of a template such as `{home}/.cursor/mcp.json`."""

        def folder(variable: str, default: Path) -> Path:
            return Path(self.environ.get(variable) or default)

        roaming = folder("APPDATA", self.home / "AppData" / "Roaming")
        settings = folder("XDG_CONFIG_HOME", self.home / ".config")
        programs = {"darwin": self.home / "Library" / "Application Support", "win32": roaming}
        known = {
            "home": self.home,
            "project": self.project,
            "claude": folder("CLAUDE_CONFIG_DIR", self.home),
            "codex": folder("CODEX_HOME", self.home / ".codex"),
            "programs": programs.get(self.platform, settings),
            "settings": {"darwin": self.home / ".config", "win32": roaming}.get(self.platform, settings),
        }
        return Path(template.format(**known))


def find_host(name: str) -> Host:
    """Return the agent of this name; a `SettingsError` lists the known ones."""
    if name not in AGENTS:
        raise SettingsError(f"Unknown agent {name!r}: choose one of {', '.join(AGENTS)}.")
    return HOSTS[AGENTS.index(name)]


def file_of(host: Host, scope: str, places: Places) -> Path:
    """Return the file in which the agent looks for servers.

    Raises:
        SettingsError: The scope is unknown, or the agent has no such file here.
    """
    if scope not in SCOPES:
        raise SettingsError(f"Unknown scope {scope!r}: choose one of {', '.join(SCOPES)}.")
    if host.platforms and places.platform not in host.platforms:
        raise SettingsError(f"{host.title} does not run on this system ({places.platform}).")
    template = host.user if scope == "user" else host.project
    if template is None:
        raise SettingsError(f"{host.title} has no project configuration: use --scope user.")
    return places.path(template)


def is_used(host: Host, places: Places) -> bool:
    """Return True if the agent has been used on this machine."""
    runs = not host.platforms or places.platform in host.platforms
    return runs and any(places.path(trace).exists() for trace in host.traces)


def server_entry(host: Host, command: Sequence[str], *, skills_dirs: Sequence[Path] = ()) -> JsonValue:
    """Return the entry that makes the agent start the server.

    Args:
        host: The agent.
        command: Program and arguments that start SkillPager.
        skills_dirs: Further folders of skills that the server offers.
    """
    program, *arguments = command
    entry: dict[str, JsonValue] = {"type": "stdio"} if host.typed else {}
    entry |= {"command": program, "args": [*arguments, *SERVER_ARGUMENTS]}
    if skills_dirs:
        entry["env"] = {"SKILLPAGER_SKILLS_DIR": os.pathsep.join(str(folder) for folder in skills_dirs)}
    return entry


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

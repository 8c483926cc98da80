"""The folders in which agents look for skills: the project's, the user's, those of Claude Code's plugins."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from skillpager.files import read_bounded

# the folders of several agents first, then those of one agent, by its name
_SHARED = (".agents/skills", ".claude/skills")
_OWN = tuple(
    f".{agent}/skills"
    for agent in (
        *("augment", "cline", "codex", "copilot", "cursor", "factory", "gemini", "kilo", "kilocode", "kiro"),
        *("opencode", "qwen", "windsurf"),
    )
)
PROJECT_FOLDERS = (*_SHARED, ".github/skills", *_OWN, ".opencode/skill")
# where a variable moves a folder, its name is in braces
USER_FOLDERS = (
    *("{home}/.agents/skills", "{claude}/skills", "{codex}/skills", "{copilot}/skills"),
    *(f"{{home}}/{folder}" for folder in _OWN if folder not in (".codex/skills", ".copilot/skills")),
    *(f"{{config}}/{folder}" for folder in ("agents/skills", "amp/skills", "kilo/skills")),
    *("{config}/opencode/skills", "{config}/opencode/skill", "{home}/.codeium/windsurf/skills"),
)
# Claude Code lists its plugins in this file of their folder
PLUGINS_FILE = "installed_plugins.json"
MAX_PLUGINS_BYTES = 1_000_000
# folders that a message names, of those that were searched in vain
MAX_SHOWN_FOLDERS = 4


def search_folders(
    extra: Sequence[Path] = (),
    *,
    project: Path | None = None,
    home: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> list[Path]:
    """Return the folders to search for skills, nearest first; some may not exist.

    Args:
        extra: Folders that come first.
        project: Folder of the project; default: the current folder.
        home: The user's home folder.
        environ: Variables, of which some move an agent's folder.
    """
    project = Path.cwd() if project is None else project
    home = Path.home() if home is None else home
    places = {"home": home, **moved_folders(home, environ)}
    own = [project / folder for folder in PROJECT_FOLDERS]
    users = [Path(folder.format(**places)) for folder in USER_FOLDERS]
    return list(dict.fromkeys([*extra, *own, *users, *plugin_folders(places["claude"] / "plugins")]))


def moved_folders(home: Path, environ: Mapping[str, str]) -> dict[str, Path]:
    """Return the folders that a variable may have moved, by the name that templates have for each."""

    def moved(variable: str, default: str) -> Path:
        return Path(environ.get(variable) or home / default)

    return {
        "claude": moved("CLAUDE_CONFIG_DIR", ".claude"),
        "codex": moved("CODEX_HOME", ".codex"),
        "copilot": moved("COPILOT_HOME", ".copilot"),
        "config": moved("XDG_CONFIG_HOME", ".config"),
    }


def plugin_folders(root: Path) -> list[Path]:
    """Return the folders of skills in the installed plugins of Claude Code, which a file in `root` lists."""
    try:
        listed = json.loads(read_bounded(root / PLUGINS_FILE, MAX_PLUGINS_BYTES))["plugins"]
        versions = [version for found in listed.values() for version in found]
        return [Path(version["installPath"]) / "skills" for version in versions]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def shown_folders(folders: Sequence[Path]) -> str:
    """Return the first folders of a search as text, and the number of the others."""
    others = len(folders) - MAX_SHOWN_FOLDERS
    text = ", ".join(map(str, folders[:MAX_SHOWN_FOLDERS]))
    return f"{text} and {others} more (`skillpager list --help`)" if others > 0 else text

"""Writes the files by which hosts and registries install SkillPager: `python release/plugins.py`.

`SOURCE` of `skillpager.errors` says whether the package index has the package. Until then plugin and
extension run the copy of the repository that they are in. `--bundle FOLDER` also makes a bundle for Claude
Desktop.
"""

import argparse
import base64
import json
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from skillpager.errors import SOURCE

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
ABOUT = "Pages of skills: the part of a skill that the task at hand needs, found among all your skills."
HOME = "https://github.com/skillpager/skillpager"
# it also finds a skill that another program of this name installed
HOOK = "if command -v skillpager >/dev/null; then skillpager hook; fi"
EXTRAS = "[mcp,tokens]"
# of a file of a bundle, so that two builds have the same bytes
EPOCH = (1980, 1, 1, 0, 0, 0)
BUNDLED = ("pyproject.toml", "README.md", "LICENSE", "NOTICE")

Json = Mapping[str, object]


def requirement() -> str:
    """Return what `uvx --from` and `uv tool install` take: the index's name, or the repository's address."""
    return f"skillpager{EXTRAS} @ {SOURCE}" if SOURCE else f"skillpager{EXTRAS}"


def server(folder: str | None = None) -> Json:
    """Return the command of the MCP server, from a copy of the repository if the index does not have it."""
    source = f"{folder}{EXTRAS}" if SOURCE and folder else requirement()
    return {"command": "uvx", "args": ["--from", source, "skillpager", "mcp"]}


def files() -> dict[str, Json]:
    """Return the content of each file in the repository."""
    about = {"name": "skillpager", "version": VERSION, "description": ABOUT}
    hook = {"type": "command", "command": HOOK, "timeout": 15}
    plugin = {
        **about,
        "author": {"name": "The SkillPager authors"},
        "homepage": HOME,
        "repository": HOME,
        "license": "Apache-2.0",
        "keywords": ["skills", "search", "context"],
        "skills": ["./.claude-plugin/skills"],
        "mcpServers": {"skillpager": server("${CLAUDE_PLUGIN_ROOT}")},
        "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]},
    }
    marketplace = {
        "name": "skillpager",
        "owner": {"name": "The SkillPager authors"},
        "metadata": {"description": ABOUT, "version": VERSION},
        "plugins": [{**about, "source": "./"}],
    }
    package = {"registryType": "pypi", "identifier": "skillpager", "version": VERSION, "runtimeHint": "uvx"}
    registry = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.skillpager/skillpager",
        "title": "SkillPager",
        "description": ABOUT,
        "version": VERSION,
        "repository": {"url": HOME, "source": "github"},
        "packages": [
            {
                **package,
                "transport": {"type": "stdio"},
                "runtimeArguments": [{"type": "named", "name": "--from", "value": f"skillpager{EXTRAS}"}],
                "packageArguments": [{"type": "positional", "value": "mcp"}],
            }
        ],
    }
    return {
        ".claude-plugin/plugin.json": plugin,
        ".claude-plugin/marketplace.json": marketplace,
        "gemini-extension.json": {**about, "mcpServers": {"skillpager": server("${extensionPath}")}},
        "server.json": registry,
    }


def links() -> str:
    """Return the links that install the server in Cursor and VS Code, as Markdown."""
    plain = json.dumps(server())
    cursor = base64.b64encode(plain.encode()).decode()
    code = quote("vscode:mcp/install?" + quote(json.dumps({"name": "skillpager", **server()})), safe="")
    return (
        f"[Cursor](https://cursor.com/en/install-mcp?name=skillpager&config={quote(cursor)}) · "
        f"[Visual Studio Code](https://insiders.vscode.dev/redirect?url={code})\n"
    )


def blocks() -> dict[str, dict[str, str]]:
    """Return the generated blocks of documents, by file and name."""
    install = (
        f'```sh\nuv tool install "{requirement()}"      # or: pipx install\n'
        f'uvx --from "{requirement()}" skillpager --help    # without installing\n```\n'
    )
    return {"docs/hosts.md": {"links": links(), "tool": install}}


def manifest() -> Json:
    """Return the manifest of the bundle for Claude Desktop, whose server uv runs."""
    run = ["run", "--directory", "${__dirname}", "--extra", "mcp", "--extra", "tokens", "skillpager", "mcp"]
    return {
        "manifest_version": "0.4",
        "name": "skillpager",
        "display_name": "SkillPager",
        "version": VERSION,
        "description": ABOUT,
        "author": {"name": "The SkillPager authors"},
        "license": "Apache-2.0",
        "repository": {"type": "git", "url": HOME},
        "server": {
            "type": "uv",
            "entry_point": "src/skillpager/__main__.py",
            "mcp_config": {"command": "uv", "args": run},
        },
        "compatibility": {"runtimes": {"python": PROJECT["requires-python"]}},
    }


def bundle(folder: Path) -> Path:
    """Make the bundle: manifest, package and licences in a zip archive; return its path."""
    path = folder / f"skillpager-{VERSION}.mcpb"
    package = (
        file for file in (ROOT / "src").rglob("*") if file.is_file() and "__pycache__" not in file.parts
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("manifest.json", EPOCH), _json(manifest()))
        for file in sorted([*package, *(ROOT / name for name in BUNDLED)]):
            archive.writestr(zipfile.ZipInfo(file.relative_to(ROOT).as_posix(), EPOCH), file.read_bytes())
    return path


def texts() -> dict[Path, str]:
    """Return the text that each generated file and document has to have."""
    made = {ROOT / name: _json(data) for name, data in files().items()}
    for name, parts in blocks().items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for block, content in parts.items():
            before, begin, rest = text.partition(f"<!-- {block} -->\n")
            _, end, behind = rest.partition(f"<!-- /{block} -->")
            text = before + begin + content + end + behind
        made[ROOT / name] = text
    return made


def _json(data: Json) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files, and the bundle if it is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bundle", type=Path, metavar="FOLDER", help="make the .mcpb bundle in this folder")
    options = parser.parse_args()
    for path, text in texts().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if options.bundle:
        print(bundle(options.bundle))


if __name__ == "__main__":
    main()

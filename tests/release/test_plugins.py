"""The files of plugins, extensions and registries: as `release/plugins.py` writes them."""

import base64
import json
import re
import shlex
import sys
import zipfile
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from skillpager.mcp.tools import TOOLS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "release"))

import plugins  # noqa: E402


def test_committed_files_and_links_are_those_of_the_script() -> None:
    for path, text in plugins.texts().items():
        assert path.read_text(encoding="utf-8") == text, f"run python release/plugins.py: {path} differs"


def test_links_hold_the_command_that_the_document_shows() -> None:
    text = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    cursor, code = (parse_qs(urlsplit(link).query) for link in re.findall(r"\((https://\S+\?\S+)\)", text))
    (shown,) = re.findall(r"^(uvx .* skillpager) --help", text, re.MULTILINE)
    program, *arguments = shlex.split(shown)
    server = {"command": program, "args": [*arguments, "mcp"]}
    assert json.loads(base64.b64decode(cursor["config"][0], validate=True)) == server
    told = code["url"][0].removeprefix("vscode:mcp/install?")
    assert json.loads(unquote(told)) == {"name": cursor["name"][0], **server}


def test_after_the_release_all_follow_the_name_of_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "SOURCE", "")
    made = {path.name: text for path, text in plugins.texts().items()}
    for name in ("plugin.json", "gemini-extension.json"):
        assert '"skillpager[mcp,tokens]"' in made[name]
    assert 'uv tool install "skillpager[mcp,tokens]"' in made["hosts.md"]


def test_bundle_has_the_package_and_its_manifest(tmp_path: Path) -> None:
    with zipfile.ZipFile(plugins.bundle(tmp_path)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["server"]["entry_point"] in archive.namelist()


def test_documents_name_the_number_of_tools() -> None:
    number = {5: "five"}[len(TOOLS)]
    for name in ("README.md", "docs/hosts.md", "CHANGELOG.md"):
        assert f"{number} tools" in (ROOT / name).read_text(encoding="utf-8")

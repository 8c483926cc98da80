"""The command that installs an extra: right for an index, a folder, an editable folder, an archive, a commit."""

import json
import shlex
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import sentencex

from messages import raises
from rust_panics import PANICS, needs_panic
from skillpager.errors import EncoderError, MissingExtraError, install_command, raise_fault, require_extra


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the `direct_url.json` of an installation that Python finds before all others."""
    record = tmp_path / "site" / "skillpager-9.9.dist-info" / "direct_url.json"
    record.parent.mkdir(parents=True)
    (record.parent / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: skillpager\nVersion: 9.9\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path / "site")
    return record


@pytest.mark.parametrize("editable", [True, False])
@pytest.mark.parametrize("name", ["plain", "with two blanks", "a $HOME and `ls`", "naïve 资料"])
def test_a_folder_is_installed_from_the_folder(
    installed: Path, tmp_path: Path, name: str, editable: bool
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    origin = {"url": folder.as_uri(), "dir_info": {"editable": True} if editable else {}}
    installed.write_text(json.dumps(origin), encoding="utf-8")
    command = install_command("tokens")
    assert shlex.split(command) == ["pip", "install", *(["-e"] if editable else []), f"{folder}[tokens]"]
    assert name != "with two blanks" or command.endswith(f' "{folder}[tokens]"')


@pytest.mark.parametrize(
    ("source", "at"), [("", ""), ("git+https://a.example/b", " @ git+https://a.example/b")]
)
def test_without_a_folder_the_package_is_named(
    source: str, at: str, installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillpager.errors.SOURCE", source)
    assert not installed.exists()  # it came from an index
    assert install_command("tokens") == f'pip install "skillpager[tokens]{at}"'
    origin = {"url": (tmp_path / "gone").as_uri(), "dir_info": {}}
    installed.write_text(json.dumps(origin), encoding="utf-8")
    assert install_command("tokens") == f'pip install "skillpager[tokens]{at}"'
    monkeypatch.setattr(sys, "path", [str(tmp_path)])  # a source tree that is not installed
    assert install_command("mcp") == f'pip install "skillpager[mcp]{at}"'
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "uv-receipt.toml").touch()
    assert install_command("mcp") == f'uv pip install --python "{tmp_path}" "skillpager[mcp]{at}"'
    (tmp_path / "pipx_metadata.json").touch()
    assert install_command("mcp") == f'pipx inject --force skillpager "skillpager[mcp]{at}"'
    monkeypatch.setattr(Path, "exists", Mock(side_effect=PermissionError))  # the environment of another user
    assert install_command("mcp") == f'pip install "skillpager[mcp]{at}"'


@pytest.mark.parametrize(
    ("origin", "target"),
    [
        (
            {"url": "https://example.org/skillpager-9.9-py3-none-any.whl", "archive_info": {}},
            "https://example.org/skillpager-9.9-py3-none-any.whl",
        ),
        (
            {"url": "https://example.org/skillpager", "vcs_info": {"vcs": "git", "commit_id": "0f1e"}},
            "git+https://example.org/skillpager@0f1e",
        ),
    ],
)
def test_a_url_is_installed_from_the_url(installed: Path, origin: dict[str, object], target: str) -> None:
    installed.write_text(json.dumps(origin), encoding="utf-8")
    assert install_command("openai") == f'pip install "skillpager[openai] @ {target}"'


def test_a_missing_extra_names_purpose_package_and_command(installed: Path) -> None:
    with raises(MissingExtraError):
        require_extra("nosuch.part", extra="tokens", purpose="Counting")


@needs_panic
def test_a_panic_of_a_library_in_rust_is_an_error_and_nothing_else_is_changed() -> None:
    with pytest.raises(BaseException, match="byte index") as panic:
        sentencex.get_sentence_boundaries("en", PANICS)
    with raises(EncoderError):
        raise_fault(panic.value, EncoderError, "sentencex")
    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error):
            raise_fault(error(), EncoderError, "sentencex")

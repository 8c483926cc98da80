"""`install --replace-listing`: skills leave Claude Code's list by its settings, which `uninstall` gives back to the byte."""

import json
from pathlib import Path
from unittest.mock import patch

import pytest

from cli_process import environment, invoke
from skillpager.errors import SkillPagerError
from skillpager.install import listing
from skillpager.install.listing import HIDDEN, OVERRIDES, hide, is_replaced, plan_hide, plan_show, show

NAMES = ["backup", "deploy", "review"]
OWN = '{\n  "model": "opus", // mine\n  "skillOverrides": {\n    "review": "off" // never\n  }\n}\n'
BEFORE = [None, "", "{}", '{"a":1}', OWN, "\ufeff{\r\n\t\r\n}", '{"skillOverrides": {}}']


def read(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


@pytest.fixture(params=BEFORE, ids=str)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    if request.param is not None:
        path.write_bytes(request.param.encode())
    return path


def test_settings_come_back_to_the_byte(file: Path) -> None:
    before = read(file)
    hide(file, *plan_hide(file, NAMES[:2]))
    hide(file, *plan_hide(file, NAMES))  # with a skill that was added since
    overrides = json.loads(file.read_text("utf-8-sig").replace("// mine", "").replace("// never", ""))[
        OVERRIDES
    ]
    assert set(overrides) == set(NAMES)
    assert {overrides["backup"], overrides["deploy"]} == {HIDDEN}
    show(file, plan_show(file))
    assert read(file) == before
    assert not is_replaced(file)


@pytest.mark.parametrize("earlier", [[], NAMES[:1]])
def test_a_command_killed_between_record_and_settings_harms_nothing(file: Path, earlier: list[str]) -> None:
    before = read(file)
    if earlier:
        hide(file, *plan_hide(file, earlier))
    with patch.object(listing, "write", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        hide(file, *plan_hide(file, NAMES[1:]))
    show(file, plan_show(file))
    assert read(file) == before


def test_other_changes_since_then_stay(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"a": 1}')
    hide(file, *plan_hide(file, NAMES))
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "b": 2, OVERRIDES: {**settings[OVERRIDES], "deploy": "off"}}))
    show(file, plan_show(file))
    assert json.loads(file.read_text()) == {"a": 1, "b": 2, OVERRIDES: {"deploy": "off"}}


@pytest.mark.parametrize("text", ["{", '{"names": 3}', '{"names": [1], "before": null, "after": ""}'])
def test_a_damaged_record_is_told_with_what_to_do(text: str, tmp_path: Path) -> None:
    (tmp_path / listing.RECORD).write_text(text)
    with pytest.raises(SkillPagerError, match="by hand, then delete this file"):
        plan_show(tmp_path / "settings.json")


def test_commands_hide_what_the_server_offers_and_undo_it(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    claude = tmp_path / "home" / ".claude"
    heads = {"backup": "", "by-hand": "disable-model-invocation: true\n", "broken": None}
    for name, head in heads.items():
        skill = claude / "skills" / name / "SKILL.md"
        skill.parent.mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: About {name}.\n{head}---\nDo it.\n"
        skill.write_bytes(b"\xff\x00" if head is None else text.encode())
    words = ("--agent", "claude-code", "--replace-listing")
    assert OVERRIDES in invoke("install", *words, "--dry-run", env=env).out
    assert not (claude / "settings.json").exists()
    done = invoke("install", *words, "--yes", env=env)
    assert "The list of 1 of your skills took up to" in done.err
    assert json.loads((claude / "settings.json").read_text()) == {OVERRIDES: {"backup": HIDDEN}}
    assert "mcpServers" in (tmp_path / "home" / ".claude.json").read_text()
    assert invoke("uninstall", "--agent", "claude-code", "--yes", env=env).code == 0
    assert {path.name for path in claude.iterdir()} == {"skills"}
    assert not (tmp_path / "home" / ".claude.json").exists()


@pytest.mark.parametrize("words", [["--agent", "codex"], ["--agent", "claude-code", "--hook"]])
def test_it_is_for_claude_code_and_the_server(words: list[str], tmp_path: Path) -> None:
    done = invoke("install", *words, "--replace-listing", "--yes", env=environment(tmp_path / "cache"))
    assert (done.code, "--replace-listing is for" in done.err) == (2, True)

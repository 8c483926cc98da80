"""Discovery in the conventional folders, shadowing, and what a name means."""

import errno
import json
import os
import shutil
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import skillpager.files
import skillpager.library.discovery
import skillpager.library.library
import skillpager.parsing.skill
from conftest import SAMPLES, write_skill
from messages import raises
from skillpager import SkillPager
from skillpager.bulk import index_skills, path_source
from skillpager.classifiers.local import LocalClassifier
from skillpager.cli.index import find_targets
from skillpager.errors import SkillError, UnknownSkillError
from skillpager.library import Library, discover, locate
from skillpager.library.discovery import plugin_folders, search_folders
from skillpager.parsing.skill import read_skill
from skillpager.settings import Settings
from skillpager.types import Classification, FloatArray, Fragment, Skill


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, without variables that move an agent's folder."""
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    return tmp_path / "h"


@pytest.mark.usefixtures("home")
def test_project_folders_come_before_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", "/c")
    folders = search_folders([tmp_path / "own"], project=tmp_path / "p")
    names = [str(folder).removeprefix(f"{tmp_path}/") for folder in folders]
    assert names[:4] == ["own", "p/.agents/skills", "p/.claude/skills", "p/.github/skills"]
    users = ["h/.agents/skills", "h/.claude/skills", "/c/skills", "h/.copilot/skills"]
    assert names[names.index(users[0]) :][:4] == users
    assert {"h/.gemini/skills", "h/.config/opencode/skills", "p/.opencode/skill"} <= set(names)
    assert len(names) == len(set(names))
    assert [name.startswith("p/") for name in names[1:]] == sorted(
        (name.startswith("p/") for name in names[1:]), reverse=True
    )


def test_skills_of_every_agent_are_found(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = search_folders(project=tmp_path / "p")
    for number, folder in enumerate(folders):
        write_skill(folder / f"skill-{number}")
    assert [skill.path.parent for skill in discover(folders)] == folders
    moves = {"CLAUDE_CONFIG_DIR": "/cc", "COPILOT_HOME": "/co", "XDG_CONFIG_HOME": "/x"}
    for variable, place in moves.items():
        monkeypatch.setenv(variable, place)
    moved = set(map(str, search_folders()))
    assert {"/cc/skills", "/co/skills", "/x/opencode/skills"} <= moved
    assert str(home / ".claude" / "skills") not in moved


def test_installed_plugins_have_skills(tmp_path: Path) -> None:
    listed = {"version": 2, "plugins": {"tool@market": [{"scope": "user", "installPath": "/plugins/tool"}]}}
    (tmp_path / "installed_plugins.json").write_text(json.dumps(listed))
    assert plugin_folders(tmp_path) == [Path("/plugins/tool/skills")]
    for damaged in ("", "[]", '{"plugins": [1]}', '{"plugins": {"a": 1}}', "[" * 100_000, "\udcff"):
        (tmp_path / "installed_plugins.json").write_text(damaged, errors="surrogateescape")
        assert plugin_folders(tmp_path) == []


def test_a_nearer_skill_shadows_a_farther_one_and_copies_are_found_once(tmp_path: Path) -> None:
    near = write_skill(tmp_path / "near" / "same")
    write_skill(tmp_path / "copy" / "same")
    far = write_skill(tmp_path / "far" / "same", description="another")
    write_skill(tmp_path / "far-copy" / "same", description="another")
    other = write_skill(tmp_path / "far" / "other")
    folders = [tmp_path / name for name in ("near", "copy", "missing", "far", "far-copy")]
    assert [(skill.name, skill.path, skill.shadowed_by) for skill in discover(folders)] == [
        ("same", near, None),
        ("other", other, None),
        ("same", far, near),
    ]
    assert locate("same", lambda: folders) == near


def test_skills_deep_in_a_folder_of_repositories_are_found(tmp_path: Path) -> None:
    plugin = tmp_path / "owner__repository" / ".github" / "plugins" / "azure" / "skills" / "group" / "sub"
    write_skill(plugin / "deep")
    write_skill(tmp_path / ".git" / "hidden")
    write_skill(tmp_path / "node_modules" / "package")
    write_skill(tmp_path.joinpath(*"abcdefghij") / "too-deep")
    assert [skill.name for skill in discover([tmp_path])] == ["deep"]


def test_a_large_library_may_have_as_many_more_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("skillpager.library.discovery.MAX_FOLDERS", 3)
    for number in range(6):
        write_skill(tmp_path / f"group-{number}" / f"one-{number}")
    assert len(discover([tmp_path])) == 6
    assert not caplog.records
    for number in range(6):
        (tmp_path / f"empty-{number}").mkdir()
    discover([tmp_path])
    assert "more than 3 folders without a skill" in caplog.text


def test_a_path_is_taken_as_it_is_and_an_unknown_name_says_what_is_close(tmp_path: Path) -> None:
    never = Mock(side_effect=AssertionError)  # no folder is searched for a path
    assert locate(str(SAMPLES / "git-bisect"), never) == SAMPLES / "git-bisect"
    assert locate("missing/skill.md", never) == Path("missing/skill.md")
    write_skill(tmp_path / "postgres-backup")
    with raises(SkillError):
        locate("postgres", lambda: [tmp_path])
    with raises(SkillError):
        locate("zzz", lambda: [tmp_path])
    for missing in ("nope", tmp_path / "postgres"), [tmp_path / "postgres-backup" / "SKILL.md"]:
        with pytest.raises(SkillError, match=f"^{missing[0]} is not a folder: "):
            Library(SkillPager(), missing)


def test_a_library_offers_what_can_be_paged_and_says_why_it_lacks_the_rest(tmp_path: Path) -> None:
    write_skill(tmp_path / "near" / "same"), write_skill(tmp_path / "far" / "same")
    write_skill(tmp_path / "far" / "another")
    (tmp_path / "far" / "broken").mkdir()
    (tmp_path / "far" / "broken" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    library = Library(SkillPager(), [tmp_path / "near", tmp_path / "far"])
    assert [skill.name for skill in library.skills()] == ["another", "same"]
    assert library.skill("same").path == tmp_path / "near" / "same"
    assert library.index("same").skill.name == "same"
    with pytest.raises(UnknownSkillError, match="did you mean 'another'"):
        library.skill("another-1")
    with pytest.raises(UnknownSkillError, match="'broken' cannot be read: "):
        library.skill("broken")


@pytest.mark.parametrize("name", ["../near/same", "near", "SKILL.md", "same/SKILL.md", ""])
def test_a_library_resolves_names_and_never_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_skill(tmp_path / "near" / "same")
    monkeypatch.chdir(tmp_path / "near")
    with raises(UnknownSkillError):
        Library(SkillPager(), [tmp_path / "near"]).skill(name)


def test_one_odd_skill_does_not_hide_the_others(tmp_path: Path) -> None:
    write_skill(tmp_path / "good")
    for number, folder in enumerate((b"cab\xe9", b"a\n- b", b"\x1b[2J", b"\xe2\x80\x8b")):
        odd = tmp_path / os.fsdecode(folder)
        odd.mkdir()
        (odd / "SKILL.md").write_bytes(b"\xff\xfe" if number % 2 else b"text\n")
    found = discover([tmp_path])
    assert sorted(skill.name for skill in found) == ["2J", "a-b", "cab", "good", "skill"]
    library = Library(SkillPager(), [tmp_path])
    assert [skill.name for skill in library.skills()] == ["2J", "cab", "good"]
    assert library.index("cab").skill.root == tmp_path / os.fsdecode(b"cab\xe9")
    with raises(UnknownSkillError):
        library.skill("a-b")


# ---- one skill never stops the others


class PanicException(BaseException):
    """A stand-in for the panic of a library in Rust."""

    __module__ = "pyo3_runtime"


FAULTS = [TypeError("bad key"), RecursionError("too deep"), OSError("lost"), PanicException("index 5 of 3")]


def fail_at(monkeypatch: pytest.MonkeyPatch, name: str, fault: BaseException) -> None:
    """Let reading the skill of a folder raise an error that no reader should raise."""

    def read(path: Path, **options: Any) -> Skill:
        if path.name == name:
            raise fault
        return read_skill(path, **options)

    monkeypatch.setattr(skillpager.library.discovery, "read_skill", read)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_an_unexpected_error_is_the_problem_of_one_skill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    write_skill(tmp_path / "bad"), write_skill(tmp_path / "good")
    fail_at(monkeypatch, "bad", fault)
    library = Library(SkillPager(encoder="hashing"), [tmp_path])
    assert [skill.name for skill in library.skills()] == ["good"]
    (bad,) = [skill for skill in library.found() if skill.problem]
    for part in (str(tmp_path / "bad"), type(fault).__name__, str(fault)):
        assert part in str(bad.problem)
    assert library.index("good").nodes
    with raises(UnknownSkillError):
        library.skill("bad")


def test_interruptions_stop_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(tmp_path / "one")
    for fault in (KeyboardInterrupt(), SystemExit(1)):
        fail_at(monkeypatch, "one", fault)
        with pytest.raises(type(fault)):
            discover([tmp_path])


class Fragile(LocalClassifier):
    """A classifier with a fault that some texts meet."""

    def classify(self, fragments: Sequence[Fragment], embeddings: FloatArray | None) -> list[Classification]:
        if any("fatal" in fragment.text for fragment in fragments):
            raise RecursionError("too deep")
        return super().classify(fragments, embeddings)


def test_indexing_goes_on_after_an_unexpected_error(tmp_path: Path) -> None:
    folders = [write_skill(tmp_path / name) for name in ("a", "b", "c", "d", "e")]
    for folder in folders[:4]:
        (folder / "SKILL.md").write_text("fatal\n", encoding="utf-8")
    pager = SkillPager(encoder="hashing", classifier=Fragile(), store=tmp_path / "cache")
    sources = [path_source(folder, pager.settings) for folder in folders]
    outcomes = index_skills(pager, sources, jobs=1)
    assert [outcome.stored for outcome in outcomes] == [False] * 4 + [True]
    assert all(isinstance(outcome.error, SkillError) for outcome in outcomes[:4])
    assert "unexpected RecursionError" in str(outcomes[0].error)
    with pytest.raises(SkillError, match="unexpected RecursionError"):
        Library(pager, [tmp_path]).index("a")
    pager.close()


# ---- links


def test_links_that_lead_to_themselves_are_passed_over(tmp_path: Path) -> None:
    write_skill(tmp_path / "one")
    for name in ("loop", "two"):
        (tmp_path / name).symlink_to(name)
    (tmp_path / "three").mkdir()
    (tmp_path / "three" / "SKILL.md").symlink_to("SKILL.md")
    (tmp_path / "four").symlink_to(tmp_path / "one")
    found = discover([tmp_path / "loop", tmp_path])
    assert [(skill.path.name, skill.problem is None) for skill in found] == [("four", True), ("three", False)]
    loop = str(tmp_path / "loop")
    (target,) = find_targets([loop], Settings())
    assert [item.place for item in target()] == [loop]


def test_links_to_folders_above_do_not_multiply_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a" / "b"
    write_skill(deep / "one")
    for number in range(12):
        (tmp_path / f"again-{number}").symlink_to(tmp_path)
        (deep / f"up-{number}").symlink_to(tmp_path)
    looked = watched(monkeypatch, os, "scandir")
    assert [skill.name for skill in discover([tmp_path])] == ["one"]
    assert looked.call_count < 10


# ---- searching again


def watched(monkeypatch: pytest.MonkeyPatch, place: object, name: str) -> Mock:
    """Return a mock in the place of a function, which it calls."""
    function = Mock(wraps=getattr(place, name))
    monkeypatch.setattr(place, name, function)
    return function


@pytest.mark.usefixtures("settled")
def test_what_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [write_skill(tmp_path / name) for name in ("a", "b", "c")]
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_bytes(b"\0")
    library = Library(SkillPager(), [tmp_path])
    before = library.found()
    reads = watched(monkeypatch, skillpager.library.discovery, "read_skill")
    assert library.found(fresh=True) == before
    reads.assert_not_called()
    text = (folders[1] / "SKILL.md").read_text(encoding="utf-8")
    (folders[1] / "SKILL.md").write_text(text.replace("name: b", "name: z"), encoding="utf-8")
    shutil.rmtree(folders[2])
    assert [skill.name for skill in library.found(fresh=True)] == ["a", "z", "broken"]
    assert [call.args[0] for call in reads.call_args_list] == [folders[1]]


def test_a_problem_of_the_system_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(tmp_path / "one")
    library = Library(SkillPager(), [tmp_path])
    with monkeypatch.context() as patch:
        patch.setattr(skillpager.files, "SETTLED_NS", -1)
        too_many = OSError(errno.EMFILE, "Too many open files")
        patch.setattr(skillpager.parsing.skill, "read_bounded", Mock(side_effect=too_many))
        assert "Too many open files" in str(library.found()[0].problem)
    assert library.found(fresh=True)[0].problem is None


def test_a_library_notices_new_and_removed_skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_skill(tmp_path / "first")
    library = Library(SkillPager(), [tmp_path])
    assert [skill.name for skill in library.skills()] == ["first"]
    monkeypatch.setattr(skillpager.library.library, "RESCAN_SECONDS", 1e9)
    searches = watched(monkeypatch, skillpager.library.discovery, "read_folders")
    new = write_skill(tmp_path / "team" / "new")
    for name in ("new", "unknown", "first/..", "..", "", "x" * 5_000, "a\0b", "\udc80"):
        with pytest.raises(UnknownSkillError):
            library.skill(name)
    searches.assert_not_called()
    monkeypatch.setattr(skillpager.library.library, "RESCAN_SECONDS", 0.0)
    shutil.rmtree(first)
    assert library.skill("new").path == new
    assert [skill.name for skill in library.skills()] == ["new"]


def test_while_one_thread_searches_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_skill(tmp_path / "one")
    library = Library(SkillPager(), [tmp_path])
    before = library.found()
    write_skill(tmp_path / "two")
    reading, go_on = threading.Event(), threading.Event()

    def read_slowly(path: Path, **options: Any) -> Skill:
        reading.set()
        assert go_on.wait(20)
        return read_skill(path, **options)

    monkeypatch.setattr(skillpager.library.discovery, "read_skill", read_slowly)
    monkeypatch.setattr(skillpager.library.library, "RESCAN_SECONDS", 0.0)
    with ThreadPoolExecutor(1) as pool:
        searching = pool.submit(library.found)
        assert reading.wait(20)
        assert library.found() == before
        assert library.skill("one") == before[0]
        with pytest.raises(UnknownSkillError):
            library.skill("three")
        go_on.set()
        assert [skill.name for skill in searching.result(20)] == ["one", "two"]

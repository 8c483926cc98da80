"""Discovery in the conventional folders, shadowing, and what a name means."""

import os
from pathlib import Path

import pytest

from conftest import SAMPLES
from messages import raises
from skillpager import SkillPager
from skillpager.errors import SkillError, UnknownSkillError
from skillpager.library import Library, discover, locate, search_folders


def make(folder: Path, name: str, description: str = "d") -> Path:
    """Write a small skill."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: {description}\n---\ntext\n", encoding="utf-8"
    )
    return path


def test_project_folders_come_before_the_users(tmp_path: Path) -> None:
    folders = search_folders([tmp_path / "own"], project=tmp_path / "p", home=tmp_path / "h")
    assert [str(folder.relative_to(tmp_path)) for folder in folders] == [
        "own",
        "p/.agents/skills",
        "p/.claude/skills",
        "h/.agents/skills",
        "h/.claude/skills",
    ]


def test_a_nearer_skill_shadows_a_farther_one(tmp_path: Path) -> None:
    near, far = make(tmp_path / "near", "same"), make(tmp_path / "far", "same")
    make(tmp_path / "far", "other")
    found = discover([tmp_path / "near", tmp_path / "far", tmp_path / "missing"])
    assert [(skill.name, skill.path, skill.shadowed_by) for skill in found] == [
        ("same", near, None),
        ("other", tmp_path / "far" / "other", None),
        ("same", far, near),
    ]
    assert locate("same", [tmp_path / "near", tmp_path / "far"]) == near


def test_version_control_and_packages_are_not_searched(tmp_path: Path) -> None:
    make(tmp_path / "a" / "b", "deep")
    make(tmp_path / ".git", "hidden")
    make(tmp_path / "node_modules", "package")
    assert [skill.name for skill in discover([tmp_path])] == ["deep"]


def test_a_broken_skill_is_listed_with_its_problem(tmp_path: Path) -> None:
    make(tmp_path, "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_bytes(b"\0\0")
    problems = {skill.name: skill.problem for skill in discover([tmp_path])}
    assert problems["good"] is None
    assert "binary" in str(problems["bad"])


def test_a_folder_that_links_to_itself_ends(tmp_path: Path) -> None:
    make(tmp_path, "one")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert [skill.name for skill in discover([tmp_path])] == ["one"]


def test_a_path_is_taken_as_it_is_and_an_unknown_name_says_what_is_close(tmp_path: Path) -> None:
    assert locate(str(SAMPLES / "git-bisect"), []) == SAMPLES / "git-bisect"
    assert locate("missing/skill.md", []) == Path("missing/skill.md")
    make(tmp_path, "postgres-backup")
    with raises(SkillError):
        locate("postgres", [tmp_path])
    with raises(SkillError):
        locate("zzz", [tmp_path])


def test_a_library_offers_what_can_be_paged(tmp_path: Path) -> None:
    make(tmp_path / "near", "same"), make(tmp_path / "far", "same")
    make(tmp_path / "far", "another")
    (tmp_path / "far" / "broken").mkdir()
    (tmp_path / "far" / "broken" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    library = Library(SkillPager(), [tmp_path / "near", tmp_path / "far"])
    assert [skill.name for skill in library.skills()] == ["another", "same"]
    assert library.skill("same").path == tmp_path / "near" / "same"
    assert library.index("same").skill.name == "same"


@pytest.mark.parametrize("name", ["../near/same", "near", "SKILL.md", "same/SKILL.md", ""])
def test_a_library_resolves_names_and_never_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make(tmp_path / "near", "same")
    monkeypatch.chdir(tmp_path / "near")
    with raises(UnknownSkillError):
        Library(SkillPager(), [tmp_path / "near"]).skill(name)


def test_a_library_names_what_comes_close_and_what_is_broken(tmp_path: Path) -> None:
    make(tmp_path, "postgres-backup")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    library = Library(SkillPager(), [tmp_path])
    with raises(UnknownSkillError):
        library.skill("postgres-backups")
    with raises(UnknownSkillError):
        library.skill("broken")


def test_a_library_notices_a_new_skill(tmp_path: Path) -> None:
    make(tmp_path, "first")
    library = Library(SkillPager(), [tmp_path])
    assert [skill.name for skill in library.skills()] == ["first"]
    make(tmp_path, "second")
    assert library.skill("second").path == tmp_path / "second"
    assert [skill.name for skill in library.skills()] == ["first", "second"]


def test_one_odd_skill_does_not_hide_the_others(tmp_path: Path) -> None:
    make(tmp_path, "good")
    for number, folder in enumerate((b"cab\xe9", b"a\n- b", b"\x1b[2J", b"\xe2\x80\x8b")):
        odd = tmp_path / os.fsdecode(folder)
        odd.mkdir()
        (odd / "SKILL.md").write_bytes(b"\xff\xfe" if number % 2 else b"text\n")
    found = discover([tmp_path])
    assert sorted(skill.name for skill in found) == ["a - b", "cab\ufffd", "good", "skill", "\ufffd[2J"]
    library = Library(SkillPager(), [tmp_path])
    assert [skill.name for skill in library.skills()] == ["cab\ufffd", "good", "\ufffd[2J"]
    assert library.index("cab\ufffd").skill.root == tmp_path / os.fsdecode(b"cab\xe9")
    with raises(UnknownSkillError):
        library.skill("a - b")

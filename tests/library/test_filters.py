"""Filters: which skills pass, and what is said of the others."""

from pathlib import Path

import pytest

from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError, UnknownSkillError
from skillpager.json_types import to_json
from skillpager.library import Library, SkillFilter, discover
from skillpager.settings import Settings


def skill(folder: Path, licence: str = "") -> Path:
    """Write a skill, with a licence in its front matter if one is given."""
    folder.mkdir(parents=True)
    stated = f"license: {licence}\n" if licence else ""
    text = f"---\nname: {folder.name}\ndescription: d\n{stated}---\ntext\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def passed(wanted: SkillFilter, *folders: Path) -> list[str]:
    """Return the names of the skills that pass."""
    return [found.name for found in discover(folders) if wanted(found)]


def test_skills_pass_by_the_ids_of_their_licences(tmp_path: Path) -> None:
    for name, licence in [
        ("a", "MIT"),
        ("b", "apache-2.0"),
        ("c", "MIT AND GPL-3.0"),
        ("d", ""),
        ("e", "LicenseRef-Proprietary"),
        ("f", "GPL-3.0-or-later"),
    ]:
        skill(tmp_path / name, licence)
    assert passed(SkillFilter(licences={"mit"}), tmp_path) == ["a"]
    assert passed(SkillFilter(licences=["MIT", "apache-2.0"]), tmp_path) == ["a", "b"]
    assert passed(SkillFilter(licences={"MIT", "GPL-3.0"}), tmp_path) == ["a", "c"]
    assert passed(SkillFilter(licences={"unknown"}), tmp_path) == ["d"]
    assert passed(SkillFilter(licences={"LicenseRef-Proprietary"}), tmp_path) == ["e"]
    assert SkillFilter(licences={"mit"}) == SkillFilter(licences={"MIT"})


def test_licences_that_nobody_knows_are_refused() -> None:
    for names in ({"MITT"}, {"no such thing"}, {"MIT OR Apache-2.0"}, {""}):
        with raises(SettingsError):
            SkillFilter(licences=names)


def test_trusted_folders_hold_what_lies_in_them_and_what_links_there_lead_to(tmp_path: Path) -> None:
    trusted, other = tmp_path / "trusted", tmp_path / "other"
    skill(trusted / "a")
    skill(trusted / "deep" / "b")
    evil = skill(other / "evil")
    wanted = SkillFilter(trusted=[trusted])
    assert passed(wanted, tmp_path) == ["a", "b"]
    # whose name only begins like a trusted folder's, or whose path only seems to lead through one
    skill(tmp_path / "trusted-not" / "c")
    assert passed(wanted, tmp_path) == ["a", "b"]
    assert passed(wanted, trusted / ".." / "other") == []
    # somebody who can write there put the link
    (trusted / "linked").symlink_to(evil)
    assert passed(wanted, trusted) == ["a", "b", "evil"]
    # and what a link from elsewhere leads to is trusted
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").symlink_to(trusted / "a")
    assert passed(wanted, tmp_path / "elsewhere") == ["a"]


def test_a_trusted_folder_may_be_relative_or_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skill(tmp_path / "real" / "a")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in ("real", "link", "~/real", "./link/../real"):
        wanted = SkillFilter(trusted=[Path(folder)])
        assert passed(wanted, Path("real"), tmp_path / "real") == ["a"]
        assert passed(wanted, Path("link")) == ["a"]


def test_a_library_offers_only_what_passes_and_an_unwanted_skill_shadows_none(tmp_path: Path) -> None:
    stranger = skill(tmp_path / "project" / "backup", "MIT")
    mine = skill(tmp_path / "mine" / "backup", "MIT")
    skill(tmp_path / "project" / "other", "MIT")
    folders = [tmp_path / "project", tmp_path / "mine"]
    pager = SkillPager(settings=Settings(cache_dir=tmp_path / "cache"))
    assert Library(pager, folders).skill("backup").path == stranger
    library = Library(pager, folders, keep=SkillFilter(trusted=[tmp_path / "mine"]))
    assert [found.path for found in library.skills()] == [mine]
    assert library.skill("backup").path == mine
    with pytest.raises(UnknownSkillError):
        library.skill("other")
    assert [routed.skill.path for routed in library.route("backup text").skills] == [mine]
    pager.close()


def test_routes_tell_folder_and_licence_and_fold_copies(tmp_path: Path) -> None:
    text = " ".join(f"Dump table {number} with pg_dump and keep it." for number in range(30))
    for name in ("dump-tables", "table-dumps", "dump-indexes"):
        path = skill(tmp_path / "skills" / name, "Apache-2.0")
        described = "Dump indexes." if name == "dump-indexes" else "Dump tables of a database."
        (path / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: {described}\nlicense: Apache-2.0\n---\n{text}\n"
        )
    # a new process reads the licence from the catalog
    for _ in range(2):
        pager = SkillPager(settings=Settings(cache_dir=tmp_path / "cache"))
        found = Library(pager, [tmp_path / "skills"]).route("dump a table", k=3)
        pager.close()
        shown = {routed.skill.name: [copy.name for copy in routed.copies] for routed in found.skills}
        assert len(shown) == 2
        (first,) = shown.keys() - {"dump-indexes"}
        assert {first, *shown[first]} == {"dump-tables", "table-dumps"}
        assert shown["dump-indexes"] == []
        as_json = to_json(found)["skills"]
        assert {(each["licence"], each["folder"]) for each in as_json} == {
            ("Apache-2.0", str(tmp_path / "skills"))
        }
        assert sum(len(each["copies"]) for each in as_json) == 1

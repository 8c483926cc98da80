"""Filters: which skills pass; licences, recognised in names and in the manifests beside and above a skill."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import write_skill
from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError, UnknownSkillError
from skillpager.json_types import to_json
from skillpager.library import Library, SkillFilter, discover
from skillpager.library.discovery import stated_licence
from skillpager.library.filters import UNKNOWN, permits, read_licence, recognise_name
from skillpager.settings import Settings


def skill(folder: Path, licence: str = "") -> Path:
    """Write a skill, with a licence in its front matter if one is given."""
    return write_skill(folder, more=f"license: {licence}\n" if licence else "")


def passed(wanted: SkillFilter, *folders: Path) -> list[str]:
    """Return the names of the skills that pass."""
    return [found.name for found in discover(folders) if wanted(found)]


def test_skills_pass_by_the_ids_of_their_licences(tmp_path: Path) -> None:
    stated = ("MIT", "apache-2.0", "MIT AND GPL-3.0", "", "LicenseRef-Proprietary", "GPL-3.0-or-later")
    for name, licence in zip("abcdef", stated, strict=True):
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
        described = "Dump indexes." if name == "dump-indexes" else "Dump tables of a database."
        more = "license: Apache-2.0\n"
        write_skill(tmp_path / "skills" / name, text, description=described, more=more)
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


# ---- licences


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("MIT", "MIT"),
        ("gpl-3.0-or-later", "GPL-3.0-or-later"),
        ("AGPL-3.0", "AGPL-3.0"),
        ("LicenseRef-Proprietary", "LicenseRef-Proprietary"),
        ("CC-BY-4.0 AND Apache-2.0", "CC-BY-4.0 AND Apache-2.0"),
        ("MIT OR (Apache-2.0 and BSD-3-Clause)", "MIT OR (Apache-2.0 AND BSD-3-Clause)"),
        ("The MIT License", "MIT"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Apache v2.0", "Apache-2.0"),
        ("BSD 3-Clause License", "BSD-3-Clause"),
        # other names are not guessed
        ("MIT License, see LICENSE", UNKNOWN),
        ("No license", UNKNOWN),
        ("UNLICENSED", UNKNOWN),
        ("Proprietary. LICENSE.txt has complete terms", UNKNOWN),
        ("", UNKNOWN),
        ("\ud800 (", UNKNOWN),
        ("WITH", UNKNOWN),
        ("MIT AND", UNKNOWN),
    ],
)
def test_a_licence_is_an_spdx_expression(name: str, expression: str) -> None:
    assert recognise_name(name) == expression


def test_front_matter_states_a_licence_on_one_line() -> None:
    assert stated_licence({"license": " MIT\n"}) == "MIT"
    assert stated_licence({}) == ""
    assert len(stated_licence({"license": "x" * 10_000})) <= 200


def licence_of(path: Path, top: Path) -> str:
    """Return the licence of the skill at `path` as discovery finds it below `top`."""
    (found,) = (each for each in discover([top]) if each.path == path)
    return read_licence(found.path, found.stated_licence)


def manifest(folder: Path, licence: object = "MIT", name: str = "package.json") -> Path:
    """Write a manifest that states a licence."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"license": licence}))
    return file


def test_front_matter_comes_before_manifests_and_near_ones_before_far_ones(tmp_path: Path) -> None:
    manifest(tmp_path)
    stated, own, bare = (skill(tmp_path / name, lic) for name, lic in [("a", "ISC"), ("b", ""), ("c", "")])
    manifest(own, "BSD-3-Clause", ".claude-plugin/plugin.json")
    assert [licence_of(each, tmp_path) for each in (stated, own, bare)] == ["ISC", "BSD-3-Clause", "MIT"]
    # the text that each refers to has not been read
    assert licence_of(skill(tmp_path / "d", "Complete terms in LICENSE.txt"), tmp_path) == UNKNOWN
    (own / ".claude-plugin" / "plugin.json").rename(own / "LICENSE.txt")
    assert licence_of(own, tmp_path) == UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        b'{"license": "SEE LICENSE IN terms.md"}',
        b'{"license": [1]}',
        b"[" * 60_000,
        b"\xff",
        b'{"name": "' + b"x" * 1_000_000 + b'", "license": "MIT"}',
    ],
)
def test_manifests_that_are_odd_state_no_licence(tmp_path: Path, text: bytes) -> None:
    path = skill(tmp_path / "a")
    (path / "package.json").write_bytes(text)
    (path / ".claude-plugin").mkdir()
    os.mkfifo(path / ".claude-plugin" / "plugin.json")
    assert licence_of(path, tmp_path) == UNKNOWN


def test_a_licence_above_the_repository_or_in_the_home_folder_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    manifest(tmp_path)
    path = skill(tmp_path / ".claude" / "skills" / "a")
    assert licence_of(path, path.parent) == UNKNOWN
    inner = skill(tmp_path / "work" / "clone" / "b")
    manifest(tmp_path / "work")
    assert licence_of(inner, inner.parent) == "MIT"
    (inner.parent / ".git").mkdir()
    assert licence_of(inner, inner.parent) == UNKNOWN


def test_a_linked_skill_has_the_licence_of_the_place_that_the_link_leads_to(tmp_path: Path) -> None:
    path = skill(tmp_path / "repository" / "skills" / "a")
    manifest(tmp_path / "repository")
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "a").symlink_to(path)
    assert licence_of(tmp_path / "user" / "a", tmp_path / "user") == "MIT"


names = st.sampled_from(["MIT", "ISC", "Apache-2.0"])
expressions = st.recursive(
    names, lambda below: st.tuples(below, st.sampled_from(["AND", "OR"]), below), max_leaves=8
)


@given(expressions, st.sets(names))
def test_nothing_is_permitted_that_the_expression_does_not_allow(tree: object, allowed: set[str]) -> None:
    def text(node: object) -> str:
        return f"({' '.join(map(text, node))})" if isinstance(node, tuple) else str(node)

    def truth(node: object) -> bool:
        if not isinstance(node, tuple):
            return node in allowed
        left, operator, right = node
        return (truth(left) and truth(right)) if operator == "AND" else (truth(left) or truth(right))

    expression = recognise_name(text(tree))
    if expression != UNKNOWN:  # too long
        assert truth(tree) or not permits(expression, allowed)
        assert permits(expression, allowed) or "(" in expression or not truth(tree)

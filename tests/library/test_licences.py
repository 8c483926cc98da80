"""Licences: recognised in names, and in the manifests beside and above a skill."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpager.library import discover
from skillpager.library.discovery import stated_licence
from skillpager.library.filters import (
    UNKNOWN,
    permits,
    read_licence,
    recognise_name,
)


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


def skill(folder: Path, licence: str = "") -> Path:
    """Write a skill, with a licence in its front matter if one is given."""
    folder.mkdir(parents=True)
    stated = f"license: {licence}\n" if licence else ""
    text = f"---\nname: {folder.name}\ndescription: d\n{stated}---\ntext\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


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

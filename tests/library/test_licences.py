"""Licences: recognised in names, in texts, and in the files beside and above a skill."""

import importlib.metadata
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skillpager.library.licences
from skillpager.library import discover
from skillpager.library.licences import (
    PROPRIETARY,
    UNKNOWN,
    Licence,
    Licences,
    permits,
    recognise_name,
    recognise_text,
    stated_licence,
)

MIT = """MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.
"""
BSD = """Copyright (c) 2026, Somebody. All rights reserved.

Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:
"""
APACHE = "Apache License\n  Version 2.0, January 2004\n  http://www.apache.org/licenses/\n"
RESERVED = (
    "© 2026 Somebody, Inc. All rights reserved.\n\nUse of these materials is governed by your agreement.\n"
)


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("MIT", "MIT"),
        ("mit license", "MIT"),
        ("The MIT License (MIT)", "MIT"),
        ("Apache 2.0", "Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"),
        ("Apache-2.0 license", "Apache-2.0"),
        ("GPLv3", "GPL-3.0"),
        ("GNU General Public License v3.0", "GPL-3.0"),
        ("gpl-3.0-or-later", "GPL-3.0-or-later"),
        ("AGPL-3.0", "AGPL-3.0"),
        ("BSD 3-Clause", "BSD-3-Clause"),
        ("CC BY-NC-SA 4.0", "CC-BY-NC-SA-4.0"),
        ("CC0", "CC0-1.0"),
        ("Unlicense", "Unlicense"),
        ("CC-BY-4.0 AND Apache-2.0", "CC-BY-4.0 AND Apache-2.0"),
        ("MIT OR (Apache-2.0 and BSD-3-Clause)", "MIT OR (Apache-2.0 AND BSD-3-Clause)"),
        ("UNLICENSED", PROPRIETARY),
        ("Proprietary. LICENSE.txt has complete terms", PROPRIETARY),
        ("Proprietary (engine) + MIT (integration)", PROPRIETARY),
        # what leaves a choice is not guessed
        ("BSD", UNKNOWN),
        ("GPL", UNKNOWN),
        ("Complete terms in LICENSE.txt", UNKNOWN),
        ("Unknown", UNKNOWN),
        ("", UNKNOWN),
        ("WITH", UNKNOWN),
        ("MIT AND", UNKNOWN),
    ],
)
def test_a_licence_is_recognised_by_the_name_that_people_give_it(name: str, expression: str) -> None:
    assert recognise_name(name) == expression


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        (MIT, "MIT"),
        (MIT.partition("The above")[0], "MIT-0"),
        (APACHE, "Apache-2.0"),
        (f"{APACHE}\n{MIT}", "Apache-2.0 AND MIT"),
        (BSD, "BSD-2-Clause"),
        (f"{BSD} … may be used to endorse or promote products derived from this software", "BSD-3-Clause"),
        (f"{MIT}\n“Commons Clause” License Condition v1.0", UNKNOWN),
        ("Attribution-NonCommercial-ShareAlike 4.0 International", "CC-BY-NC-SA-4.0"),
        ("This work is licensed under CC BY 4.0.", "CC-BY-4.0"),
        ("SPDX-License-Identifier: MPL-2.0\n", "MPL-2.0"),
        ("# MIT License\n\nCopyright 2026 Somebody\n", "MIT"),
        (RESERVED, PROPRIETARY),
        ("All rights reserved. We hereby grant you a licence to look at it.", UNKNOWN),
        ("Do with it as you please.", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_a_licence_is_recognised_by_its_text(text: str, expression: str) -> None:
    assert recognise_text(text) == expression


def test_texts_of_installed_packages_are_recognised_as_what_their_metadata_says() -> None:
    """The licence files that are here, against what their packages state of themselves."""
    right, wrong = 0, []
    for package in importlib.metadata.distributions():
        stated = recognise_name(package.metadata.get("License-Expression") or "")
        files = [file for file in package.files or [] if "dist-info" in str(file) and "LICENSE" in file.name]
        if stated in (UNKNOWN, PROPRIETARY) or " " in stated or len(files) != 1:
            continue
        found = recognise_text(Path(str(files[0].locate())).read_text(encoding="utf-8", errors="replace"))
        # others' licences may stand below the package's own
        right += stated.removesuffix("-only") in found.split(" AND ")
        if stated.removesuffix("-only") not in found.split(" AND "):
            wrong.append((package.name, stated, found))
    assert right > 10
    assert len(wrong) <= right // 20, wrong


def test_front_matter_states_a_licence_in_two_places() -> None:
    assert stated_licence({"license": " MIT\n"}) == "MIT"
    assert stated_licence({"metadata": json.dumps({"license": "MIT", "version": 1})}) == "MIT"
    assert stated_licence({"license": "ISC", "metadata": json.dumps({"license": "MIT"})}) == "ISC"
    assert stated_licence({"license": "", "metadata": "[" * 100_000}) == ""
    assert len(stated_licence({"license": "x" * 10_000})) <= 200


def skill(folder: Path, licence: str = "") -> Path:
    """Write a skill, with a licence in its front matter if one is given."""
    folder.mkdir(parents=True)
    stated = f"license: {licence}\n" if licence else ""
    text = f"---\nname: {folder.name}\ndescription: d\n{stated}---\ntext\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def licence_of(path: Path, top: Path) -> Licence:
    """Return the licence of the skill at `path` as discovery finds it below `top`."""
    (found,) = (each for each in discover([top]) if each.path == path)
    return Licences().read(found.path, found.stated_licence, top=found.folder)


def test_front_matter_comes_before_files_and_near_files_before_far_ones(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text(MIT)
    stated, own, bare = (skill(tmp_path / name, lic) for name, lic in [("a", "ISC"), ("b", ""), ("c", "")])
    (own / "LICENSE.txt").write_text(RESERVED)
    assert licence_of(stated, tmp_path) == Licence("ISC", stated / "SKILL.md")
    assert licence_of(own, tmp_path) == Licence(PROPRIETARY, own / "LICENSE.txt")
    assert licence_of(bare, tmp_path) == Licence("MIT", tmp_path / "LICENSE")


def test_front_matter_that_names_a_file_is_what_the_file_says(tmp_path: Path) -> None:
    path = skill(tmp_path / "a", "Complete terms in LICENSE.txt")
    assert licence_of(path, tmp_path) == Licence(UNKNOWN, path / "SKILL.md")
    (path / "LICENSE.txt").write_text(APACHE)
    assert licence_of(path, tmp_path) == Licence("Apache-2.0", path / "LICENSE.txt")


def test_a_repository_and_a_plugin_license_what_is_below_them(tmp_path: Path) -> None:
    repository, plugin = tmp_path / "repository", tmp_path / "plugin"
    in_repository, in_plugin = skill(repository / "skills" / "a"), skill(plugin / "skills" / "b")
    (repository / "LICENSE").write_text(MIT)
    assert licence_of(in_repository, repository / "skills") == Licence(UNKNOWN, None)
    (repository / ".git").mkdir()
    assert licence_of(in_repository, repository / "skills") == Licence("MIT", repository / "LICENSE")
    (plugin / ".claude-plugin").mkdir()
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name": "b", "license": "Apache-2.0"}')
    expected = Licence("Apache-2.0", plugin / ".claude-plugin" / "plugin.json")
    assert licence_of(in_plugin, plugin / "skills") == expected


def test_a_licence_above_the_repository_or_in_the_home_folder_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "LICENSE").write_text(MIT)
    (tmp_path / ".git").mkdir()
    path = skill(tmp_path / ".claude" / "skills" / "a")
    assert licence_of(path, path.parent) == Licence(UNKNOWN, None)
    inner = skill(tmp_path / "work" / "clone" / "b")
    (tmp_path / "work" / "LICENSE").write_text(MIT)
    (inner.parent / ".git").mkdir()
    assert licence_of(inner, inner.parent) == Licence(UNKNOWN, None)


def test_a_linked_skill_has_the_licence_of_the_place_that_the_link_leads_to(tmp_path: Path) -> None:
    path = skill(tmp_path / "repository" / "skills" / "a")
    (tmp_path / "repository" / ".git").mkdir()
    (tmp_path / "repository" / "LICENSE").write_text(MIT)
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "a").symlink_to(path)
    assert licence_of(tmp_path / "user" / "a", tmp_path / "user").expression == "MIT"


def test_files_that_are_odd_are_no_licence(tmp_path: Path) -> None:
    path = skill(tmp_path / "a")
    (path / "LICENSE").write_bytes(b"\xff\x00" * 1_000_000)
    os.mkfifo(path / "COPYING")
    (path / "LICENSE-MIT").symlink_to("LICENSE-MIT")
    (path / "license.d").mkdir()
    assert licence_of(path, tmp_path).expression == UNKNOWN
    (path / "LICENCE.md").write_text(MIT)
    assert licence_of(path, tmp_path) == Licence("MIT", path / "LICENCE.md")


def test_a_new_licence_file_is_noticed_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, licences = skill(tmp_path / "a"), Licences()
    assert licences.read(path, top=tmp_path).expression == UNKNOWN
    (path / "LICENSE").write_text(MIT)
    assert licences.read(path, top=tmp_path).expression == UNKNOWN
    later = time.monotonic() + skillpager.library.licences.KEPT_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert licences.read(path, top=tmp_path).expression == "MIT"


def test_all_of_a_conjunction_and_one_of_a_choice_must_be_allowed() -> None:
    allowed = frozenset({"MIT", "GPL-3.0"})
    assert permits("MIT", allowed)
    assert not permits("MIT AND Apache-2.0", allowed)
    assert permits("MIT OR Apache-2.0", allowed)
    assert permits("GPL-3.0-or-later WITH Classpath-exception-2.0", allowed)
    assert permits("Apache-2.0 OR (MIT AND GPL-3.0-only)", allowed)
    assert not permits("(MIT OR Apache-2.0) AND ISC", allowed)
    assert not permits(UNKNOWN, allowed)
    assert permits(UNKNOWN, {UNKNOWN})


names = st.sampled_from(["MIT", "ISC", "Apache-2.0"])
expressions = st.recursive(
    names, lambda below: st.tuples(below, st.sampled_from(["AND", "OR"]), below), max_leaves=8
)


@given(expressions, st.sets(names))
def test_permission_is_the_truth_of_the_expression(tree: object, allowed: set[str]) -> None:
    def text(node: object) -> str:
        return f"({' '.join(map(text, node))})" if isinstance(node, tuple) else str(node)

    def truth(node: object) -> bool:
        if not isinstance(node, tuple):
            return node in allowed
        left, operator, right = node
        return (truth(left) and truth(right)) if operator == "AND" else (truth(left) or truth(right))

    expression = recognise_name(text(tree))
    if expression != UNKNOWN:  # too long
        assert permits(expression, allowed) == truth(tree)


@given(st.text(max_size=300))
def test_any_text_has_a_licence_or_none(text: str) -> None:
    for expression in (recognise_name(text), recognise_text(text)):
        assert isinstance(permits(expression, {"MIT"}), bool)

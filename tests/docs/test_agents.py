"""AGENTS.md prints the tree as it is, and the house is as small at the top as it was drawn."""

import runpy

from conftest import ROOT

PACKAGE = ROOT / "src" / "skillpager"
# docs/design.md draws no more files than these at the top
MOST_TOP_FILES = 18
# a tree is read in a terminal
MOST_COLUMNS = 150


def test_the_tree_in_agents_md_is_the_tree() -> None:
    tree = runpy.run_path(str(ROOT / "docs" / "generate_tree.py"))["tree"]()
    assert tree in (ROOT / "AGENTS.md").read_text(encoding="utf-8"), "run `python docs/generate_tree.py`"
    assert [line for line in tree.splitlines() if len(line) > MOST_COLUMNS] == []


def test_few_files_stand_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_TOP_FILES


def test_every_module_says_what_it_is() -> None:
    tree = runpy.run_path(str(ROOT / "docs" / "generate_tree.py"))["tree"]()
    assert [line for line in tree.splitlines() if len(line.split()) < 3 or " What " in line] == []

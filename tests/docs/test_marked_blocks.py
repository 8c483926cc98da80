"""Blocks of a page: found by their names, replaced, and nothing else touched."""

from pathlib import Path

from marked_blocks import read_blocks, table, write_blocks

PAGE = "# T\n\n<!-- a b -->\nold\n<!-- /a b -->\n\n<!-- a comment -->\n\n<!-- c -->\n<!-- /c -->\nend\n"


def test_blocks_are_found_by_name() -> None:
    assert read_blocks(PAGE) == {"a b": "old\n", "c": ""}


def test_only_named_blocks_change(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    # the new text holds what a regular expression would take for a group
    write_blocks(page, {"a b": "\\1 new\n", "unknown": "x"})
    assert page.read_text(encoding="utf-8") == PAGE.replace("old", "\\1 new")


def test_a_table_is_markdown() -> None:
    assert table(["", "n"], [["a", 1]]) == "| | n |\n| --- | --- |\n| a | 1 |\n"

"""Fragments tile the source, for the samples, every trap and arbitrary text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES, TRAPS
from golden import check, tiles_text
from messages import raises
from skillpager.errors import SkillError
from skillpager.parsing.blocks import MAX_ITEM_CHARS, split_blocks
from skillpager.parsing.fragments import PROFILES, split_file, split_skill
from skillpager.parsing.markdown import link_targets, parse_blocks
from skillpager.parsing.skill import read_skill, skill_from_files, skill_from_text
from skillpager.types import Fragment, Heading, SourceFile, Tile, TileKind

# what makes a parser stumble, one piece a line; a form feed, a line separator and a zero among them
PIECES = [
    *("# ", "## ", "- ", "  - ", "1. ", "> ", "```", "~~~", "`", "| a | b |", "|---|---|", "---", "===", "***"),
    *("\n", "\n\n", "\r\n", "\r", "\t", "    ", "\ufeff", "\u2028", "\f", "\0"),
    *("[x]: http://a.b", "<div>", "</div>", "<!--", "-->", "<pre>", "<tag>\n", "</tag>\n", "\n```\n"),
    *("Sentence one. Two!", "If so, go. Then", "note:", "e.g. ", "。好"),
]  # fmt: skip

# Markdown-like text: the pieces in any order
MARKDOWN = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=40).map("".join)


def file_of(text: str) -> SourceFile:
    """Return a file with `text` as its body."""
    return SourceFile(path="SKILL.md", text=text, digest="", body_start=0)


def fragments(text: str) -> list[Fragment]:
    """Return the fragments of a body."""
    return [tile for tile in split_file(file_of(text)) if isinstance(tile, Fragment)]


def check_tiling(file: SourceFile, tiles: list[Tile]) -> None:
    """Assert contract 1 for one file."""
    assert "".join(tile.text for tile in tiles) == file.text
    position = 0
    for tile in tiles:
        assert (tile.span.start, tile.span.end) == (position, position + len(tile.text))
        assert 1 <= tile.span.start_line <= tile.span.end_line
        position = tile.span.end
        if tile.kind is TileKind.BLANK:
            assert set("".join(tile.text.split())) <= set("-*_>\ufeff")
        if isinstance(tile, Fragment):
            assert tile.text.strip()


@settings(max_examples=3000, deadline=None)
@given(MARKDOWN)
def test_any_text_is_tiled(text: str) -> None:
    file = file_of(text)
    for profile in PROFILES:
        check_tiling(file, split_file(file, profile=profile))


def test_nodes_of_the_papers_size_are_items_rows_and_lead_ins_apart() -> None:
    skill = skill_from_text("Do:\n\n- a\n- b\n\n| c |\n| - |\n| d |\n| e |\n\nIf so. Go. Or stay.\n")
    apart = ["Do:", "- a", "- b", "| c |\n| - |\n| d |", "| e |", "If so. Go. Or stay."]
    joined = ["Do:\n\n- a\n- b", "\n".join(apart[3:5]), apart[-1]]
    for profile, texts in zip(("default", "paper"), (joined, apart), strict=True):
        tiles = split_skill(skill, profile)
        assert [tile.text.rstrip() for tile in tiles if isinstance(tile, Fragment)] == texts


@pytest.mark.parametrize("path", sorted(TRAPS.glob("*.md")), ids=lambda path: path.stem)
def test_traps_are_tiled_with_the_right_lines(path: object) -> None:
    skill = read_skill(str(path))
    (file,) = skill.files
    tiles = split_skill(skill)
    check_tiling(file, tiles)
    lines = file.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for tile in tiles:
        if isinstance(tile, Fragment | Heading):
            first = tile.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[0]
            assert first in lines[tile.span.start_line - 1]


@pytest.mark.parametrize("path", sorted(SAMPLES.iterdir()), ids=lambda path: path.name)
def test_samples_are_tiled_and_numbered_through_all_files(path: object) -> None:
    skill = read_skill(str(path))
    tiles = split_skill(skill)
    for file in skill.files:
        check_tiling(file, [tile for tile in tiles if tile.span.file == file.path])
    ordinals = [tile.ordinal for tile in tiles if isinstance(tile, Fragment)]
    assert ordinals == list(range(len(ordinals)))


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# A\n\n```\n# not one\n```\n", ["A"]),
        ("Title\n=====\n\nSub\n---\n\ntext", ["Title", "Sub"]),
        ("# A #\n\n#hash\n\n## *B* `c` [d](e)", ["A", "B c d"]),
        ("> # quoted\n\n- # listed\n", []),
    ],
)
def test_headings(text: str, headings: list[str]) -> None:
    assert [tile.title for tile in split_file(file_of(text)) if isinstance(tile, Heading)] == headings


def test_heading_paths_follow_levels_not_order() -> None:
    text = "intro\n\n# A\n\na\n\n### B\n\nb\n\n## C\n\nc\n\n# A\n\nd"
    assert [item.heading_path for item in fragments(text)] == [(), ("A",), ("A", "B"), ("A", "C"), ("A",)]


def test_list_items_carry_their_lead_in_as_a_field() -> None:
    long = "that is long enough to stand alone because short items are grouped together. Yes."
    first, second = fragments(f"# H\n\nDo the following:\n\n- one {long}\n- two {long}\n")
    assert first.text.startswith("Do the following:")
    assert first.list_context is not None
    assert first.list_context.lead_in == ""  # it is inside the fragment
    assert second.list_context is not None
    assert second.list_context.lead_in == "Do the following:"
    assert (second.list_context.position, second.list_context.size) == (1, 2)
    assert (second.text[:5], second.heading_path) == ("- two", ("H",))


def test_later_parts_of_a_long_table_carry_its_header() -> None:
    head = "| option | meaning |\n|---|---|\n"
    rows = "\n".join(f"| --option-{number} | {'text ' * 15}|" for number in range(20))
    parts = fragments(head + rows)
    assert len(parts) > 3
    assert {part.kind for part in parts} == {TileKind.TABLE}
    assert all(part.list_context and part.list_context.lead_in == head.rstrip() for part in parts[1:])


def test_link_definitions_are_not_lost() -> None:
    kinds = [item.kind for item in fragments("Text [a].\n\n[a]: http://x.org\n[b]: http://y.org\n")]
    assert kinds == [TileKind.SENTENCE, TileKind.LINK_DEFINITION]
    assert len(fragments("If so.\n\n>\n[a]: b")) == 2  # the mark of a quote is no sentence
    (definition,) = fragments("[a]: http://x.org\n\n# B\n")
    assert definition.heading_path == ()


@pytest.mark.parametrize(
    "deep",
    [
        "\n".join("  " * depth + "- item" for depth in range(90)),
        "\n".join(">" * depth + " item" for depth in range(1, 91)),
        "- " * 90 + "item\n" + "item " * 89,
        "> " * 90 + "item\n" + "> item\n" * 89,
    ],
)
def test_what_is_behind_too_deep_nesting_is_read(deep: str) -> None:
    tiles = split_file(file_of(f"{deep}\n\n# Behind\n\nOne. Two.\n"))
    assert "".join(tile.text for tile in tiles).count("item") == 90
    behind = [("# Behind", TileKind.HEADING), ("One.", TileKind.SENTENCE), ("Two.", TileKind.SENTENCE)]
    assert [(tile.text, tile.kind) for tile in tiles if tile.text.strip()][-3:] == behind


# ---- where authors mean something else than CommonMark


def parts_of(text: str) -> list[tuple[TileKind, str]]:
    """Return kind and text of the tiles that are not blank."""
    return [(tile.kind, tile.text) for tile in split_file(file_of(text)) if tile.kind is not TileKind.BLANK]


HEADING = (TileKind.HEADING, "# B")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("<python>\n```py\na\n\n# c\n```\n</python>\n\n# B", [(TileKind.CODE, "<python>\n```py\na\n\n# c\n```\n</python>"), HEADING]),
        ("<div>\ntext\n~~~\na\n\n# c\n~~~\n# B", [(TileKind.HTML, "<div>\ntext"), (TileKind.CODE, "~~~\na\n\n# c\n~~~"), HEADING]),
        ("<a>\n2. b\n# B\n- c\n- d\n</a>", [(TileKind.HTML, "<a>\n2. b"), HEADING, (TileKind.LIST_ITEM, "- c\n- d\n</a>")]),
        ("</p> c\nd\n\n</p>\n</p\n\n>\n\n# B", [(TileKind.HTML, "</p> c\nd\n\n</p>"), (TileKind.HTML, "</p"), HEADING]),
        ("<a>\n| c |\n|---|\n</a>", [(TileKind.TABLE, "<a>\n| c |\n|---|\n</a>")]),
        ("<div\n  class='a'\n>\n\n# B", [(TileKind.HTML, "<div\n  class='a'\n>"), HEADING]),
        ("- a\n\n  <b>\n  ```\n  c\n\n  # d\n  ```\n\n# B", [(TileKind.LIST_ITEM, "- a\n\n  <b>\n  ```\n  c\n\n  # d\n  ```"), HEADING]),
        # what holds all text holds fences
        ("<!--\n```\n# c\n\n-->\n# B", [(TileKind.HTML, "<!--\n```\n# c\n\n-->"), HEADING]),
        ("<pre>\n```\n# c\n\n</pre>\n# B", [(TileKind.HTML, "<pre>\n```\n# c\n\n</pre>"), HEADING]),
        ("<style>\n# c\n\n- d\n</style>\n# B", [(TileKind.HTML, "<style>\n# c\n\n- d\n</style>"), HEADING]),
        # unless it is never closed
        ("<!-- c\nd\n\n# B", [(TileKind.HTML, "<!-- c\nd"), HEADING]),
        ("<script>\n```\n# c\n```\n# B", [(TileKind.CODE, "<script>\n```\n# c\n```"), HEADING]),
        ("<?php\n\n<?php\n\n# B", [(TileKind.HTML, "<?php"), (TileKind.HTML, "<?php"), HEADING]),
        ("> <!-- c\n\n# B\n\n-->", [(TileKind.QUOTE, "> <!-- c"), HEADING, (TileKind.SENTENCE, "-->")]),
        # code that lacks the indentation or the marks of its container
        ("- a\n  ```\n# c\n\nd\n```\n# B", [(TileKind.LIST_ITEM, "- a\n  ```\n# c\n\nd\n```"), HEADING]),
        ("- a\n  - b\n    ~~~ py\n# c\n  ~~~\n# B", [(TileKind.LIST_ITEM, "- a\n  - b\n    ~~~ py\n# c\n  ~~~"), HEADING]),
        ("> ```\n# c\n\nd\n```\n# B", [(TileKind.QUOTE, "> ```\n# c\n\nd\n```"), HEADING]),
        # unless the next fence opens one, or a blank line ends the code
        ("- ```\n# B\n```py\n# c\n```", [(TileKind.LIST_ITEM, "- ```"), HEADING, (TileKind.CODE, "```py\n# c\n```")]),
        ("- ```\n# B\n- ```\n  # c", [(TileKind.LIST_ITEM, "- ```"), HEADING, (TileKind.LIST_ITEM, "- ```\n  # c")]),
        ("- ```\n\n# B\n```\n# c\n```", [(TileKind.LIST_ITEM, "- ```"), HEADING, (TileKind.CODE, "```\n# c\n```")]),
        ("- ```\n# B", [(TileKind.LIST_ITEM, "- ```"), HEADING]),
        # a code span of several lines that ends in brackets
        ("(see ```sh\na\n```)\n\n# B", [(TileKind.SENTENCE, "(see ```sh\na\n```)"), HEADING]),
        ("# B\n\n```**", [HEADING, (TileKind.SENTENCE, "```**")]),
    ],
)  # fmt: skip
def test_blocks_as_authors_mean_them(text: str, parts: list[tuple[TileKind, str]]) -> None:
    assert parts_of(text) == parts


@settings(max_examples=100, deadline=None)
@given(
    st.from_regex(r"[A-Za-z][\w-]{0,8}( a='b')?", fullmatch=True).filter(
        lambda tag: not tag.lower().startswith(("pre", "script", "style", "textarea"))
    ),
    st.lists(st.sampled_from(["word", "a. B. c", "<b>", "key: value"]), max_size=3),
    st.sampled_from(["```", "~~~", "````", "  ```"]),
    st.lists(st.sampled_from(["", "# a", "- b", "> c", "<d>", "</d>", "<!--", "``", "    ```", "word"])),
    st.lists(st.sampled_from(["word", "- b", "> c", "| d |", ""]), max_size=3),
)
def test_a_fence_in_a_tag_ends_at_its_closing_fence(
    tag: str, before: list[str], fence: str, code: list[str], behind: list[str]
) -> None:
    block = "\n".join([f"{fence} sh", *code, fence])
    tagged = [f"<{tag}>", *before, block, *behind, f"</{tag.split()[0]}>"]
    text = "\n".join([*tagged, "", "# Behind", "", "End."])
    start = text.index(block)
    tiles = split_file(file_of(text))
    assert "".join(tile.text for tile in tiles) == text
    (holder,) = (tile for tile in tiles if tile.span.start <= start < tile.span.end)
    assert holder.kind is TileKind.CODE
    assert holder.span.end in (start + len(block), len(text) - len("\n\n# Behind\n\nEnd."))
    assert [tile.title for tile in tiles if isinstance(tile, Heading)] == ["Behind"]


def test_empty_lines_of_a_long_quote_are_blank() -> None:
    long = "> " + "x" * MAX_ITEM_CHARS
    texts = [part.text for part in fragments(f"{long}\n>\n> a\n>\n>\n> > b\n>\n\n>\n\n>")]
    assert texts == [long, "> a", "> > b"]
    assert fragments("    >")[0].kind is TileKind.CODE


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("\ufeff# A\n", ["blank", "heading", "blank"]),
        ("\ufeff\ufeff---\nname: a\n---\n# A", ["blank", "front_matter", "heading"]),
        ("---\nname: a\n---\n\n\ufeff# A", ["front_matter", "blank", "heading"]),
        ("\ufeff---\nname: a\n---\n\ufeff\n\ufeff    b", ["blank", "front_matter", "blank", "code"]),
    ],
)
def test_byte_order_marks_are_blank_space(text: str, kinds: list[str]) -> None:
    skill = skill_from_files([("SKILL.md", text), ("b.md", f"{text}b")])
    tiles = split_skill(skill)
    assert [tile.kind for tile in tiles if tile.text != "b"] == kinds * 2
    assert "".join(tile.text for tile in tiles) == f"{text}{text}b"
    assert not any("\ufeff" in tile.text for tile in tiles if tile.kind is not TileKind.BLANK)
    assert skill.name == ("a" if "front_matter" in kinds else "skill")
    assert all("YAML" not in warning for warning in skill.warnings)


def test_a_two_megabyte_line_is_split_at_its_sentences() -> None:
    assert len(fragments("A sentence of some words stands here. " * 55_000)) == 55_000


def test_a_fragment_names_its_first_and_last_line() -> None:
    parts = fragments("One\nb\n\n- a\r\n  b\r\n\r\n```\n\n```")
    assert [(part.span.start_line, part.span.end_line) for part in parts] == [(1, 2), (4, 5), (7, 9)]
    assert [part.ordinal for part in parts] == [0, 1, 2]


# ---- limits


@pytest.mark.parametrize(
    ("fits", "exceeds"),
    [
        ("a\n\n" * 10, "a\n\n" * 11),  # this many may be short
        ("#\n" * 10, "#\n" * 10 + "[a]: b"),
        ("-\n" * 10, "-\n" * 11),
        ("äb\n\n" * 15, "äb\n\n" * 14 + "b\n\n"),  # five bytes each
        ("äbc\n\n" * 20, "äbc\n\n" * 21),  # this many at all
    ],
    ids=["short", "headings", "items", "bytes", "most"],
)
def test_the_number_of_parts_is_limited(monkeypatch: pytest.MonkeyPatch, fits: str, exceeds: str) -> None:
    monkeypatch.setattr("skillpager.parsing.blocks.MAX_SHORT_PIECES", 10)
    monkeypatch.setattr("skillpager.parsing.blocks.MAX_PIECES", 20)
    front_matter = f"---\nname: {'x' * 200}\n---\n"
    assert split_skill(skill_from_text(front_matter + fits))
    with raises(SkillError):
        split_skill(skill_from_files([("a/b.md", front_matter + exceeds)]))
    with raises(SkillError):
        split_blocks(exceeds, 0)


def test_the_number_of_tiles_of_a_skill_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillpager.parsing.fragments.MAX_PIECES", 503)
    files = [(f"{number}.md", "# A\n\n" * 125 + f"# {number}\n\n") for number in range(4)]
    assert len(split_skill(skill_from_files(files))) == 4 * 252  # two for each piece, and two
    with raises(SkillError):
        split_skill(skill_from_files([*files, ("last.md", "a")]))


def test_the_number_of_tokens_of_a_block_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "skillpager.parsing.markdown.MAX_TOKENS", 1_001
    )  # one for the list, one for each item
    text = "# Title\n\n" + "-\n" * 1_000
    assert split_skill(skill_from_text(text))
    with raises(SkillError):
        split_skill(skill_from_files([("a/b.md", f"---\nname: x\n---\n{text}-\n")]))
    with raises(SkillError):
        split_blocks(f"{text}-\n", 0)
    with raises(SkillError):
        link_targets(f"{text}-\n", file="SKILL.md", first_line=5)
    with raises(SkillError):
        link_targets(f"{text}-\n")
    with raises(SkillError):
        list(parse_blocks(f"{text}-\n"))


def test_the_tiles_of_the_samples_are_what_they_were() -> None:
    check("tiles.txt", tiles_text())

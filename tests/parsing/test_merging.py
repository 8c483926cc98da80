"""The merge rules of the paper, one by one and in their order."""

import pytest

from skillpager.parsing.blocks import split_blocks
from skillpager.parsing.merge_rules import MAX_LIST_GROUP_CHARS, RULES, merge
from skillpager.types import TileKind

BY_NAME = {rule.__name__: rule for rule in RULES}


def merged(text: str, *names: str) -> list[str]:
    """Return the pieces of `text` after the rules called `names`, headings left out."""
    pieces = merge(split_blocks(text, 0), text, rules=[BY_NAME[name] for name in names])
    return [text[piece.start : piece.end] for piece in pieces if not piece.level and piece.kind]


def test_the_rules_run_in_the_order_of_the_paper() -> None:
    assert " ".join(BY_NAME) == (
        "tag_joins_next marker_joins_next colon_joins_next condition_joins_next connective_joins_previous "
        "list_items_grouped table_rows_grouped tag_joins_previous"
    )
    assert all(rule.__doc__ for rule in RULES)


@pytest.mark.parametrize(
    "fence", ["```\na. B. C.\n\n# d\n```", "~~~\nif x:\n\ny. Z.\n~~~", "    a. B.\n\n    c. D."]
)
def test_code_blocks_are_one_piece_from_the_start(fence: str) -> None:
    assert merged(f"One. Two.\n\n{fence}\n\nThree.") == ["One.", "Two.", fence, "Three."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<good>\n```\na\n```\n</good>", ["<good>\n```\na\n```\n</good>"]),
        ("```\na\n```\n</good>\n<bad>\n```\nb\n```\n</bad>", ["```\na\n```\n</good>", "<bad>\n```\nb\n```\n</bad>"]),
        ("<a>\n\n<b c='d'>\n\nOne. Two.\n\n</b>\n\n</a>", ["<a>\n\n<b c='d'>\n\nOne.", "Two.\n\n</b>\n\n</a>"]),
        ("<a>\n\n# Heading\n\n</a>", ["<a>", "</a>"]),
        ("<br>\n\n<img src='a'>\n\n<a/>\n\nText.", ["<br>", "<img src='a'>", "<a/>", "Text."]),
        ("<summary>A</summary>\n\nText.", ["<summary>A</summary>", "Text."]),
    ],
)  # fmt: skip
def test_tags_join_what_is_between_them(text: str, expected: list[str]) -> None:
    assert merged(text, "tag_joins_next", "tag_joins_previous") == expected


def test_a_tag_takes_the_kind_of_what_it_opens() -> None:
    text = "Do this:\n\n- one\n\n  <a>\n- two\n\n<b>\n```\nc\n```\n\n<d>\n1. e\n"
    kinds = [piece.kind for piece in merge(split_blocks(text, 0), text)]
    assert kinds == [TileKind.LIST_ITEM, TileKind.CODE, TileKind.LIST_ITEM]


# texts, and their pieces after a rule
CASES: dict[str, list[tuple[str, list[str]]]] = {
    "marker_joins_next": [
        ("-\n  - a\n- b", ["-\n  - a", "- b"]),
        ("1.\n\n   Text. More.", ["1.\n\n   Text.", "More."]),
        ("- a\n-\n- b", ["- a", "-\n- b"]),
        ("2)\n\n# Heading", ["2)"]),
        ("- 1.\n\nText.", ["- 1.", "Text."]),
    ],
    "colon_joins_next": [
        ("First. Run this:\n\n```\nx\n```\n\nEnd.", ["First.", "Run this:\n\n```\nx\n```", "End."]),
        ("**Steps:**\n\n- a\n- b", ["**Steps:**\n\n- a", "- b"]),
        ("Values:\n\n| a |\n|---|\n| 1 |", ["Values:\n\n| a |\n|---|\n| 1 |"]),
        ("步骤：\n\n- 甲\n- 乙", ["步骤：\n\n- 甲", "- 乙"]),
        ("- outer:\n  - inner\n- next", ["- outer:\n  - inner", "- next"]),
        ("- first:\n- second", ["- first:", "- second"]),
        ("- first:\n\nText.", ["- first:", "Text."]),
        ("Look:\n\n# Heading\n\nText.", ["Look:", "Text."]),
        ("Look:\n\n---\n\nText.", ["Look:", "Text."]),
        ("The ratio is 1:2. Fine.", ["The ratio is 1:2.", "Fine."]),
        ("# A\n\nSee:\n\n[a]: x.md\n\n# Heading", ["See:\n\n[a]: x.md"]),
        ("# A\n\nSee:\n\n[a]: x.md", ["See:\n\n[a]: x.md"]),
        ("# A\n\nSee:\n\n[a]: x.md\n\n---", ["See:\n\n[a]: x.md"]),
        ("See:\n\n# Heading\n\n[a]: x.md", ["See:", "[a]: x.md"]),
        ("Do:\n\n* `\n  - a", ["Do:\n\n* `", "  - a"]),
    ],
    "condition_joins_next": [
        ("If it fails, look. The log tells why. Go on.", ["If it fails, look. The log tells why.", "Go on."]),
        ("**When** it is late, stop. Sleep.", ["**When** it is late, stop. Sleep."]),
        ("Otherwise wait. Then go. Done.", ["Otherwise wait. Then go.", "Done."]),
        ("Unless told so, stop. Ask.", ["Unless told so, stop. Ask."]),
        ("如果失败，请停止。查看日志。继续。", ["如果失败，请停止。查看日志。", "继续。"]),
        ("Wenn es klemmt, warte. Dann weiter. Ende.", ["Wenn es klemmt, warte. Dann weiter.", "Ende."]),
        ("If it fails, look.\n\nThe next paragraph.", ["If it fails, look.", "The next paragraph."]),
        ("The specific one. Two.", ["The specific one.", "Two."]),
        ("If so, go.\n\n+\n  - a", ["If so, go.", "+", "  - a"]),
        ("Iffy things. Two.", ["Iffy things.", "Two."]),
        ("_" * 78 + "If so, go. Two.", ["_" * 78 + "If so, go. Two."]),  # 80 characters are read
        ("_" * 79 + "If so, go. Two.", ["_" * 79 + "If so, go.", "Two."]),
    ],
    "connective_joins_previous": [
        ("Use make. Or use just. Fine.", ["Use make. Or use just.", "Fine."]),
        ("Use make. E.g. a target. Fine.", ["Use make. E.g. a target.", "Fine."]),
        ("```\na\n```\n\nor\n\n```\nb\n```", ["```\na\n```\n\nor", "```\nb\n```"]),
        ("用它。或者用别的。好。", ["用它。或者用别的。", "好。"]),
        ("Use make. Order matters.", ["Use make.", "Order matters."]),
        ("Use make. Android too.", ["Use make.", "Android too."]),
        ("# Or else\n\nAnd so on. Or not.", ["And so on. Or not."]),
        ("Wait.\n\n(\n\nor go.", ["Wait.", "(\n\nor go."]),
        ("Wait.\n\n[a]: x.md\n\nOr go.", ["Wait.", "[a]: x.md", "Or go."]),
        ("Wait.\n\n" + "_" * 77 + "and go.", ["Wait.\n\n" + "_" * 77 + "and go."]),
        ("Wait.\n\n" + "_" * 78 + "and go.", ["Wait.", "_" * 78 + "and go."]),
    ],
}


@pytest.mark.parametrize(
    ("rule", "text", "expected"), [(rule, *case) for rule, cases in CASES.items() for case in cases]
)
def test_what_a_rule_joins(rule: str, text: str, expected: list[str]) -> None:
    assert merged(text, rule) == expected


def test_a_condition_after_a_colon_needs_what_follows_in_its_own_paragraph_only() -> None:
    rules = ("colon_joins_next", "condition_joins_next")
    pieces = ["Note:\n\nIf it fails, look. Then ask.", "Go."]
    assert merged(f"{pieces[0]} {pieces[1]}", *rules) == pieces
    quote, code = "> If it is late," + " sleep" * 200, "> ```\n> sleep\n> ```"
    assert merged(f"Note:\n\n{quote}\n{code}", *rules) == [f"Note:\n\n{quote}", code]


def test_a_colon_at_the_end_of_an_item_takes_in_its_own_continuation() -> None:
    code = "  ```\n" + "  code\n" * 300 + "  ```"  # longer than an item may be
    text = f"- Run this:\n\n{code}\n- next"
    assert merged(text, "colon_joins_next") == [f"- Run this:\n\n{code}", "- next"]


def test_short_list_items_are_grouped_and_long_ones_stand_alone() -> None:
    long = "- " + "word " * (MAX_LIST_GROUP_CHARS // 5)
    text = f"- one\n- two\n- three\n{long}\n- four"
    assert merged(text, "list_items_grouped") == ["- one\n- two\n- three", long.rstrip(), "- four"]


def test_items_of_two_lists_never_group() -> None:
    assert merged("- one\n\nText.\n\n- two", "list_items_grouped") == ["- one", "Text.", "- two"]
    assert merged("- one\n* two", "list_items_grouped") == ["- one", "* two"]


def test_a_nested_item_does_not_take_in_the_next_outer_one() -> None:
    inner = [f"  - {number} " + "inner " * 20 for number in range(2)]
    text = "\n".join(["- outer", *inner, "- next"])
    pieces = [f"- outer\n{inner[0]}".rstrip(), inner[1].rstrip(), "- next"]
    assert merged(text, "list_items_grouped") == pieces


@pytest.mark.parametrize(
    ("title", "joins"),
    [("4. Tag\n", True), ("- " + "t" * 38, True), ("- " + "t" * 39, False), ("- a\n- b", True)],
)
def test_an_item_that_is_only_a_title_joins_its_first_nested_item(title: str, joins: bool) -> None:
    inner = [f"   {number}. " + "word " * (MAX_LIST_GROUP_CHARS // 5) for number in (1, 2)]
    first, second = (item.rstrip() for item in inner)
    parts = [f"{title}\n{first}", second] if joins else [title, first, second]
    assert merged("# Steps\n\n" + f"{title}\n{inner[0]}\n{inner[1]}", "list_items_grouped") == parts


def test_a_short_table_is_one_piece_and_a_long_one_is_cut_between_rows() -> None:
    head = "| name | use |\n|---|---|\n"
    short = head + "| a | b |\n| c | d |"
    assert merged(short, "table_rows_grouped") == [short]
    rows = [f"| name {number:03} | {'use ' * 12}|" for number in range(40)]
    parts = merged(head + "\n".join(rows), "table_rows_grouped")
    assert len(parts) > 5
    assert "\n".join(parts) == head + "\n".join(rows)

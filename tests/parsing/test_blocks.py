"""The pieces of a text before the merge rules: their kinds, and their places in lists and tables."""

import pytest

from skillpager.parsing.blocks import MAX_ITEM_CHARS, MAX_LEAD_IN_CHARS, split_blocks

Row = tuple[str, str, tuple[int, int, int, str | None] | None]


def rows_of(text: str) -> list[Row]:
    """Return text and kind of each piece; depth, position, size and lead-in of items and rows."""
    rows: list[Row] = []
    for piece in split_blocks(text, 0):
        place = None
        if piece.place:
            lead_in = text[slice(*piece.place.lead_in)] if piece.place.lead_in else None
            place = (piece.place.depth, piece.place.position, piece.place.size, lead_in)
        rows.append((text[piece.start : piece.end], piece.kind or "break", place))
    return rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("```\na\n```\n\n    b\n\n<div>\n\n***\n\n # *H*\n\n  One. Two.\n\n   > q\n\n[c]: d", [
            *(("```\na\n```", "code", None), ("    b", "code", None), ("<div>", "html", None), ("***", "break", None)),
            *(("# *H*", "heading", None), ("One.", "sentence", None), ("Two.", "sentence", None)),
            *(("   > q", "quote", None), ("[c]: d", "link_definition", None)),
        ]),
        ("One. Do:\n\n- a\n  - b\n    - c\n- d\n\nText.\n\n- e\n\nDo:\n\n# Do:\n\n- f\n\n> Do:\n\n- g", [
            *(("One.", "sentence", None), ("Do:", "sentence", None), ("- a", "list_item", (0, 0, 2, "Do:"))),
            *(("  - b", "list_item", (1, 0, 1, "- a")), ("    - c", "list_item", (2, 0, 1, "  - b"))),
            *(("- d", "list_item", (0, 1, 2, "Do:")), ("Text.", "sentence", None)),
            *(("- e", "list_item", (0, 0, 1, None)), ("Do:", "sentence", None), ("# Do:", "heading", None)),
            *(("- f", "list_item", (0, 0, 1, None)), ("> Do:", "quote", None), ("- g", "list_item", (0, 0, 1, None))),
        ]),
        ("- - a\n  - b\n-\n- c\n\n  ```\n  d\n  ```\n\n  - e\n\n  f\n\n  <div>", [
            *(("- - a", "list_item", (1, 0, 2, None)), ("  - b", "list_item", (1, 1, 2, None)), ("-", "list_item", (0, 1, 3, None))),
            ("- c\n\n  ```\n  d\n  ```", "list_item", (0, 2, 3, None)),
            ("  - e", "list_item", (1, 0, 1, "- c\n\n  ```\n  d\n  ```")),
            ("  f", "list_item", (0, 2, 3, "- c\n\n  ```\n  d\n  ```")),
            ("  <div>", "html", (0, 2, 3, "- c\n\n  ```\n  d\n  ```")),
        ]),
        ("| a |\n|---|", [("| a |\n|---|", "table", (0, 0, 1, None))]),
        ("- [a]:\nb", [("- [a]:", "list_item", (0, 0, 1, None)), ("b", "sentence", None)]),
        ("| a |\n|---|\n| b |\n| c |\n| d |\n", [
            ("| a |\n|---|\n| b |", "table", (0, 0, 3, None)),
            ("| c |", "table", (0, 1, 3, "| a |\n|---|")),
            ("| d |", "table", (0, 2, 3, "| a |\n|---|")),
        ]),
        # 20 characters are searched for the colon
        ("Do:" + "_" * 19 + "\n- a", [("Do:" + "_" * 19, "sentence", None), ("- a", "list_item", (0, 0, 1, "Do:" + "_" * 19))]),
        ("Do:" + "_" * 20 + "\n- a", [("Do:" + "_" * 20, "sentence", None), ("- a", "list_item", (0, 0, 1, None))]),
    ],
)  # fmt: skip
def test_pieces_and_their_places(text: str, rows: list[Row]) -> None:
    assert rows_of(text) == rows


def test_a_long_item_is_split_into_its_blocks() -> None:
    head = "- " + "x" * (MAX_ITEM_CHARS - 7)
    assert rows_of(f"{head}\n\n  y") == [(f"{head}\n\n  y", "list_item", (0, 0, 1, None))]
    assert rows_of(f"{head}x\n\n  y\n\n  ```\n  z\n  ```\n\n  - q\n") == [
        (f"{head}x", "list_item", (0, 0, 1, None)),
        ("  y", "list_item", (0, 0, 1, f"{head}x")),
        ("  ```\n  z\n  ```", "code", (0, 0, 1, f"{head}x")),
        ("  - q", "list_item", (1, 0, 1, f"{head}x")),
    ]


def test_a_long_quote_is_split_into_its_blocks() -> None:
    head = "> " + "x" * (MAX_ITEM_CHARS - 8)
    whole = f"{head}\n> ```\n"
    assert rows_of(f"x\n\n{whole}")[1:] == [(whole.rstrip(), "quote", None)]
    assert rows_of(f"{head}x\n> ```") == [(f"{head}x", "quote", None), ("> ```", "code", None)]
    assert rows_of(f"{head}x\n> and y") == [(f"{head}x\n> and y", "quote", None)]  # it has one block


def test_a_very_long_text_leads_nothing_in() -> None:
    longest = "x" * (MAX_LEAD_IN_CHARS - 1) + ":"
    assert rows_of(f"{longest}\n- a")[1][2] == (0, 0, 1, longest)
    assert rows_of(f"x{longest}\n- a")[1][2] == (0, 0, 1, None)

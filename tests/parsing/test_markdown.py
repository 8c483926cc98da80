"""The parser against markdown-it; links to files, in windows of long texts; titles."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from skillpager.parsing.markdown import MAX_TITLE, block_parser, link_targets, parse_blocks, plain_text

Part = tuple[str, int, list[int] | None, str]

# lines of tables, and what ends them
LINES = st.sampled_from([
    *("| a | b |", "|---|---|", "a | b", "--|:-:", "| a", "|", "||", "| | |", "| c \\| d | `e` |  |", "|a|b|c|"),
    *("", "    | a | b |", "  | a | b |", "text", "2. x", "1. x", "- x", "> x", "# A", "***", "```", "<div>"),
    *("[a]: b", "[a]:", "\0 | \0", "| a |\r| b |", "'"),
])  # fmt: skip
PREFIX = st.sampled_from(["", "", "", "> ", "- ", "  ", "> - ", "   "])


def parts_of(text: str) -> list[Part]:
    """Return the opening tokens of a text."""
    return [(part.type, part.level, part.map, part.content) for block in parse_blocks(text) for part in block]


def parts_of_markdown_it(text: str, parser: MarkdownIt | None = None) -> list[Part]:
    """Return the same from markdown-it, by default with CommonMark and tables; without the empty cells of these."""
    parser = parser or MarkdownIt("commonmark", {"maxNesting": 64}).enable("table")
    tokens = parser.parse(text if text.endswith("\n") else f"{text}\n")
    empty = {
        place - step
        for place, token in enumerate(tokens)
        if token.type in ("td_close", "th_close") and not tokens[place - 1].content
        for step in (1, 2)
    }
    return [
        (token.type, token.level, token.map, "" if token.type in ("fence", "html_block") else token.content)
        for place, token in enumerate(tokens)
        if token.nesting >= 0 and place not in empty
    ]


@pytest.mark.parametrize(
    "text",
    [
        "text\n\n| a |\n|---|\n2. x\n",  # ends a table, though it ends no paragraph
        "text\n| a |\n|---|\n| b |\n",
        "[a]: b\n| a |\n|---|\n",
        "[a]:\n| a |\n|---|\n",
        "[a]: b 'c\n| a |\n|---|\nd'\n",
        "| a | b |\n|---|---|\n| c |\n| d | e | f |\n| | g |\n\n| h |\n",
        "> | a |\n> |---|\n> | b |\n| c |\n",
        "- | a |\n  |---|\n  | b |\n | c |\n",
        "| | a |\n|---|---|\n    | b |\n",
        "| a |\n|---|\n***\n| a |\n|---|\n> x\n",
        "- a\n- b\n\n  c\n\n> # d\n>\n> e\n\n```\nf\n```\n\n    g\n\n<div>\n",
        "\0 a\n\n# b\0\r\rc",
        "> - <?php x\n> ?>\n>  ",
        "```\na\n```X\n```\u00a0\nb\n``` \t\nc\n",
        "[a]:\n- 'b'\n",
        "x\n- <!-- a\n\n  -->\n  ```\n  b\n  ```\n<!-- c\n-->\nd\n\n<!-- e -->\nf\n\n> <!-- g\n# h -->\n",
        "> <b>\n***\n> a\n    <p>\n\n> d\n<div>\n\n> e\n```\nf\n```\n\n<http://g.h>\n\n> ~~~\n> i\n# j\n",
        "a\n> b\n\nc\n<div>\n\n[d]:\n>e\n\n[f]:\n~~~\n~~~\n\n[g]:\n<div>\n",
    ],
)
def test_blocks_are_those_of_markdown_it(text: str) -> None:
    assert parts_of(text) == parts_of_markdown_it(text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(PREFIX, LINES).map("".join), max_size=12).map("\n".join))
def test_blocks_are_parsed_one_by_one_as_all_at_once(text: str) -> None:
    assert parts_of(text) == parts_of_markdown_it(text, block_parser())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(PREFIX, LINES).map("".join), max_size=12).map("\n".join))
def test_blocks_without_tags_and_fences_are_those_of_commonmark(text: str) -> None:
    plain = text.replace("<", "").replace("```", "``")
    assert parts_of(plain) == parts_of_markdown_it(plain)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("| [c](d.md) |\n|---|\n| ![e](f.png)\n\n- [g](h)\n\n> [c](d.md)", ["d.md", "f.png", "h"]),
        ("[a](b.MD#c) [d](e.md?f=g) [h](i%20j.md) [k](l%20m.md)", ["b.MD", "e.md", "i j.md", "l m.md"]),
        ("[a](http://b.c/d.md) [e](//f.g/h.md) [i](/j.md) [k](mailto:l.md) [o]()", []),
        ("[a](http://[b/c.md) [d](e.md)", ["e.md"]),
        ("[a][b]\n\n[b]: c.md", ["c.md"]),
        ("> " * 64 + "[a]: b.md\n\n" + "> " * 65 + "[c]: d.md", ["b.md"]),
        ("```\n[a](b.md)\n```\n\n    [a](b.md)\n\n<div>[a](b.md)</div>", []),
        ("![[a](b.md)](c) [d](<e f.md>) [g](h(i).md) `[j](k.md)` ``[l](`m.md)`` [n](o&amp;p.md) [q](`r`)", ["b.md", "c", "e f.md", "h(i).md", "o&p.md"]),
    ],
)  # fmt: skip
def test_link_targets(text: str, paths: list[str]) -> None:
    assert link_targets(text) == paths


@pytest.mark.parametrize(
    ("inline", "title"),
    [
        ("*a* **b** `c` ~~d~~ _e_ __f__", "a b c d e f"),
        ("snake_case and _a_b_", "snake_case and a_b"),
        ("[a](b.md) ![c](d.png) [e][f] [g]", "a c e [g]"),
        ("a<br>b  \t\u00a0c <kbd>d</kbd> ", "ab c d"),
        ("a < b", "a < b"),
        ("é" * (MAX_TITLE + 1), "é" * MAX_TITLE),
    ],
)
def test_a_title_is_plain_text(inline: str, title: str) -> None:
    assert plain_text(inline) == title


def test_no_thread_sees_the_tables_of_addresses_half_filled() -> None:
    """They are whole once the module is imported, and an address of any kind adds none."""
    program = """
import skillpager.parsing.markdown
from markdown_it import MarkdownIt
from mdurl import _decode, _encode

tables = {**_decode.decode_cache}, {**_encode.encode_cache}
assert all(tables), tables
MarkdownIt().render("[a](http://ä.b/c%20d?x=y#h) <http://u@x.y/%61> <me@x.y> ![i](ö%C3.png)")
assert tables == (_decode.decode_cache, _encode.encode_cache)
"""
    subprocess.run([sys.executable, "-c", program], check=True)

"""Skills as HTML: every node is marked where it stands, and nothing that a skill brings can do harm."""

from collections import defaultdict
from html.parser import HTMLParser
from itertools import groupby
from pathlib import Path
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name

from conftest import SAMPLES, TRAPS
from skillpager.http.explorer.document import (
    LANGUAGES,
    MAX_COLORED_CHARS,
    MAX_INLINE_CHARS,
    Clock,
    highlight,
    render_file,
)
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import read_skill, skill_from_text
from skillpager.types import Fragment, Node, NodeType, Skill

DOCUMENTS = [*SAMPLES.iterdir(), *TRAPS.glob("*.md")]
VOID = {"br", "hr"}
_TAGS = "h1 h2 h3 h4 h5 h6 p span ul ol li blockquote pre code strong em a div table thead tbody tr th td"
TAGS = set(_TAGS.split())
ATTRIBUTES = {"class", "title", "href", "rel", "target", "start"}


class Reader(HTMLParser):
    """Reads HTML: tags, attributes, and the text of every node."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.texts: dict[str | None, str] = defaultdict(str)
        self._open: list[tuple[str, str | None]] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        outer = self._open[-1][1] if self._open else None
        if tag not in VOID:
            self._open.append((tag, dict(attrs).get("data-node") or outer))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts[self._open[-1][1] if self._open else None] += data


def nodes_of(skill: Skill) -> list[Node]:
    """Return the nodes of a skill, of one type; that is all that rendering needs."""
    return [
        Node(
            tile.kind,
            tile.span,
            tile.text,
            tile.ordinal,
            tile.heading_path,
            tile.list_context,
            id=f"n{tile.ordinal}",
            type=NodeType.STEP,
            type_confidence=1.0,
            tokens=1,
        )
        for tile in split_skill(skill)
        if isinstance(tile, Fragment)
    ]


def rendered(skill: Skill, seconds: float = 60) -> tuple[Reader, list[Node]]:
    """Return the HTML of all files, and the nodes; `seconds` is the time for markup."""
    nodes = nodes_of(skill)
    paths = {file.path for file in skill.files}
    clock = Clock(seconds)
    html = [
        render_file(file, [node for node in nodes if node.span.file == file.path], paths, clock)
        for file in skill.files
    ]
    return Reader("".join(html)), nodes


def read(markdown: str) -> Reader:
    return rendered(skill_from_text(markdown))[0]


def letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())


def is_within(part: str, whole: str) -> bool:
    """Tell whether `part` is `whole` with letters left out."""
    ahead = iter(whole)
    return all(letter in ahead for letter in part)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_node_has_its_own_text_and_no_other(path: Path) -> None:
    reader, nodes = rendered(read_skill(path))
    assert reader.texts.keys() - {None} == {node.id for node in nodes}
    for node in nodes:
        shown = letters(reader.texts[node.id])
        assert shown, node.text
        assert is_within(shown, letters(node.text)), (shown, node.text)
    assert reader.tags <= TAGS | VOID


PIECES = st.sampled_from(
    [
        "One. Two. Three.", "**Bold. Still bold.** Plain.", "_a. B._ C", "- item\n  - inner\n- last", "1. a\n\n   ```sh\n   ls\n   ```",
        "If so: see below:", "| a | b |\n|---|--:|\n| 1 | 2 |", "> quote\n> more", "```\ncode", "[x]: y", "[x]. [a. B](c.md). D",
        "# H", "Setext\n===", "<div>\n\n", "`a. B. c` D. E", "粗体。**后面。** 是", "\\", "&amp; &#65;", "---", "a.\u205fB. C.",
        "![a. B.](http://x/y.png) C.", "- - deep", "\tcode", "a  \nB. C", "<b>A. B.</b> C.", "\r\nA. \r\nB.", "* [ ] task",
    ]
)  # fmt: skip


@given(st.lists(st.tuples(PIECES, st.sampled_from(["\n", "\n\n", " ", ""])), min_size=1, max_size=12))
def test_every_node_of_any_document_is_marked(parts: list[tuple[str, str]]) -> None:
    skill = skill_from_text("# Skill\n\n" + "".join(piece + end for piece, end in parts))
    reader, nodes = rendered(skill)
    marked = {value for name, value in reader.attributes if name == "data-node"}
    assert marked == {node.id for node in nodes}
    assert reader.tags <= TAGS | VOID


def test_open_html_in_a_container_may_end_the_document() -> None:
    assert read("> - <?php x\n>  ").texts


def test_a_paragraph_is_cut_between_its_sentences_and_emphasis_goes_on() -> None:
    skill = skill_from_text("*Stop the server now. Then copy the files* to the disk. Start it again.")
    nodes = nodes_of(skill)
    html = render_file(skill.files[0], nodes, (), Clock(60))
    assert [node.text for node in nodes][1] == "Then copy the files* to the disk."
    assert html == (
        '<p><span data-node="n0"><em>Stop the server now.</em> </span>'
        '<span data-node="n1"><em>Then copy the files</em> to the disk. </span>'
        '<span data-node="n2">Start it again.</span></p>\n'
    )


def test_items_and_rows_are_marked_one_by_one() -> None:
    long = "word " * 40
    reader, nodes = rendered(
        skill_from_text(f"- first {long}\n- second {long}\n\n| a | b |\n|---|---|\n| c | d |\n")
    )
    assert reader.texts["n0"].startswith("first")
    assert reader.texts["n1"].startswith("second")
    assert letters(reader.texts["n2"]) == "abcd"
    assert len(nodes) == 3


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "text <img src=x onerror=alert(1)> text",
        "[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](data:text/html,<script>alert(1)</script>)",
        "[a](vbscript:x)", "[a](//evil.example/x)", "[a](/v1/skills)", "[a](file:///etc/passwd)", "<javascript:alert(1)>",
        "![a](http://evil.example/x.png)", '[a](http://x "\" onclick=\"alert(1)")', '```"><script>alert(1)</script>\nx\n```',
        "<svg/onload=alert(1)>", "[a]: javascript:alert(1)\n\n[a]", "<style>*{display:none}</style>", "| <b onclick=x> |\n|---|\n| <iframe> |",
        '`"><script>`', "\0<script>\0", "[a](http://[bad)", "# <script>alert(1)</script>",
    ],
)  # fmt: skip
def test_nothing_of_a_hostile_skill_is_markup(hostile: str) -> None:
    reader = read(f"# Skill\n\nBefore.\n\n{hostile}\n\nAfter.")
    assert reader.tags <= TAGS | VOID
    for name, value in reader.attributes:
        assert name in ATTRIBUTES or name.startswith("data-"), name
        if name == "href":
            assert value == "#" or value.startswith(("http://", "https://", "mailto:")), value
    assert "After." in reader.texts.values()


def test_links_lead_to_the_web_or_into_the_skill() -> None:
    reader, _ = rendered(read_skill(SAMPLES / "kubernetes-debugging"))
    assert ("data-file", "references/networking.md") in reader.attributes
    assert ("title", "other.md#x") in read("See [other](other.md#x).").attributes
    web = read("See [it](https://example.com/a).").attributes
    assert ("href", "https://example.com/a") in web
    assert ("rel", "noopener noreferrer nofollow") in web


def test_line_breaks_of_tables_and_alignment_are_kept() -> None:
    reader = read("| a | b |\n|---|--:|\n| c<br>d | e |\n")
    assert "br" in reader.tags
    assert ("class", "align-right") in reader.attributes
    assert "style" not in dict(reader.attributes)


@given(code=st.text(max_size=200), language=st.sampled_from(sorted(LANGUAGES)))
def test_colours_leave_code_as_it_is(code: str, language: str) -> None:
    code = code.replace("\r", "").replace("\0", "").lstrip("\ufeff") + "\n"  # as a fence holds it
    assert "".join(Reader(highlight(code, language, Clock(60))).texts.values()) == code


def test_known_languages_are_coloured_and_others_are_not() -> None:
    for language in LANGUAGES:
        get_lexer_by_name(language)
    assert '<span class="hl-k">def</span>' in highlight("def f(): ...", "Python", Clock(60))
    assert highlight("<b>", "no-such-language", Clock(60)) == "&lt;b&gt;"
    assert highlight("x = 1\n" * MAX_COLORED_CHARS, "python", Clock(60)).count("<span") == 0


def lexers() -> dict[str, str]:
    """Return one language for each lexer."""
    names = sorted(sorted(LANGUAGES), key=lambda name: type(get_lexer_by_name(name)).__name__)
    return {
        lexer: next(group)
        for lexer, group in groupby(names, key=lambda name: type(get_lexer_by_name(name)).__name__)
    }


# what patterns are slow at: a beginning, and what is repeated after it
HOSTILE_CODE = [
    ("", "\n"), ("a", " \n"), ("", " " * 99 + "a"), ("def ", "\n" * 99 + "a("), ("", '"'), ('"', "\\"), ("/*", "/*"),
    ("<<E\n", "漢"), ("", "a\n"), ("(", "("), ("{", "a: "), ("#", "#"), ("", "a "), ("<a ", "a"),
]  # fmt: skip


@pytest.mark.parametrize("language", lexers().values())
def test_hostile_code_costs_little_time(language: str) -> None:
    for beginning, unit in HOSTILE_CODE:
        code = (beginning + unit * MAX_COLORED_CHARS)[: MAX_COLORED_CHARS - 1] + "\n"
        before = thread_time()
        html = highlight(code, language, Clock(0.02))
        assert thread_time() - before < 3, (beginning, unit)
        assert "".join(Reader(html).texts.values()) == code


HOSTILE_MARKDOWN = {
    "sentences": "漢字。" * 20_000,
    "image beginnings": "![" * 15_000,
    "nested images": "![" * 5_000 + "](a)" * 5_000,
    "brackets": "[" * 60_000,
    "link beginnings": "[a](" * 15_000,
    "open emphasis": "*a_ " * 15_000,
    "nested emphasis of sentences": "**a _b " * 2_000 + "One. Two. " * 2_000 + "b_ a** " * 2_000,
    "paragraphs": "a b c\n\n" * 8_000,
    "quotes": "> " * 60 + "a\n" + "a\n" * 2_000,
    "definitions": "".join(f"[a{number}]: b\n" for number in range(6_000)),
    "square table": "|a" * 6_000 + "|\n" + "|-" * 6_000 + "|\n" + "|b\n" * 6_000,
    "code": "```c\na\n```\n" * 5_000,
}


@pytest.mark.parametrize("name", HOSTILE_MARKDOWN)
def test_hostile_markdown_costs_little_time_and_every_node_is_shown(name: str) -> None:
    skill = skill_from_text("# Skill\n\n" + HOSTILE_MARKDOWN[name])
    nodes = nodes_of(skill)
    before = thread_time()
    html = render_file(skill.files[0], nodes, (), Clock(0.3))
    assert thread_time() - before < 5
    assert html.count("Skill") == 1
    assert all(f'data-node="{node.id}"' in html for node in nodes)


@pytest.mark.parametrize("use", ["[a] ", "![a] "])
def test_the_target_of_a_definition_is_not_multiplied(use: str) -> None:
    text = f"[a]: https://example.com/{'x' * 20_000}\n\n" + use * 20_000
    assert (
        len(render_file((skill := skill_from_text(text)).files[0], nodes_of(skill), (), Clock(60)))
        < 3_000_000
    )


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_without_time_text_and_code_are_plain(path: Path) -> None:
    reader, nodes = rendered(read_skill(path), seconds=-60)
    assert reader.texts.keys() - {None} == {node.id for node in nodes}
    for node in nodes:
        assert is_within(letters(reader.texts[node.id]), letters(node.text)), node.text
    assert not reader.tags & {"a", "em"}


def test_a_paragraph_too_long_for_the_parser_is_plain() -> None:
    assert not read("word [a](b) " * MAX_INLINE_CHARS).tags & {"a"}

"""The CommonMark parser of the package: blocks, titles and links.

`skill` uses it to find the files that a skill links to, `blocks` to split them into pieces.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt, rules_block, rules_core
from markdown_it.common.utils import mdTrim
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import MAX_AUTOCOMPLETED_CELLS, escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from skillpager.errors import SkillError
from skillpager.parsing.lines import LINE_END

# with the default of markdown-it, 20, text in deeper containers would become a plain paragraph
MAX_NESTING = 64
# of links and images in each other; each level takes the parser another pass over the text
MAX_INLINE_NESTING = 8

# links of a longer paragraph are searched in parts, because the parser's time is not linear in its length
INLINE_WINDOW = 8_000

# the longest heading of 3,000 public skills has 604 characters
MAX_TITLE = 1_000

# of one list, quote or table: 133,000 short items of a list
MAX_TOKENS = 400_000

_MARKDOWN_PATH = re.compile(r"(?<![\w/.:-])[\w./-]*[\w-]\.(?:md|markdown)\b", re.IGNORECASE)
_LINK_TARGET = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_INLINE_MARKUP = re.compile(r"[`*~]+|(?<!\w)_+|(?<!_)_+(?!\w)|<[^>]+>")


class _State(StateBlock):
    """The state of a parse that keeps only the tokens that open a block or are one, as `parts`."""

    def __init__(self, text: str, parser: MarkdownIt, env: dict[str, Any]) -> None:
        super().__init__(text, parser, env, [])
        self.parts: list[Token] = []

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        # the tokens of a list of empty items take a hundred times its memory, so each is as small as can be
        self.level -= nesting < 0
        token = Token(ttype, tag, nesting, attrs=_NONE, meta=_NONE, level=self.level)
        self.level += nesting > 0
        if nesting >= 0:
            if len(self.parts) >= MAX_TOKENS:
                raise _TooManyTokensError
            self.parts.append(token)
        return token


# shared by all tokens: no rule in use changes attributes, each sets its own
_NONE: dict[str, Any] = {}


class _TooManyTokensError(Exception):
    """A block has more than `MAX_TOKENS` tokens."""


def _table(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Parse a table as markdown-it does, but with one token for each row instead of three for each cell.

    The rows of a table with few characters can have many cells, because missing ones are added.
    """
    if not rules_block.table(state, first, end, True):
        return False
    if silent:
        return True
    outer, state.parentType = state.parentType, "table"
    opening = state.push("table_open", "table", 1)
    header = _cells(state, first)
    _push_row(state, first, header)
    missing, line = 0, first + 2
    terminators = state.md.block.ruler.getRules("blockquote")
    while line < end and state.sCount[line] >= state.blkIndent:
        if any(rule(state, line, end, True) for rule in terminators):
            break
        if state.isEmpty(line) or state.is_code_block(line):
            break
        cells = _cells(state, line)
        missing += len(header) - len(cells)
        if missing > MAX_AUTOCOMPLETED_CELLS:
            break
        _push_row(state, line, cells[: len(header)])
        line += 1
    state.push("table_close", "table", -1)
    opening.map = [first, line]
    state.parentType, state.line = outer, line
    return True


def _cells(state: StateBlock, line: int) -> list[str]:
    """Return the cells that the source of a row has."""
    cells = escapedSplit(mdTrim(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]))
    cells = cells[cells[:1] == [""] :]
    return cells[: len(cells) - (cells[-1:] == [""])]


def _push_row(state: StateBlock, line: int, cells: list[str]) -> None:
    token = state.push("row", "", 0)
    token.map = [line, line + 1]
    token.meta = {"cells": [mdTrim(cell) for cell in cells]}


def _parser(max_nesting: int) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"maxNesting": max_nesting}).enable("table")
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


def parse_blocks(text: str, *, file: str = "The text", first_line: int = 1) -> Iterator[list[Token]]:
    """Yield the tokens of each top-level block: CommonMark with tables, inline content left unparsed.

    There are no closing tokens: the level of a token says how deep it is. Definitions of links have none.

    Args:
        text: Markdown.
        file: Path that the error names.
        first_line: Number of the first line of `text` in the file.

    Raises:
        SkillError: A block has too many parts.
    """
    yield from _blocks(_parser(MAX_NESTING), {}, text, file, first_line)


def _blocks(
    parser: MarkdownIt, env: dict[str, Any], text: str, file: str, first_line: int
) -> Iterator[list[Token]]:
    # as `MarkdownIt.parse` does, but block by block, so that memory holds the tokens of one
    state = _State(with_last_line_end(LINE_END.sub("\n", text)).replace("\0", "\ufffd"), parser, env)
    rules = parser.block.ruler.getRules("")
    line = state.skipEmptyLines(0)
    while line < state.lineMax:
        state.line = line
        try:
            for rule in rules:  # the last one, that of paragraphs, always matches
                if rule(state, line, state.lineMax, False):
                    break
        except _TooManyTokensError:
            raise SkillError(
                f"{file}:{first_line + line} begins a list, quote or table with more than {MAX_TOKENS:,} "
                "parts: divide it, or page a smaller file."
            ) from None
        if state.parts:
            parts, state.parts = state.parts, []
            yield parts
        line = state.skipEmptyLines(state.line)


def with_last_line_end(text: str) -> str:
    """Return a text with a last line end: without, markdown-it fails at open HTML in a list or quote."""
    return text if text.endswith("\n") else f"{text}\n"


def linked_paths(text: str, *, file: str = "The text", first_line: int = 1) -> list[str]:
    """Return the relative paths of Markdown files that a text links to or names, in order, each once.

    Paths are found in links, in inline code and in plain text (authors write all three), but not in code
    blocks. URL fragments and queries are cut off; absolute paths and targets with a scheme are left out.

    Args:
        text: Markdown.
        file: Path that the error names.
        first_line: Number of the first line of `text` in the file.

    Raises:
        SkillError: A block has too many parts.
    """
    parser, env = _parser(MAX_NESTING), dict[str, Any]()
    inline = [
        part
        for tokens in _blocks(parser, env, text, file, first_line)
        for token in tokens
        for content in ([token.content] if token.type == "inline" else token.meta.get("cells", ()))
        for part in _windows(content)
        if part
    ]
    parser.options["maxNesting"] = MAX_INLINE_NESTING
    found: list[str] = []
    for child in (child for part in inline for child in _parse_inline(part, parser, env)):
        if child.type in ("text", "code_inline"):
            found += _MARKDOWN_PATH.findall(child.content)
        elif child.type == "link_open":
            try:
                target = urlsplit(str(child.attrGet("href") or ""))
            except ValueError:
                continue
            path = unquote(target.path)
            if not target.scheme and not target.netloc and path.lower().endswith((".md", ".markdown")):
                found.append(path)
    return list(dict.fromkeys(path for path in found if not path.startswith("/")))


def _parse_inline(text: str, parser: MarkdownIt, env: dict[str, Any]) -> list[Token]:
    children: list[Token] = []
    state = StateCore("", parser, env, [Token("inline", "", 0, content=text, children=children)])
    rules_core.inline(state)
    rules_core.text_join(state)
    return state.tokens[0].children or []


def _windows(inline: str) -> Iterator[str]:
    """Yield inline Markdown in parts of at most `INLINE_WINDOW` characters, cut after a blank if possible."""
    begin = 0
    while len(inline) - begin > INLINE_WINDOW:
        limit = begin + INLINE_WINDOW
        blank = max(inline.rfind(" ", begin, limit), inline.rfind("\n", begin, limit))
        end = blank + 1 or limit
        yield inline[begin:end]
        begin = end
    yield inline[begin:]


def plain_text(inline: str) -> str:
    """Return inline Markdown without links, emphasis, code ticks and tags, white space collapsed.

    Only the first `MAX_TITLE` characters are read: titles stand above every node of their section.
    """
    return " ".join(_INLINE_MARKUP.sub("", _LINK_TARGET.sub(r"\1", inline[:MAX_TITLE])).split())

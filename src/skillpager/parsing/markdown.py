"""The Markdown parser of the package: blocks, titles and links.

It reads CommonMark with tables, except where authors of skills mean something else (`docs/design.md`): code
fences inside tags, fences in lists whose code is not indented, and very deep nesting.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt, rules_block
from markdown_it.common.normalize_url import normalizeLink, normalizeLinkText
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.html_block import HTML_SEQUENCES
from markdown_it.token import Token

from skillpager.errors import SkillError
from skillpager.parsing.lines import LINE_END

# The parser fills tables of characters when it first reads an address, and shows them to other threads
# before they are whole: so they are filled here, by the one thread that imports this module.
normalizeLink("")
normalizeLinkText("")

# of lists and quotes; a list counts twice, because its items do. The markers of deeper ones are text
MAX_NESTING = 64
# the longest heading of 3,000 public skills has 604 characters
MAX_TITLE = 1_000

# of one list, quote or table: 133,000 short items of a list
MAX_TOKENS = 400_000

_CODE_SPAN = re.compile(r"(?<!`)(`{1,8})(?!`).{1,2000}?(?<!`)\1(?!`)", re.DOTALL)  # bounded, so linear
# behind the text of a link: its address, perhaps in angle brackets
_TARGET = re.compile(r"\]\(\s*(?:<([^<>\n]*)>|((?:[^\s()]|\([^\s()]*\))*))")
_LINK_TARGET = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
# no language begins with a closing bracket or star: with one, the line ends a code span of several lines
_OPENING_FENCE = re.compile(
    r"(?P<markup>`{3,}(?=[^`]*\Z)|~{3,})(?P<info>(?![ \t]*[)\]）】」』*]).*)", re.DOTALL
)
# at any depth of quotes and lists
_ANY_FENCE = re.compile(r"(?:[ \t]|[>*+-]|\d{1,9}[.)])*(?:`{3}|~{3})")
_INLINE_MARKUP = re.compile(r"[`*~]+|(?<!\w)_+|(?<!_)_+(?!\w)|<[^>]+>")


class _State(StateBlock):
    """The state of a parse that keeps only the tokens that open a block or are one, as `parts`."""

    def __init__(self, text: str, parser: MarkdownIt, env: dict[str, Any]) -> None:
        super().__init__(text, parser, env, [])
        self.parts: list[Token] = []

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        # the tokens of a list of empty items take a hundred times its memory, so each is as small as can be
        self.level -= nesting < 0
        if ttype in ("td_close", "th_close") and not self.parts[-1].content:
            del self.parts[-2:]  # an empty cell: the parser fills up every short row of a wide table
        token = Token(ttype, tag, nesting, attrs=_NONE, meta=_NONE, level=self.level)
        self.level += nesting > 0
        if nesting >= 0:
            if len(self.parts) >= MAX_TOKENS:
                raise _TooManyTokensError
            self.parts.append(token)
        return token


_BlockRule = Callable[[StateBlock, int, int, bool], bool]

# shared by all tokens: no rule in use changes attributes, each sets its own
_NONE: dict[str, Any] = {}


class _TooManyTokensError(Exception):
    """A block has more than `MAX_TOKENS` tokens."""


def _line(state: StateBlock, line: int) -> str:
    """Return a line of a block without its indentation."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _fence(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Parse a code fence as CommonMark does, except that its code may lack the indentation of a list item."""
    opening = _OPENING_FENCE.match(_line(state, first))
    if not opening or state.is_code_block(first):
        return False
    if silent:
        return True
    markup, behind, closed = opening["markup"], first + 1, False
    while behind < end and not closed and (state.sCount[behind] >= state.blkIndent or state.isEmpty(behind)):
        closed = _closes(_line(state, behind), markup) and not state.is_code_block(behind)
        behind += 1
    if not closed and not state.isEmpty(behind - 1):
        behind = _behind_unindented(state, behind, markup) or behind
    state.line = behind
    state.push("fence", "code", 0).map = [first, behind]
    return True


def _closes(text: str, markup: str) -> bool:
    """Return whether a line without indentation closes the fence that `markup` opens."""
    run = text.rstrip(" \t")
    return len(run) >= len(markup) and not run.strip(markup[0])


def _behind_unindented(state: StateBlock, line: int, markup: str) -> int | None:
    """Return the line after the closing fence of code that lacks the indentation or marks of its container.

    In CommonMark the list item or quote ends at such a `line`, the closing fence opens another one, and all
    text behind it is inverted. The author means code if it goes on without a blank line, and if the next line
    with a fence closes one.
    """
    if "fences" not in state.env:
        lines = enumerate(state.src.split("\n"))
        state.env["fences"] = [number for number, text in lines if _ANY_FENCE.match(text)]
    fences = state.env["fences"]
    place = bisect_left(fences, line)
    if place == len(fences) or not _closes(_line(state, fences[place]), markup):
        return None
    return int(fences[place]) + 1


def _html_block(state: StateBlock, first: int, end: int, silent: bool) -> bool:
    """Parse a block of HTML as CommonMark does, unless Markdown follows a tag, or the block is never closed.

    Behind a line that is a tag, a heading, list, table or code fence ends the block, as it ends a paragraph.
    Comments and elements such as `<pre>` hold all text until they are closed; if they never are, they are
    read like any other tag.
    """
    text = _line(state, first)
    if not text.startswith("<") or state.is_code_block(first):
        return False
    kinds = (kind for kind in HTML_SEQUENCES if kind[0].search(text))
    _, closing, interrupts = next(kinds, (None, None, False))
    if silent or closing is None:
        return interrupts
    ends_at_blank_line = bool(closing.search(""))
    behind = None if ends_at_blank_line else _behind_closing(state, first, end, closing)
    if behind is None:
        behind = first + 1
        while behind < end and not state.isEmpty(behind) and state.sCount[behind] >= state.blkIndent:
            if _interrupts_html(state, behind, end):
                break
            behind += 1
    state.line = behind
    state.push("html_block", "", 0).map = [first, behind]
    return True


def _behind_closing(state: StateBlock, first: int, end: int, closing: re.Pattern[str]) -> int | None:
    """Return the line after the first one that matches `closing`; None if the container ends before."""
    if closing.search(_line(state, first)):
        return first + 1
    # no line is searched twice, however many comments are opened and none closed
    without = state.env.setdefault("without", {})
    begin, behind = without.get(closing, (0, 0))
    line = behind if begin <= first < behind else first + 1
    while line < end and (state.sCount[line] >= state.blkIndent or state.isEmpty(line)):
        if closing.search(_line(state, line)):
            return line + 1
        line += 1
    without[closing] = (first, line)
    return None


def _interrupts_html(state: StateBlock, line: int, end: int) -> bool:
    """Return whether a line begins a heading, list, table or code fence."""
    outer, state.parentType = state.parentType, "paragraph"
    found = any(rule(state, line, end, True) for rule in _BELOW_TAGS)
    state.parentType = outer
    return found


def _bounded(rule: _BlockRule) -> _BlockRule:
    """Return a rule of a container that reads none deeper than `MAX_NESTING`.

    markdown-it's own limit would end the document there.
    """
    return lambda state, first, end, silent: state.level < MAX_NESTING and rule(state, first, end, silent)


_list = _bounded(rules_block.list_block)
_BELOW_TAGS = (_fence, rules_block.heading, _list, rules_block.table)


def block_parser() -> MarkdownIt:
    """Return a parser of the Markdown that skills are written in."""
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING + 3}).enable("table")
    rules = parser.block.ruler
    rules.at("fence", _fence, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    rules.at("html_block", _html_block, {"alt": ["paragraph", "reference", "blockquote"]})
    rules.at("list", _list, {"alt": ["paragraph", "reference", "blockquote"]})
    quote = _bounded(rules_block.blockquote)
    rules.at("blockquote", quote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return parser


def parse_blocks(
    text: str, *, file: str = "The text", first_line: int = 1, env: dict[str, Any] | None = None
) -> Iterator[list[Token]]:
    """Yield the tokens of each top-level block: CommonMark with tables, inline content left unparsed.

    There are no closing tokens: the level of a token says how deep it is. Definitions of links have none;
    `env` collects them, as in markdown-it. A block of too many parts is a `SkillError` with file and line.
    """
    # as `MarkdownIt.parse` does, but block by block, so that memory holds the tokens of one
    parser = block_parser()
    source = LINE_END.sub("\n", text).replace("\0", "\ufffd")
    if not source.endswith("\n"):  # without, markdown-it fails at open HTML in a list or quote
        source += "\n"
    state = _State(source, parser, {} if env is None else env)
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


def link_targets(text: str, *, file: str = "The text", first_line: int = 1) -> list[str]:
    """Return the relative paths that the links and images of a text lead to, each once.

    URL fragments and queries are cut off; absolute paths and targets with a scheme are left out. The
    arguments and errors are those of `parse_blocks`.
    """
    env: dict[str, Any] = {}
    blocks = parse_blocks(text, file=file, first_line=first_line, env=env)
    inline = (token.content for tokens in blocks for token in tokens if token.type == "inline")
    plain = [_CODE_SPAN.sub("", part) for part in inline]
    found = [match[1] or match[2] or "" for part in plain for match in _TARGET.finditer(part)]
    found += [definition["href"] for definition in env.get("references", {}).values()]
    paths = map(_relative_path, dict.fromkeys(found))
    return list(dict.fromkeys(path for path in paths if path and not path.startswith("/")))


def _relative_path(address: str) -> str:
    """Return the path that an address names; empty if that is no file beside the text."""
    try:
        target = urlsplit(unescape(address))
    except ValueError:
        return ""
    return "" if target.scheme or target.netloc else unquote(target.path)


def plain_text(inline: str) -> str:
    """Return inline Markdown without links, emphasis, code ticks and tags, white space collapsed.

    Only the first `MAX_TITLE` characters are read: titles stand above every node of their section.
    """
    return " ".join(_INLINE_MARKUP.sub("", _LINK_TARGET.sub(r"\1", inline[:MAX_TITLE])).split())

"""A skill's files as HTML; the elements of each node carry its id as `data-node`.

The parser is the splitter's, so blocks are the same. A node may be several elements, such as the end of a
paragraph and the list that it introduces. Skills are untrusted: raw HTML is shown as text, links lead only
to the web or into the skill, images are named and not loaded. A request may spend a limited processor time
on markup and colors; what is left then is shown as plain text, marked all the same.
"""

import posixpath
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from html import escape
from io import StringIO
from itertools import pairwise
from time import thread_time
from urllib.parse import unquote, urlsplit

from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from skillpager.parsing.frontmatter import find_front_matter
from skillpager.parsing.lines import Lines
from skillpager.parsing.markdown import block_parser, with_last_line_end
from skillpager.types import Node, SkillIndex, SourceFile

SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
NODE = "data-node"
# lexers match untrusted text against many patterns, so only the languages of skills are colored, and no
# long text
_NAMES = """
    bash c console cpp css csharp diff docker dockerfile go graphql groovy hcl html http ini java javascript
    js json jsx kotlin lua make makefile nginx perl php powershell properties ps1 py python r rb ruby rust
    sh shell shell-session sql swift terraform toml ts tsx typescript xml yaml yml zsh
"""
LANGUAGES = frozenset(_NAMES.split())
MAX_COLORED_CHARS = 5_000
# no code has such runs, but patterns that end with white space try every way to divide them
_WIDE_SPACE = re.compile(r"\s{100}")
# a longer stretch of a paragraph is shown as it is: the parser cannot be stopped within one
MAX_INLINE_CHARS = 20_000
# processor time for one request: as a share of the skill's size, within limits. An ordinary skill takes about
# a fifth of it
SECONDS_PER_CHAR = 1 / 100_000
MIN_SECONDS = 1.0
MAX_SECONDS = 3.0
# a link definition is written once and used often: the targets of all links of a file may have as many
# characters as the file, and these (cmark's limit)
FREE_TARGET_CHARS = 100_000
_VISIBLE = re.compile(r"\S")
_OPEN_EMPHASIS = re.compile(r"\*[^*\s][^*]*")
Attributes = dict[str, str | int | float]
_LINE_BREAKS = frozenset({"<br>", "<br/>", "<br />"})


class Clock:
    """A limit on the processor time of this thread; how busy the machine is does not matter."""

    def __init__(self, seconds: float) -> None:
        self._end = thread_time() + seconds

    @property
    def ended(self) -> bool:
        """Whether the time is spent."""
        return thread_time() > self._end


def render_skill(index: SkillIndex) -> list[dict[str, str]]:
    """Return for every file its path, its unchanged front matter, and its body as HTML."""
    files = index.skill.files
    paths = {file.path for file in files}
    size = sum(len(file.text) for file in files)
    clock = Clock(min(MAX_SECONDS, max(MIN_SECONDS, size * SECONDS_PER_CHAR)))
    nodes: dict[str, list[Node]] = defaultdict(list)
    for node in index.nodes:
        nodes[node.span.file].append(node)
    return [
        {
            "path": file.path,
            "front_matter": file.text[slice(*find_front_matter(file.text))],
            "html": render_file(file, nodes[file.path], paths, clock),
        }
        for file in files
    ]


def render_file(file: SourceFile, nodes: Sequence[Node], paths: Collection[str], clock: Clock) -> str:
    """Return the body of a file as HTML.

    Args:
        file: The file.
        nodes: Its nodes, in document order.
        paths: Paths of all files of the skill, which links may lead to.
        clock: The time for its markup; what is not rendered in it is shown as text.
    """
    marker = _Marker(file, nodes)
    parser = block_parser(_Renderer)
    parser.core.ruler.at("inline", _mark_nodes)
    env: EnvType = {
        "marker": marker,
        "paths": paths,
        "file": file.path,
        "clock": clock,
        "target_chars": len(file.text) + FREE_TARGET_CHARS,
    }
    tokens = parser.parse(with_last_line_end(file.text[file.body_start :]), env)
    blocks: list[tuple[int, str]] = []
    start = 0
    for place, token in enumerate(tokens, 1):
        if token.level == 0 and token.nesting <= 0:  # a top-level block ends
            block = tokens[start:place]
            blocks.append((marker.offset(block[0]), parser.renderer.render(block, parser.options, env)))
            start = place
    # a node that CommonMark gives no element, such as a link definition, is shown as its source
    blocks += [
        (node.span.start, f'<pre class="source" {NODE}="{node.id}"><code>{escape(node.text)}</code></pre>\n')
        for node in nodes
        if node.id not in marker.marked
    ]
    return "".join(html for _, html in sorted(blocks, key=lambda block: block[0]))


class _Marker:
    """Maps offsets in a file to nodes, and records which nodes got an element."""

    def __init__(self, file: SourceFile, nodes: Sequence[Node]) -> None:
        self.marked: set[str] = set()
        self._text = file.text
        self._body_start = file.body_start
        self._lines = Lines(file.text[file.body_start :])
        self._nodes = nodes
        self._starts = [node.span.start for node in nodes]

    def offset(self, token: Token) -> int:
        """Return the offset of a block's first character that is not white space."""
        first, _ = token.map or (0, 0)
        found = _VISIBLE.search(self._text, self._body_start + self._lines.start(first))
        return found.start() if found else len(self._text)

    def attributes(self, offset: int) -> Attributes:
        """Return the attribute that names the node at an offset."""
        place = bisect_right(self._starts, offset) - 1
        if place < 0 or offset >= self._nodes[place].span.end:
            return {}
        self.marked.add(self._nodes[place].id)
        return {NODE: self._nodes[place].id}

    def parts(self, paragraph: Token, content: str) -> Iterator[tuple[Attributes, str]]:
        """Yield for each node of a paragraph the attribute that names it, and its part of the content."""
        _, behind = paragraph.map or (0, 0)
        start, end = self.offset(paragraph), self._body_start + self._lines.start(behind)
        inside = self._starts[bisect_right(self._starts, start) : bisect_left(self._starts, end)]
        # count letters, because white space differs from the source
        places = [place for place, character in enumerate(content) if not character.isspace()]
        letters = cut = 0
        for one, other in pairwise([start, *(inside if paragraph.level == 0 else [])]):
            letters += len("".join(self._text[one:other].split()))
            before, cut = cut, places[letters] if letters < len(places) else len(content)
            yield self.attributes(one), content[before:cut]
            start = other
        yield self.attributes(start), content[cut:]


def _mark_nodes(state: StateCore) -> None:
    """Add the node id to every block, and parse the text of blocks, that of each node for itself."""
    marker, clock = state.env["marker"], state.env["clock"]
    opening = Token("", "", 0)
    for token in state.tokens:
        if token.type in ("fence", "code_block", "html_block", "tr_open"):
            token.attrs.update(marker.attributes(marker.offset(token)))
        elif token.type in ("td_open", "th_open") and (style := token.attrs.pop("style", None)):
            token.attrSet("class", str(style).replace("text-align:", "align-"))
        elif token.type == "heading_open":
            token.attrSet("data-heading", token.tag[1])
        elif token.type == "inline":
            token.children = []
            star = ""  # emphasis of several nodes ends with each, and begins again
            is_paragraph = opening.type == "paragraph_open"
            for attributes, text in (
                marker.parts(opening, token.content) if is_paragraph else [({}, token.content)]
            ):
                inner: list[Token] = []
                if clock.ended or len(text) > MAX_INLINE_CHARS:
                    inner = [Token("text", "", 0, content=text)]
                else:
                    body, tail = star + text.rstrip(), text[len(text.rstrip()) :]
                    star = "*" if is_paragraph and _OPEN_EMPHASIS.fullmatch(body) else ""
                    state.md.inline.parse(body + star + tail, state.md, state.env, inner)
                if is_paragraph:
                    first = Token("node_open", "span", 1, attrs=attributes)
                    inner = [first, *inner, Token("node_close", "span", -1)]
                token.children += inner
        opening = token


class _Renderer(RendererHTML):
    """Renders code in colors, HTML and images as text, and only links to the web or into the skill."""

    def fence(self, tokens: Sequence[Token], idx: int, _: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        language = token.info.split()[0] if token.info.split() else ""
        label = f' data-language="{escape(language)}"' if language else ""
        code = highlight(token.content, language, env["clock"])
        return f"<pre{self.renderAttrs(token)}{label}><code>{code}</code></pre>\n"

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self.fence(tokens, idx, options, env)

    def html_block(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        token = tokens[idx]
        return f'<pre class="html"{self.renderAttrs(token)}><code>{escape(token.content)}</code></pre>\n'

    def html_inline(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        content = tokens[idx].content
        return "<br>" if content.lower() in _LINE_BREAKS else f'<code class="html">{escape(content)}</code>'

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        source = str(token.attrGet("src") or "")
        title = escape(source) if _may_show(source, env) else ""
        alt = escape(self.renderInlineAsText(token.children or [], options, env))
        return f'<span class="image" title="{title}">{alt or "image"}</span>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        tokens[idx].attrs = _link(str(tokens[idx].attrGet("href") or ""), env)
        return self.renderToken(tokens, idx, options, env)

    def table_open(self, *_: object) -> str:
        return '<div class="table"><table>\n'

    def table_close(self, *_: object) -> str:
        return "</table></div>\n"


def _link(href: str, env: EnvType) -> Attributes:
    """Return the attributes of a link; it leads nowhere but to the web and to files of the skill."""
    if not _may_show(href, env):
        return {"class": "link"}
    with suppress(ValueError):  # not a URL
        parts = urlsplit(href)
        if parts.scheme.lower() in SAFE_SCHEMES:
            return {"href": href, "rel": "noopener noreferrer nofollow", "target": "_blank"}
        path = posixpath.normpath(posixpath.join(posixpath.dirname(env["file"]), unquote(parts.path)))
        if not parts.scheme and not parts.netloc and parts.path and path in env["paths"]:
            return {"href": "#", "data-file": path}
    return {"class": "link", "title": href}


def _may_show(target: str, env: EnvType) -> bool:
    """Count the characters of a target; return False once a file has too many."""
    env["target_chars"] -= len(target)
    return bool(env["target_chars"] >= 0)


def highlight(code: str, language: str, clock: Clock) -> str:
    """Return `code` escaped, its parts in `span` elements if its language is one of `LANGUAGES`.

    It stays plain if it is too long or has long runs of white space, or if the time is spent before its end.
    """
    name = language.lower()
    if name not in LANGUAGES or len(code) > MAX_COLORED_CHARS or _WIDE_SPACE.search(code):
        return escape(code)
    parts = []
    for part in _lexer(name).get_tokens(code):
        if clock.ended:
            return escape(code)
        parts.append(part)
    if "".join(text for _, text in parts) != code:  # the lexer of HCL repeats lines of an open heredoc
        return escape(code)
    formatter: HtmlFormatter[str] = HtmlFormatter(nowrap=True, classprefix="hl-")
    colored = StringIO()
    formatter.format(parts, colored)
    return colored.getvalue()


@cache
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name, stripnl=False, ensurenl=False)

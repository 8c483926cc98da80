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
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cache
from html import escape
from io import StringIO
from itertools import accumulate, pairwise
from time import thread_time
from urllib.parse import unquote, urlsplit

from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from skillpager.parsing.frontmatter import find_front_matter
from skillpager.parsing.lines import Lines
from skillpager.parsing.markdown import MAX_NESTING, block_parser, with_last_line_end
from skillpager.types import Node, SkillIndex, SourceFile

# inserted into a paragraph where its next node begins: white space to CommonMark, and hardly ever written
BOUNDARY = "\u205f"
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
# processor time for one request: as a share of the skill's size, within limits. An ordinary skill takes about
# a fifth of it
SECONDS_PER_CHAR = 1 / 100_000
MIN_SECONDS = 1.0
MAX_SECONDS = 3.0
# a link definition is written once and used often: the targets of all links of a file may have as many
# characters as the file, and these (cmark's limit)
FREE_TARGET_CHARS = 100_000
# of the time that is left, the part in which the blocks of a file must be found: to render them takes longer
BLOCKS_SHARE = 0.3
_VISIBLE = re.compile(r"\S")
Attributes = dict[str, str | int | float]
_LINE_BREAKS = frozenset({"<br>", "<br/>", "<br />"})


class Clock:
    """A limit on the processor time of this thread; how busy the machine is does not matter."""

    def __init__(self, seconds: float) -> None:
        """Start with so many seconds left."""
        self._end = thread_time() + seconds

    @property
    def left(self) -> float:
        """Seconds left; negative once the time is spent."""
        return self._end - thread_time()


class _BlocksError(Exception):
    """The time for the blocks of a file is spent."""


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
    parser.block.ruler.before("table", "clock", _stop_blocks)
    parser.inline.ruler.before("text", "clock", _stop_inline)
    parser.core.ruler.before("inline", "boundaries", _set_boundaries)
    parser.core.ruler.push("nodes", _mark_nodes)
    env: EnvType = {
        "marker": marker,
        "paths": paths,
        "file": file.path,
        "clock": clock,
        "blocks": Clock(clock.left * BLOCKS_SHARE),
        "target_chars": len(file.text) + FREE_TARGET_CHARS,
    }
    try:
        tokens = parser.parse(with_last_line_end(file.text[file.body_start :]), env)
    except _BlocksError:
        return _source(file, nodes)
    blocks: list[tuple[int, str]] = []
    start = 0
    for place, token in enumerate(tokens, 1):
        if token.level == 0 and token.nesting <= 0:  # a top-level block ends
            block = tokens[start:place]
            blocks.append((marker.offset(block[0]), parser.renderer.render(block, parser.options, env)))
            start = place
    # a node that CommonMark gives no element, such as a link definition, is shown as its source
    blocks += [(node.span.start, _pre(node.text, node)) for node in nodes if node.id not in marker.marked]
    return "".join(html for _, html in sorted(blocks, key=lambda block: block[0]))


def _source(file: SourceFile, nodes: Sequence[Node]) -> str:
    """Return the body of a file as its source, one element for each node and each text between nodes."""
    parts = []
    end = file.body_start
    for node in nodes:
        parts += [_pre(file.text[end : node.span.start]), _pre(node.text, node)]
        end = node.span.end
    return "".join([*parts, _pre(file.text[end:])])


def _pre(text: str, node: Node | None = None) -> str:
    """Return text as an element that shows it as it is; nothing if it is blank."""
    name = f' {NODE}="{node.id}"' if node else ""
    return f'<pre class="source"{name}><code>{escape(text)}</code></pre>\n' if text.strip() else ""


def _stop_blocks(state: StateBlock, _start: int, _end: int, _silent: bool) -> bool:
    """Give up a file if the time for its blocks is spent; otherwise the next rule reads the block."""
    if state.env["blocks"].left < 0:
        raise _BlocksError
    return False


def _stop_inline(state: StateInline, silent: bool) -> bool:
    """Read the rest of a paragraph as text if the time is spent; otherwise the next rule reads it."""
    if state.env["clock"].left > 0:
        return False
    if not silent:
        state.pending += state.src[state.pos : state.posMax]
    state.pos = state.posMax
    return True


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

    def attributes(self, token: Token) -> Attributes:
        """Return the attribute that names the node in which a block begins."""
        return self._named(self.offset(token))

    def parts(self, token: Token) -> list[tuple[int, Attributes]]:
        """Return for each node of a paragraph the count of letters before it, and the attribute naming it."""
        _, behind = token.map or (0, 0)
        start, end = self.offset(token), self._body_start + self._lines.start(behind)
        inside = self._starts[bisect_right(self._starts, start) : bisect_left(self._starts, end)]
        offsets = [start, *(inside if token.level == 0 else [])]
        lengths = (len("".join(self._text[one:other].split())) for one, other in pairwise(offsets))
        return list(zip(accumulate(lengths, initial=0), map(self._named, offsets), strict=True))

    def _named(self, offset: int) -> Attributes:
        place = bisect_right(self._starts, offset) - 1
        if place < 0 or offset >= self._nodes[place].span.end:
            return {}
        self.marked.add(self._nodes[place].id)
        return {NODE: self._nodes[place].id}


def _set_boundaries(state: StateCore) -> None:
    """Insert a boundary into each paragraph where another node begins, before it is parsed."""
    for opening, token in pairwise(state.tokens):
        if token.type == "inline" and opening.type == "paragraph_open":
            token.meta["parts"] = parts = state.env["marker"].parts(opening)
            content = token.content.replace(BOUNDARY, " ")
            # count letters, because white space differs from the source
            places = [place for place, character in enumerate(content) if not character.isspace()]
            cuts = [places[letters] for letters, _ in parts[1:] if letters < len(places)]
            token.content = BOUNDARY.join(
                content[start:end] for start, end in pairwise([0, *cuts, len(content)])
            )


def _mark_nodes(state: StateCore) -> None:
    """Add the node id to every block and every part of a paragraph; replace unsafe links and styles."""
    for token in state.tokens:
        if token.type in ("fence", "code_block", "html_block", "tr_open"):
            token.attrs.update(state.env["marker"].attributes(token))
        elif token.type in ("td_open", "th_open") and (style := token.attrs.pop("style", None)):
            token.attrSet("class", str(style).replace("text-align:", "align-"))
        elif token.type == "heading_open":
            token.attrSet("data-heading", token.tag[1])
        elif token.type == "inline" and token.children:
            _restrict_links(token.children, state.env)
            if "parts" in token.meta:
                token.children = _with_parts(token, state)


def _with_parts(paragraph: Token, state: StateCore) -> list[Token]:
    """Return the content of a paragraph with one element for each of its nodes."""
    parts = [attributes for _, attributes in paragraph.meta["parts"]]
    children = paragraph.children or []
    found = sum(child.content.count(BOUNDARY) for child in children if child.type == "text")
    depth = max(accumulate((child.nesting for child in children), initial=0))
    if found == len(parts) - 1 and depth <= MAX_NESTING:
        return _split(children, parts)
    # a boundary fell into a link or code, or all that is open would be opened again for each part: parse each
    # part separately
    sources = paragraph.content.split(BOUNDARY)
    read = [state.md.parseInline(source, state.env)[0].children or [] for source in sources]
    return [token for inner, part in zip(read, parts, strict=False) for token in _split(inner, [part])]


def _split(children: Sequence[Token], parts: Sequence[Attributes]) -> list[Token]:
    """Return inline tokens, one `span` per part; emphasis across a boundary is closed and opened again."""
    ahead = iter(parts)
    result = [_span(next(ahead))]
    opened: list[Token] = []
    for child in children:
        texts = child.content.split(BOUNDARY) if child.type == "text" else [""]
        if len(texts) == 1:
            result.append(child)
            if child.nesting > 0:
                opened.append(child)
            elif child.nesting < 0:
                opened.pop()
            continue
        for number, text in enumerate(texts):
            if number:
                closing = [Token(f"{token.type}_end", token.tag, -1) for token in reversed(opened)]
                result += [*closing, Token("node_close", "span", -1), _span(next(ahead)), *opened]
            result.append(Token("text", "", 0, content=text))
    return [*result, Token("node_close", "span", -1)]


def _span(attributes: Attributes) -> Token:
    return Token("node_open", "span", 1, attrs=dict(attributes))


def _restrict_links(children: Sequence[Token], env: EnvType) -> None:
    """Replace every link that leads neither to the web nor to a file of the skill by a `span`."""
    opened: list[Token] = []
    for token in children:
        if token.type == "link_open":
            token.tag, token.attrs = _link(str(token.attrGet("href") or ""), env)
            opened.append(token)
        elif token.type == "link_close":
            token.tag = opened.pop().tag


def _link(href: str, env: EnvType) -> tuple[str, Attributes]:
    """Return the element and attributes for a link."""
    if not _may_show(href, env):
        return "span", {"class": "link"}
    with suppress(ValueError):  # not a URL
        parts = urlsplit(href)
        if parts.scheme.lower() in SAFE_SCHEMES:
            return "a", {"href": href, "rel": "noopener noreferrer nofollow", "target": "_blank"}
        path = posixpath.normpath(posixpath.join(posixpath.dirname(env["file"]), unquote(parts.path)))
        if not parts.scheme and not parts.netloc and parts.path and path in env["paths"]:
            return "a", {"href": "#", "data-file": path}
    return "span", {"class": "link", "title": href}


def _may_show(target: str, env: EnvType) -> bool:
    """Count the characters of a target; return False once a file has too many."""
    env["target_chars"] -= len(target)
    return bool(env["target_chars"] >= 0)


class _Renderer(RendererHTML):
    """Renders code in colors, and HTML and images as text."""

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

    def table_open(self, *_: object) -> str:
        return '<div class="table"><table>\n'

    def table_close(self, *_: object) -> str:
        return "</table></div>\n"


def highlight(code: str, language: str, clock: Clock) -> str:
    """Return `code` escaped, its parts in `span` elements if its language is one of `LANGUAGES`.

    It stays plain if it is too long or has long runs of white space, or if the time is spent before its end.
    """
    name = language.lower()
    if name not in LANGUAGES or len(code) > MAX_COLORED_CHARS or _WIDE_SPACE.search(code):
        return escape(code)
    parts = []
    for part in _lexer(name).get_tokens(code):
        if clock.left < 0:
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

"""Split a Markdown body into pieces: the smallest units, which the merge rules may join.

Sentences of a paragraph, list items, code blocks, table rows, quotes and HTML blocks are pieces;
headings and thematic breaks only end a section. Every piece is a range of source characters.

sentencex (by Wikimedia, for some 240 languages) proposes boundaries of sentences. A boundary inside inline
code, a link, a tag or a URL is dropped, and so is one after an abbreviation or before a lower-case word: two
joined sentences cost a few tokens, a sentence cut in half loses its meaning.
"""

import logging
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile

import sentencex
from markdown_it.token import Token

from skillpager.errors import SkillError, is_panic
from skillpager.parsing.lines import LINE_END, Lines
from skillpager.parsing.markdown import parse_blocks, plain_text
from skillpager.types import TileKind

logger = logging.getLogger(__name__)

# a longer list item or quote is split into its paragraphs, code blocks and lists
MAX_ITEM_CHARS = 1200

# of one file; a skill of the largest size that is plain prose has some 80,000
MAX_PIECES = 200_000
# more pieces than this must have five bytes on average, so that the text bounds the memory
MAX_SHORT_PIECES, LEAST_BYTES = 2_000, 5

# a longer text before a list, or header of a table, is not repeated as the lead-in of its items
MAX_LEAD_IN_CHARS = 4_000

_LISTS = ("bullet_list", "ordered_list")
_LEAF_KINDS = {"fence": TileKind.CODE, "code_block": TileKind.CODE, "html_block": TileKind.HTML, "hr": None}
CLOSING_TAGS = re.compile(r"\s*(?:</[A-Za-z][\w:.-]*\s*>\s*)+")
_INTRODUCES = re.compile(r"[:：][*_\s]*\Z")

# sentencex has abbreviations by language; the English list serves for all skills
LANGUAGE = "en"

# text is segmented in windows, because the time of the segmenter is not linear in the length of the text
WINDOW = 5_000

# the segmenter panics on a capital letter, such a blank and a full stop; a blank of ASCII is as long
_WIDE_BLANK = re.compile(r"[^\S\x00-\x7f]")

_PROTECTED = re.compile(
    # every repetition is bounded, so that no text makes the search quadratic
    r"(?<!`)(?P<ticks>`{1,8})(?!`).{1,2000}?(?<!`)(?P=ticks)(?!`)"  # inline code
    r"|!?\[(?:[^\[\]]|\[[^\[\]]{0,200}\]){0,500}\]\((?:[^()\s]|\([^()\s]{0,200}\)|\s){0,1000}\)"  # link
    r"|<[^<>\s][^<>]{0,1000}>"  # autolink or tag
    r"|(?:https?|ftp|file)://[^\s<>]+"  # bare URL
    r"|\*\*[^*\n]{1,80}\*\*",  # a bold run, such as **Note.**, is one unit
    re.DOTALL,
)
_TERMINATED = re.compile(r"[.!?…。！？｡][\"'”’»)\]）」』】*_]*\s*\Z")
_ABBREVIATION = re.compile(
    r"(?<![\w])(?:e\.\s?g|i\.\s?e|etc|vs|cf|approx|incl|excl|resp|est|max|min|avg|no|nos|fig|figs|sec|"
    r"ch|vol|ed|eds|al|dr|mr|mrs|ms|prof|st|jr|sr|inc|ltd|co|dept|ver|z\.\s?b|d\.\s?h|u\.\s?a|bzw|ca|ggf|"
    r"usw|evtl|inkl|p\.\s?ex|p|pp|[A-Za-z])\.[\"')\]*_]*\s*\Z",
    re.IGNORECASE,
)
_CLOSING = r"[*_\"'”’»)\]）」』】]*\s*"
_WIDE = re.compile(rf"[。！？｡]{_CLOSING}\Z")
_CLOSERS = re.compile(_CLOSING)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a piece in a list or table."""

    group: int  # number of the outermost list, or of the table
    depth: int  # nesting depth in that list; 0 outside of lists
    position: int  # 0-based place in the innermost list, or row of the table
    size: int  # number of items of that list, or of rows
    lead_in: tuple[int, int] | None  # source range of the text that introduces it


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of source characters that is never cut."""

    kind: TileKind | None  # None for a thematic break
    start: int  # offset of its first character in the file
    end: int  # offset after its last character
    block: int = 0  # number of its Markdown block
    place: Place | None = None  # of items of lists and rows of tables
    last: int = 0  # offset at which the last of its joined parts begins
    level: int = 0  # of a heading
    title: str = ""  # a heading's text without markup


@dataclass(slots=True)
class _Block:
    """A block of Markdown: the lines from `first`, before `behind`, and the blocks inside it."""

    type: str  # as in markdown-it, without `_open`
    first: int
    behind: int
    tag: str  # as in markdown-it: `h2` for a heading of level 2
    content: str = ""  # inline Markdown of a heading
    children: list["_Block"] = field(default_factory=list)


def split_blocks(text: str, body_start: int, *, file: str = "The text") -> list[Piece]:
    """Return the pieces and headings of a body in document order, without blank space.

    Offsets count from the start of `text`, which is a whole file. More pieces than `MAX_PIECES`, or than a
    text of this length should have, are a `SkillError` that names its path.
    """
    body = text[body_start:]
    lines = Lines(body)
    first_line = len(LINE_END.findall(text, 0, body_start)) + 1
    splitter = _Splitter(text, body_start, lines)
    blocks = (_tree(tokens) for tokens in parse_blocks(body, file=file, first_line=first_line))
    pieces: list[Piece] = []
    most = min(MAX_PIECES, max(MAX_SHORT_PIECES, len(body.encode()) // LEAST_BYTES))
    position = body_start
    end = Piece(None, len(text), len(text))
    for piece in chain(splitter.blocks(blocks), [end]):
        start = max(piece.start, position)
        if piece is not end and _is_blank(text[start : piece.end], in_quote=piece.kind is TileKind.QUOTE):
            continue  # a separator such as U+2028 alone is a paragraph in CommonMark, blank space here
        # text for which the parser has no token: link definitions, lines of a quote that only have its mark
        if not _is_blank(text[position:start], in_quote=True):
            missed = text[position:start].strip()
            first = position + text[position:start].index(missed)
            kind = TileKind.LINK_DEFINITION if missed[0] == "[" else TileKind.SENTENCE
            # block 0 is not a Markdown block; a heading behind it does not contain it
            pieces.append(Piece(kind, first, first + len(missed), 0, None, first))
        if len(pieces) > most:
            line = first_line + lines.number(pieces[-1].start - body_start) - 1
            raise SkillError(
                f"{file}:{line} begins part {len(pieces):,} (sentences, list items, table rows …), "
                f"over the limit of {most:,} for a text of this length: divide it, or page a smaller file."
            )
        if piece is not end:
            pieces.append(piece if start == piece.start else replace(piece, start=start, last=start))
            position = piece.end
    return pieces


def _is_blank(source: str, *, in_quote: bool) -> bool:
    """Return whether a text has nothing to read: blanks, and in a quote the marks of its empty lines."""
    return not (source.replace(">", " ") if in_quote else source).strip()


def _tree(tokens: list[Token]) -> _Block:
    """Return the tree of one block at the top level; empties `tokens`, so that memory holds one of both."""
    path: list[_Block] = []
    tokens.reverse()
    while tokens:
        token = tokens.pop()
        del path[token.level :]
        if token.type == "inline":
            if path[-1].type == "heading":  # no other's is read
                path[-1].content = token.content
        else:
            first, behind = token.map or (0, 0)
            block = _Block(token.type.removesuffix("_open"), first, behind, token.tag)
            for parent in path[-1:]:
                parent.children.append(block)
            path.append(block)
    return path[0]


class _Splitter:
    """Walks the blocks and numbers them."""

    def __init__(self, text: str, offset: int, lines: Lines) -> None:
        self._text = text
        self._offset = offset
        self._lines = lines
        self._block = 0

    def blocks(self, nodes: Iterable[_Block]) -> Iterator[Piece]:
        """Yield the pieces of top-level nodes."""
        before: Piece | None = None
        for node in nodes:
            self._block += 1
            for piece in self._pieces(node, before):
                yield piece
                before = piece

    def _pieces(self, node: _Block, before: Piece | None) -> Iterator[Piece]:
        """Yield the pieces of one node; `before` is the preceding piece."""
        if node.type == "heading":
            heading = self._piece(node, TileKind.HEADING)
            yield replace(heading, level=int(node.tag[1]), title=plain_text(node.content))
        elif node.type == "paragraph":
            paragraph = self._piece(node, TileKind.SENTENCE)
            source = self._text[paragraph.start : paragraph.end]
            starts = sentence_starts(source)
            for start, behind in zip(starts, [*starts[1:], len(source)], strict=True):
                first = paragraph.start + start
                end = first + len(source[start:behind].rstrip())
                yield replace(paragraph, start=first, end=end, last=first)
        elif node.type in _LISTS:
            lead_in = None
            if before and before.kind is TileKind.SENTENCE:
                introduces = _INTRODUCES.search(self._text, max(before.start, before.end - 20), before.end)
                lead_in = _lead_in(before) if introduces else None
            yield from self._list(node, lead_in, depth=0, group=self._block)
        elif node.type == "table":
            yield from self._table(node)
        elif node.type == "blockquote":
            whole = self._piece(node, TileKind.QUOTE)
            if whole.end - whole.start <= MAX_ITEM_CHARS or len(node.children) < 2:
                yield whole
            else:
                for child in node.children:
                    yield self._piece(child, _LEAF_KINDS.get(child.type, TileKind.QUOTE))
        elif node.type == "html_block":
            yield from self._html(node)
        else:
            yield self._piece(node, _LEAF_KINDS[node.type])

    def _html(self, node: _Block) -> Iterator[Piece]:
        """Yield the closing tags at the beginning of a block, which end what is before them, and the rest."""
        whole = self._piece(node, TileKind.HTML)
        if closed := CLOSING_TAGS.match(self._text, whole.start, whole.end):
            end, behind = whole.start + len(closed[0].rstrip()), closed.end()
            if behind < whole.end and LINE_END.search(self._text, end, behind):
                yield replace(whole, end=end)
                whole = replace(whole, start=behind, last=behind)
        yield whole

    def _piece(self, node: _Block, kind: TileKind | None, place: Place | None = None) -> Piece:
        return self._range(node.first, node.behind, kind, place)

    def _range(self, first: int, behind: int, kind: TileKind | None, place: Place | None = None) -> Piece:
        """Return a piece of whole lines without blank ends; only prose loses its indentation too."""
        start, end = self._offset + self._lines.start(first), self._offset + self._lines.start(behind)
        source = self._text[start:end]
        stripped_end = start + len(source.rstrip())
        if kind in (TileKind.SENTENCE, TileKind.HEADING):
            start = end - len(source.lstrip())
        return Piece(kind, start, max(start, stripped_end), self._block, place, start)

    def _list(
        self, node: _Block, lead_in: tuple[int, int] | None, *, depth: int, group: int
    ) -> Iterator[Piece]:
        """Yield each item with its own paragraphs and code as one piece, then its nested lists."""
        for position, item in enumerate(node.children):
            place = Place(group, depth, position, len(node.children), lead_in)
            first = item.first
            own = list(takewhile(lambda child: child.type not in _LISTS, item.children))
            head = self._range(first, _behind(own, first), TileKind.LIST_ITEM, place)
            if head.end - head.start > MAX_ITEM_CHARS:
                own = own[:1]
                head = self._range(first, _behind(own, first), TileKind.LIST_ITEM, place)
            inner = place  # for a list that begins on the line of the item
            if own or not item.children:
                yield head
                inner = replace(place, lead_in=_lead_in(head))
            elif item.children[0].first > first:
                yield head  # the marker alone
            for child in item.children[len(own) :]:
                if child.type in _LISTS:
                    yield from self._list(child, inner.lead_in, depth=depth + 1, group=group)
                else:
                    yield self._piece(child, _LEAF_KINDS.get(child.type, TileKind.LIST_ITEM), inner)

    def _table(self, node: _Block) -> Iterator[Piece]:
        """Yield header and first row as one piece, then each further row."""
        first, behind = node.first, node.behind
        header = self._range(first, first + 2, TileKind.TABLE)
        rows = max(1, behind - first - 2)
        for row in range(rows):
            line = first + 2 + row
            place = Place(self._block, 0, row, rows, _lead_in(header) if row else None)
            yield self._range(first if row == 0 else line, min(line + 1, behind), TileKind.TABLE, place)


def _lead_in(piece: Piece) -> tuple[int, int] | None:
    """Return the range of a piece that leads others in; None if it is too long to be repeated with them."""
    return (piece.start, piece.end) if piece.end - piece.start <= MAX_LEAD_IN_CHARS else None


def _behind(nodes: list[_Block], first: int) -> int:
    """Return the line after the last of `nodes`, or after `first` if there are none."""
    return max((node.behind for node in nodes), default=first + 1)


def sentence_starts(text: str) -> list[int]:
    """Return the offsets at which the sentences of a paragraph of inline Markdown begin; the first is 0."""
    protected = [match.span() for match in _PROTECTED.finditer(text)]
    begins = [begin for begin, _ in protected]
    starts = [0]
    for boundary in _proposed_boundaries(text, frozenset(begins)):
        place = bisect_right(begins, boundary) - 1
        if place >= 0 and begins[place] < boundary < protected[place][1]:
            continue
        before, following = text[max(starts[-1], boundary - 40) : boundary], text[boundary : boundary + 1]
        ends_word = before[-1:].isspace() and not following.islower() and not _ABBREVIATION.search(before)
        if _TERMINATED.search(before) and (ends_word or _WIDE.search(before)):
            starts.append(boundary)
    return starts


def _proposed_boundaries(text: str, opening: frozenset[int]) -> list[int]:
    """Return the boundaries that the segmenter proposes, window by window in long texts; some come twice.

    `opening` are the offsets at which a bold run, a link or the like begins.
    """
    found: list[int] = []
    begin = 0
    while begin < len(text):
        cuts = []
        for start in _segment(text[begin : begin + WINDOW]):
            cut = begin + start
            # a proposal may be between a full stop and closing markup, as in `**Done.** Next`
            behind_stop = cut and cut not in opening and not text[cut - 1].isspace()
            if behind_stop and (closers := _CLOSERS.match(text, cut)):
                cut = closers.end()
            cuts.append(cut)
        found += cuts
        if begin + WINDOW >= len(text):
            break
        begin = max(cuts[-1], begin + WINDOW // 2)
    return found


def _segment(window: str) -> list[int]:
    """Return the starts of the segmenter's sentences; one sentence if it fails."""
    try:
        proposals = sentencex.get_sentence_boundaries(LANGUAGE, _WIDE_BLANK.sub(" ", window))
    except BaseException as fault:
        if not is_panic(fault):
            raise
        logger.warning("sentencex cannot process a text (%s), which is left as one sentence", fault)
        return [0]
    return [proposal["start_index"] for proposal in proposals]

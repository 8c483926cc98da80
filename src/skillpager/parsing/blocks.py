"""A Markdown body as Pieces: the smallest units that the merge rules may join.

Sentences of a paragraph, list items, code blocks, table rows, quotes and HTML blocks are pieces;
headings and thematic breaks only end a section. Every piece is a range of source characters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from markdown_it.tree import SyntaxTreeNode

from skillpager.parsing.markdown import Lines, parse_blocks, plain_text
from skillpager.parsing.sentences import sentence_starts
from skillpager.types import TileKind

# an item, or a quote, longer than this is taken apart into its paragraphs, code blocks and lists
MAX_ITEM_CHARS = 1200

_LISTS = ("bullet_list", "ordered_list")
_LEAF_KINDS = {"fence": TileKind.CODE, "code_block": TileKind.CODE, "html_block": TileKind.HTML}
_INTRODUCES = re.compile(r"[:：][*_\s]*\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a piece stands in a list or table.

    Attributes:
        group: Number of the outermost list, or of the table.
        depth: Nesting depth in that list; 0 outside of lists.
        position: 0-based place in the innermost list, or row of the table.
        size: Number of items of that list, or of rows.
        lead_in: Source range of the text that introduces it, if there is one.
    """

    group: int
    depth: int
    position: int
    size: int
    lead_in: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of source characters that is never cut.

    Attributes:
        kind: Tile kind; None for a thematic break.
        start: Offset of its first character in the file.
        end: Offset behind its last character.
        section: Number of headings and thematic breaks before it; pieces of two sections never join.
        block: Number of the Markdown block it comes from.
        place: Set for items of lists and rows of tables.
        last: Offset at which its last constituent begins.
        level: Heading level; 0 for anything else.
        title: A heading's text without markup.
    """

    kind: TileKind | None
    start: int
    end: int
    section: int = 0
    block: int = 0
    place: Place | None = None
    last: int = 0
    level: int = 0
    title: str = ""


def split_blocks(text: str, body_start: int) -> list[Piece]:
    """Return the pieces and headings of a body in document order; blank space is left out.

    Args:
        text: The whole file.
        body_start: Offset at which the body begins; pieces carry offsets into `text`.
    """
    body = text[body_start:]
    splitter = _Splitter(text, body_start, Lines(body))
    pieces = list(splitter.blocks(SyntaxTreeNode(parse_blocks(body)).children))
    return _with_uncovered_text(pieces, text, body_start)


class _Splitter:
    """Walks a syntax tree; holds the counters that number blocks, lists and sections."""

    def __init__(self, text: str, offset: int, lines: Lines) -> None:
        self._text = text
        self._offset = offset
        self._lines = lines
        self._blocks = 0
        self._section = 0

    def blocks(self, nodes: list[SyntaxTreeNode]) -> Iterator[Piece]:
        """Yield the pieces of top-level nodes."""
        before: Piece | None = None
        for node in nodes:
            self._blocks += 1
            for piece in self._block(node, before):
                yield piece
                before = piece

    def _block(self, node: SyntaxTreeNode, before: Piece | None) -> Iterator[Piece]:
        if node.type in ("heading", "hr"):
            self._section += 1
            yield self._heading(node)
        elif node.type == "paragraph":
            yield from self._sentences(self._piece(node, TileKind.SENTENCE))
        elif node.type in _LISTS:
            yield from self._list(node, self._lead_in(before), depth=0, group=self._blocks)
        elif node.type == "table":
            yield from self._table(node)
        elif node.type == "blockquote":
            yield from self._quote(node)
        else:
            yield self._piece(node, _LEAF_KINDS.get(node.type, TileKind.SENTENCE))

    def _piece(self, node: SyntaxTreeNode, kind: TileKind | None, place: Place | None = None) -> Piece:
        first, behind = node.map or (0, 0)
        return self._range(first, behind, kind, place)

    def _range(self, first: int, behind: int, kind: TileKind | None, place: Place | None = None) -> Piece:
        """Make a piece of whole lines, blank ends cut off; only prose loses its indentation too."""
        start, end = self._offset + self._lines.start(first), self._offset + self._lines.start(behind)
        source = self._text[start:end]
        if kind in (TileKind.SENTENCE, TileKind.HEADING):
            start = end - len(source.lstrip())
        end = max(start, self._offset + self._lines.start(first) + len(source.rstrip()))
        return Piece(kind, start, end, self._section, self._blocks, place, start)

    def _heading(self, node: SyntaxTreeNode) -> Piece:
        if node.type == "hr":
            return self._piece(node, None)
        title = plain_text(node.children[0].content) if node.children else ""
        return replace(self._piece(node, TileKind.HEADING), level=int(node.tag[1]), title=title)

    def _sentences(self, paragraph: Piece) -> Iterator[Piece]:
        """Yield the sentences of a paragraph, the white space between them left out."""
        source = self._text[paragraph.start : paragraph.end]
        starts = sentence_starts(source)
        for start, behind in zip(starts, [*starts[1:], len(source)], strict=True):
            end = paragraph.start + start + len(source[start:behind].rstrip())
            start += paragraph.start
            yield replace(paragraph, start=start, end=end, last=start)

    def _lead_in(self, before: Piece | None) -> tuple[int, int] | None:
        """Return the range of the sentence before a list when it ends with a colon."""
        if before is None or before.section != self._section or before.kind is not TileKind.SENTENCE:
            return None
        source = self._text[before.start : before.end]
        return (before.start, before.end) if _INTRODUCES.search(source[-20:]) else None

    def _list(
        self, node: SyntaxTreeNode, lead_in: tuple[int, int] | None, *, depth: int, group: int
    ) -> Iterator[Piece]:
        for position, item in enumerate(node.children):
            place = Place(group, depth, position, len(node.children), lead_in)
            yield from self._item(item, place)

    def _item(self, item: SyntaxTreeNode, place: Place) -> Iterator[Piece]:
        """Yield an item with its own paragraphs and code as one piece, then the lists nested in it."""
        first = item.map[0] if item.map else 0
        own = 0
        while own < len(item.children) and item.children[own].type not in _LISTS:
            own += 1
        head = self._range(first, _behind(item.children[:own], first), TileKind.LIST_ITEM, place)
        if head.end - head.start > MAX_ITEM_CHARS and own > 1:
            head = self._range(first, _behind(item.children[:1], first), TileKind.LIST_ITEM, place)
            own = 1
        nested_on_same_line = own == 0 and bool(item.children)
        if not nested_on_same_line:
            yield head
        lead_in = place.lead_in if nested_on_same_line else (head.start, head.end)
        for child in item.children[own:]:
            yield from self._child(child, replace(place, lead_in=lead_in))

    def _child(self, child: SyntaxTreeNode, place: Place) -> Iterator[Piece]:
        if child.type in _LISTS:
            yield from self._list(child, place.lead_in, depth=place.depth + 1, group=place.group)
        else:
            yield self._piece(child, _LEAF_KINDS.get(child.type, TileKind.LIST_ITEM), place)

    def _table(self, node: SyntaxTreeNode) -> Iterator[Piece]:
        """Yield the header rows with the first row as one piece, then row by row."""
        first, behind = node.map or (0, 0)
        header = self._range(first, first + 2, TileKind.TABLE)
        rows = max(1, behind - first - 2)
        for row in range(rows):
            line = first + 2 + row
            place = Place(self._blocks, 0, row, rows, (header.start, header.end) if row else None)
            yield self._range(first if row == 0 else line, min(line + 1, behind), TileKind.TABLE, place)

    def _quote(self, node: SyntaxTreeNode) -> Iterator[Piece]:
        whole = self._piece(node, TileKind.QUOTE)
        if whole.end - whole.start <= MAX_ITEM_CHARS or len(node.children) < 2:
            yield whole
            return
        for child in node.children:
            yield self._piece(child, _LEAF_KINDS.get(child.type, TileKind.QUOTE))


def _behind(nodes: list[SyntaxTreeNode], first: int) -> int:
    """Return the line behind the last of `nodes`, or behind `first` when there is none."""
    return max((node.map[1] for node in nodes if node.map), default=first + 1)


def _with_uncovered_text(pieces: list[Piece], text: str, body_start: int) -> list[Piece]:
    """Add a piece for text that the parser gives no token: link definitions, over-deep nesting."""
    covered: list[Piece] = []
    position = body_start
    for piece in pieces:
        if piece.end <= position or not text[piece.start : piece.end].strip():
            continue  # a separator such as U+2028 alone is a paragraph to CommonMark, blank space to us
        start = max(piece.start, position)
        covered += _uncovered(text, position, start, before=piece)
        covered.append(piece if start == piece.start else replace(piece, start=start, last=start))
        position = piece.end
    last = pieces[-1] if pieces else Piece(None, body_start, body_start)
    return covered + _uncovered(text, position, len(text), before=last)


def _uncovered(text: str, start: int, end: int, *, before: Piece) -> list[Piece]:
    source = text[start:end]
    if not source.strip():
        return []
    start += len(source) - len(source.lstrip())
    end = start + len(source.strip())
    kind = TileKind.LINK_DEFINITION if text[start] == "[" else TileKind.SENTENCE
    # block 0 belongs to no Markdown block; the section is that of the piece it stands before
    return [Piece(kind, start, end, before.section, 0, None, start)]

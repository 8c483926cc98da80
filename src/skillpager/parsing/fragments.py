"""Stage 2: a Skill becomes tiles: Fragments (the candidates of a page), headings and blank space.

Contract: the tiles of a file, joined, are the file, for any input. A fragment's text is its exact
source slice. Splitting is blocks and sentences (`blocks`), then the paper's merge rules
(`merging`).

Reference: paper §3.1, Fragment Splitting.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from skillpager.parsing.blocks import Piece, split_blocks
from skillpager.parsing.markdown import Lines
from skillpager.parsing.merge_rules import merge
from skillpager.sections import open_headings
from skillpager.types import Fragment, Heading, ListContext, Skill, SourceFile, Span, Tile, TileKind

# part of every cache key: raise it whenever the same source may yield other fragments
SPLITTER_VERSION = "1"


def split_skill(skill: Skill) -> list[Tile]:
    """Return the tiles of all files in order; the ordinals of fragments run through all files."""
    tiles: list[Tile] = []
    fragments = 0
    for file in skill.files:
        added = split_file(file, first_ordinal=fragments)
        fragments += sum(isinstance(tile, Fragment) for tile in added)
        tiles += added
    return tiles


def split_file(file: SourceFile, *, first_ordinal: int = 0) -> list[Tile]:
    """Return the tiles of one file; `"".join(tile.text for tile in tiles) == file.text`.

    Args:
        file: The file.
        first_ordinal: Ordinal of its first fragment.
    """
    tiler = _Tiler(file, Lines(file.text), first_ordinal)
    tiles = list(tiler.filler(0, file.body_start, TileKind.FRONT_MATTER))
    position = file.body_start
    for piece in merge(split_blocks(file.text, file.body_start), file.text):
        tiles += tiler.filler(position, piece.start, TileKind.BLANK)
        tiles.append(tiler.tile(piece))
        position = piece.end
    tiles += tiler.filler(position, len(file.text), TileKind.BLANK)
    return tiles


@dataclass(slots=True)
class _Tiler:
    """Turns pieces into tiles, keeping the headings that are open and the next ordinal."""

    file: SourceFile
    lines: Lines
    ordinal: int
    open_headings: tuple[Heading, ...] = ()

    def filler(self, start: int, end: int, kind: TileKind) -> Iterator[Tile]:
        if end > start:
            yield Tile(kind, self._span(start, end), self.file.text[start:end])

    def tile(self, piece: Piece) -> Tile:
        span, text = self._span(piece.start, piece.end), self.file.text[piece.start : piece.end]
        if piece.kind is None:
            return Tile(TileKind.BLANK, span, text)
        if piece.kind is TileKind.HEADING:
            heading = Heading(piece.kind, span, text, piece.level, piece.title)
            self.open_headings = open_headings(self.open_headings, heading)
            return heading
        path = tuple(heading.title for heading in self.open_headings)
        fragment = Fragment(piece.kind, span, text, self.ordinal, path, self._list_context(piece))
        self.ordinal += 1
        return fragment

    def _list_context(self, piece: Piece) -> ListContext | None:
        place = piece.place
        if place is None:
            return None
        span = self._span(*place.lead_in) if place.lead_in else None
        lead_in = self.file.text[slice(*place.lead_in)] if place.lead_in else ""
        return ListContext(lead_in, span, place.position, place.size)

    def _span(self, start: int, end: int) -> Span:
        # an empty range ends on the line it begins on
        return Span(
            self.file.path, self.lines.number(start), self.lines.number(max(start, end - 1)), start, end
        )

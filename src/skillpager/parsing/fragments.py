"""Split a skill into tiles: fragments, headings, front matter and blank space.

Contract: for any input, the tiles of a file, joined, are the file, and the text of a fragment is its exact
source slice. Files are split into blocks and sentences (`blocks`), which the paper's merge rules
(`merge_rules`) then join.

Reference: paper §3.1, Fragment Splitting.
"""

from skillpager.errors import SkillError
from skillpager.parsing.blocks import MAX_PIECES, split_blocks
from skillpager.parsing.lines import Lines
from skillpager.parsing.merge_rules import PROFILES, merge
from skillpager.parsing.skill import find_front_matter
from skillpager.sections import open_headings
from skillpager.types import Fragment, Heading, ListContext, Skill, SourceFile, Span, Tile, TileKind


def split_skill(skill: Skill, profile: str = "default") -> list[Tile]:
    """Return the tiles of all files; ordinals continue from file to file. Too many are a `SkillError`."""
    tiles: list[Tile] = []
    fragments = 0
    for file in skill.files:
        added = split_file(file, first_ordinal=fragments, profile=profile)
        fragments += sum(isinstance(tile, Fragment) for tile in added)
        tiles += added
        if len(tiles) > 2 * MAX_PIECES + 2:  # there may be blank space between two parts
            raise SkillError(
                f"{file.path} brings the skill to {len(tiles):,} tiles, over the limit of "
                f"{2 * MAX_PIECES + 2:,}: move files out of its folder, or page it with the scope `body`."
            )
    return tiles


def split_file(file: SourceFile, *, first_ordinal: int = 0, profile: str = "default") -> list[Tile]:
    """Return the tiles of one file, which joined are the file. Too many are a `SkillError`."""
    text, lines = file.text, Lines(file.text)

    def span(start: int, end: int) -> Span:
        # an empty range ends on the line where it begins
        return Span(file.path, lines.number(start), lines.number(max(start, end - 1)), start, end)

    def tile(kind: TileKind, start: int, end: int) -> Tile:
        return Tile(kind, span(start, end), text[start:end])

    if file.same_as:
        return [tile(TileKind.COPY, 0, len(text))] if text else []
    front, behind = find_front_matter(text[: file.body_start])
    tiles = [
        tile(TileKind.BLANK, 0, front),
        tile(TileKind.FRONT_MATTER, front, behind),
        tile(TileKind.BLANK, behind, file.body_start),
    ]
    position, ordinal = file.body_start, first_ordinal
    path: tuple[Heading, ...] = ()
    pieces = split_blocks(text, file.body_start, file=file.path)
    for piece in merge(pieces, text, rules=PROFILES[profile]):
        tiles.append(tile(TileKind.BLANK, position, piece.start))
        position = piece.end
        where, source = span(piece.start, piece.end), text[piece.start : piece.end]
        if piece.kind is None:
            tiles.append(Tile(TileKind.BLANK, where, source))
        elif piece.kind is TileKind.HEADING:
            heading = Heading(piece.kind, where, source, piece.level, piece.title)
            path = open_headings(path, heading)
            tiles.append(heading)
        else:
            context = None
            if place := piece.place:
                lead_in = span(*place.lead_in) if place.lead_in else None
                words = text[lead_in.start : lead_in.end] if lead_in else ""
                context = ListContext(words, lead_in, place.position, place.size)
            titles = tuple(heading.title for heading in path)
            tiles.append(Fragment(piece.kind, where, source, ordinal, titles, context))
            ordinal += 1
    tiles.append(tile(TileKind.BLANK, position, len(text)))
    return [tile for tile in tiles if tile.text]

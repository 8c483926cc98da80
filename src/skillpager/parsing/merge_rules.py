"""The merge rules of paper §3.1, Fragment Splitting, in order; each is a function of two adjacent pieces.

A rule decides whether the right piece joins the left one. The rules run one after the other over all
pieces of a file; pieces of different sections never join. Code blocks are never cut, because each is
one piece from the start. Three rules are not the paper's: tags and list markers alone say nothing.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from skillpager.parsing.blocks import CLOSING_TAGS, Piece
from skillpager.types import TileKind

# items of a list, and rows of a table, are grouped up to this many characters: larger groups hold more
# evidence for the same tokens; the paper splits the same skills finer (`PROFILES`)
MAX_LIST_GROUP_CHARS = 180
MAX_TABLE_GROUP_CHARS = 400
MAX_TITLE_CHARS = 40

_TAIL_CHARS = 40
_HEAD_CHARS = 80
_MARKUP = r"[\s*_>\"'“„(（\[-]*"
_COLON = re.compile(r"[:：][*_\s`\"'”)]*\Z")
_CONDITION = re.compile(
    _MARKUP
    + r"(?:(?:if|when|whenever|otherwise|unless|in case|as long as|wenn|falls|sofern|andernfalls|si)\b"
    r"|如果|若|当|假如|否则|除非|一旦|もし|만약)",
    re.IGNORECASE,
)
_CONNECTIVE = re.compile(
    _MARKUP + r"(?:(?:or|and|e\.\s?g\.|i\.\s?e\.|that is|oder|und|z\.\s?B\.|d\.\s?h\.|o|y)(?![\w.])"
    r"|或者?|以及|并且|例如|比如|即|または|および)",
    re.IGNORECASE,
)
# of HTML, elements without content; an opening tag of another one has its content behind it
_OPENING_TAGS = re.compile(
    r"(?:\s*<(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)\b)[A-Za-z][\w:.-]*"
    r"(?:\s[^<>]*)?(?<!/)>)+\s*\Z",
    re.IGNORECASE,
)
_MARKER = re.compile(r"[>\s]*(?:[-*+]|\d{1,9}[.)])\s*\Z")
_PROSE = (TileKind.SENTENCE, TileKind.QUOTE)
_APART = (TileKind.HEADING, None)

# whether the right piece joins the left one; arguments are left, right, text
Rule = Callable[[Piece, Piece, str], bool]


def tag_joins_next(left: Piece, _: Piece, text: str) -> bool:
    """An opening tag belongs to what follows it."""
    # of several tags, each a block, the last one
    return left.kind is TileKind.HTML and bool(_OPENING_TAGS.match(text, left.last, left.end))


def marker_joins_next(left: Piece, _: Piece, text: str) -> bool:
    """A list marker alone on its line belongs to what follows it."""
    return left.kind is TileKind.LIST_ITEM and bool(_MARKER.match(text, left.start, left.end))


def tag_joins_previous(_: Piece, right: Piece, text: str) -> bool:
    """A closing tag belongs to what precedes it."""
    return right.kind is TileKind.HTML and bool(CLOSING_TAGS.fullmatch(text, right.start, right.end))


def colon_joins_next(left: Piece, right: Piece, text: str) -> bool:
    """A sentence or item that ends with a colon is a local header of what follows it."""
    if not _COLON.search(text, max(left.last, left.end - _TAIL_CHARS), left.end):
        return False
    if left.kind is TileKind.LIST_ITEM:
        return _is_inside(right, left)
    return left.kind in _PROSE


def condition_joins_next(left: Piece, right: Piece, text: str) -> bool:
    """A sentence that begins with a condition needs the next one in its paragraph."""
    if left.kind is not TileKind.SENTENCE or right.kind is not TileKind.SENTENCE or left.block != right.block:
        return False
    return bool(_CONDITION.match(text, left.last, min(left.end, left.last + _HEAD_CHARS)))


def connective_joins_previous(left: Piece, right: Piece, text: str) -> bool:
    """A sentence that begins with or, and, e.g., i.e. … completes the one before it."""
    if right.kind is not TileKind.SENTENCE or left.kind is TileKind.LINK_DEFINITION:
        return False
    return bool(_CONNECTIVE.match(text, right.start, min(right.end, right.start + _HEAD_CHARS)))


def list_items_grouped(left: Piece, right: Piece, _: str) -> bool:
    """Short items of one list form a group; a nested item never takes in items of outer lists after it."""
    if left.place is None or right.place is None or right.kind is not TileKind.LIST_ITEM:
        return False
    if left.kind is not TileKind.LIST_ITEM or left.place.group != right.place.group:
        return False
    if left.end - left.start <= MAX_TITLE_CHARS and _is_inside(right, left):
        return True  # an item such as "4. Tag" is only the title of its first nested item
    return right.place.depth >= left.place.depth and right.end - left.start <= MAX_LIST_GROUP_CHARS


def table_rows_grouped(left: Piece, right: Piece, _: str) -> bool:
    """Rows of one table form a group, so that a short table is one fragment."""
    if left.place is None or right.place is None or right.kind is not TileKind.TABLE:
        return False
    return left.place.group == right.place.group and right.end - left.start <= MAX_TABLE_GROUP_CHARS


RULES = (
    tag_joins_next,
    marker_joins_next,
    colon_joins_next,
    condition_joins_next,
    connective_joins_previous,
    list_items_grouped,
    table_rows_grouped,
    tag_joins_previous,
)
# the rules of a profile. `paper` is for comparisons: without those that join list items, table rows and
# lead-ins, the paper's ground-truth skills have as many nodes as it reports (docs/measured.md)
_NOT_OF_PAPER = (colon_joins_next, list_items_grouped, table_rows_grouped)
PROFILES = {"default": RULES, "paper": tuple(rule for rule in RULES if rule not in _NOT_OF_PAPER)}


def merge(pieces: Iterable[Piece], text: str, *, rules: Iterable[Rule] = RULES) -> list[Piece]:
    """Return the pieces of a file, in document order, after each rule has run once over all of them."""
    merged = list(pieces)
    for rule in rules:
        waiting, merged = merged, []
        for right in waiting:
            left = merged[-1] if merged else None
            if not left or left.kind in _APART or right.kind in _APART or not rule(left, right, text):
                merged.append(right)
                continue
            kind, place = left.kind, left.place
            if rule is tag_joins_next:
                kind, place = right.kind, right.place
            elif left.kind in _PROSE and right.kind not in _PROSE:
                # a local header takes the kind and place of what it introduces, and needs no other lead-in
                kind = right.kind
                place = replace(right.place, lead_in=None) if right.place else left.place
            merged[-1] = replace(
                left, kind=kind, place=place, end=right.end, block=right.block, last=right.last
            )
    return merged


def _is_inside(inner: Piece, outer: Piece) -> bool:
    """Return whether `inner` belongs to the list item `outer`: nested deeper, or its own continuation."""
    if inner.place is None or outer.place is None or inner.place.group != outer.place.group:
        return False
    return inner.place.depth > outer.place.depth or inner.place.lead_in == (outer.start, outer.end)

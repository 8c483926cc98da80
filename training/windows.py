"""Windows: runs of neighbouring nodes of a document that an encoder reads together.

`encoder_variants.py` compares them with what ships, each node by itself. A node of a window is seen among the
steps, lists and headings around it. A window begins with the headings of its first node; where the headings
change, the new ones follow. A window of length 0 holds one node, as the shipped encoder reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from tokenizers import Tokenizer

from skillpager.encoders.builtin import MAX_TITLE_PIECES, clean, pieces_in_context
from skillpager.types import Fragment

Pieces = Sequence[int]


@dataclass(slots=True)
class Window:
    """Word pieces that are read together, without [CLS] and [SEP].

    Attributes:
        pieces: The pieces.
        spans: For each node of the window: its number, its first piece and the end of its last.
    """

    pieces: list[int]
    spans: list[tuple[int, int, int]]


def windows_of(tokenizer: Tokenizer, fragments: Sequence[Fragment], *, most: int) -> list[Window]:
    """Return the windows of a document; every node is in exactly one.

    Args:
        tokenizer: Of the encoder.
        fragments: All fragments of a document, in order.
        most: Word pieces of a window, with two for [CLS] and [SEP]; a single node may have more.
    """
    windows: list[Window] = []
    shown = tuple[Pieces, ...]()
    for number, (pieces, before) in enumerate(pieces_in_context(tokenizer, fragments)):
        encoded = (
            tokenizer.encode(clean(title), add_special_tokens=False).ids
            for title in fragments[number].heading_path
        )
        titles = tuple(tuple(title[:MAX_TITLE_PIECES]) for title in encoded)
        new = [piece for title in _changed(shown, titles) for piece in title]
        text = pieces[before:]
        if windows and len(windows[-1].pieces) + len(new) + len(text) <= most - 2:
            window = windows[-1]
            window.pieces += new
        else:
            window = Window(pieces[:before], [])
            windows.append(window)
        start = len(window.pieces)
        window.pieces += text
        window.spans.append((number, start, len(window.pieces)))
        shown = titles
    return windows


def _changed(before: Sequence[Pieces], after: Sequence[Pieces]) -> Sequence[Pieces]:
    """Return the headings that a reader of `before` does not know yet."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    return after[same:]

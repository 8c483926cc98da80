"""Features of a fragment for the local classifier: its words, shape and place.

Each is a number, computed from the fragment or its neighbours. Their order is that of `NAMES`; a change of
it needs a new model.
"""

import math
import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from skillpager.types import FloatArray, Fragment, TileKind

KINDS = tuple(TileKind)[4:]  # those of fragments

# regular expressions by name, in the order of their features
_CUES = tomllib.loads(files(__package__).joinpath("cues.toml").read_text(encoding="utf-8"))
TEXT_CUES: dict[str, str] = _CUES["text"]
HEADING_CUES: dict[str, str] = _CUES["heading"]

# of texts in lower case: to ignore the case takes twice as long
_TEXT = tuple(re.compile(pattern, re.MULTILINE) for pattern in TEXT_CUES.values())
_HEADING = tuple(map(re.compile, HEADING_CUES.values()))

# characters of a fragment that are searched for cues
CUE_CHARS = 1200

NAMES = (
    *(f"kind:{kind}" for kind in KINDS),
    *(f"text:{name}" for name in TEXT_CUES),
    *(f"heading:{name}" for name in HEADING_CUES),
    *(f"path:{name}" for name in HEADING_CUES),
    *("depth", "chars", "lines", "words_per_line", "code_share", "upper_share", "digit_share"),
    *("place", "list_size", "list_position", "has_lead_in", "first_of_section", "last_of_section"),
)


def describe(fragments: Sequence[Fragment]) -> FloatArray:
    """Return `(len(fragments), len(NAMES))` float32 features, not scaled, of all fragments of a skill."""
    rows = []
    cues_of: dict[str, list[bool]] = {"": [False] * len(_HEADING)}  # of each title: its sections share it
    last = len(fragments) - 1
    for place, fragment in enumerate(fragments):
        text = fragment.text[:CUE_CHARS]
        lowered, chars, lines = text.lower(), max(1, len(text)), text.count("\n") + 1
        path = fragment.heading_path
        for title in path:
            if title not in cues_of:
                cues_of[title] = [bool(cue.search(title.lower())) for cue in _HEADING]
        titles = [cues_of[title] for title in path or ("",)]
        context = fragment.list_context
        rows.append(
            [
                *(fragment.kind is kind for kind in KINDS),
                *(bool(cue.search(lowered)) for cue in _TEXT),
                *titles[-1],
                *map(any, zip(*titles, strict=True)),
                len(path),
                math.log1p(len(fragment.text)),
                math.log1p(lines),
                len(text.split()) / lines,
                text.count("`") / chars,
                sum(map(str.isupper, text)) / chars,
                sum(map(str.isdigit, text)) / chars,
                place / max(1, last),
                math.log1p(context.size) if context else 0.0,
                context.position / max(1, context.size) if context else 0.0,
                bool(context and context.lead_in),
                place == 0 or fragments[place - 1].heading_path != path,
                place == last or fragments[place + 1].heading_path != path,
            ]
        )
    return np.array(rows, dtype=np.float32).reshape(len(fragments), len(NAMES))

"""The words of a skill by field, and how often each stands there, packed into bytes.

Scores of the fields are summed, never their texts mixed: a word in a name is rarer, and says more, than the
same word in a body.
"""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from skillpager.strategies.navigator.lexical import terms_of

HashArray = NDArray[np.uint32]

# the opening of a body tells what a skill does; what a description says that a skill is not for is a field of
# its own, whose words count against it
TERM_FIELDS = ("name", "description", "body", "opening", "negated")
# pairs of neighbouring terms of description, headings and opening
PHRASES = "phrases"
FIELDS = (*TERM_FIELDS, PHRASES)
OPENING_CHARS, OPENING_TERMS = 3_000, 250
MOST_COUNTED = 255  # occurrences of a term in a text: BM25 is flat long before
MAX_KEPT_HASHES = 200_000
# no term holds it, and the index splits texts at spaces
PAIR_JOINT = "+"

# in a description, up to the end of the sentence
_NEGATED = re.compile(
    r"\b(?:(?:do|does|should|must|can) ?n[o']t (?:be )?(?:use|used|trigger|invoke|activate|apply|load)\b"
    r"|(?:don['’]t|never|avoid|not) (?:to be )?(?:use|used|using|trigger|triggering|invoke|activate)\b"
    r"|not (?:intended |meant |suitable |designed |needed |required |applicable )?(?:for|when|if)\b"
    r"|skip (?:this |it |the skill )*(?:for|when|if)\b)"
    r".*?(?:[.!?](?=\s|$)|$)",
    re.IGNORECASE | re.MULTILINE,
)
_CODE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+)$", re.MULTILINE)


def field_terms(name: str, description: str, body: str) -> tuple[list[str], ...]:
    """Return the terms of the fields of a skill, repetitions included, in the order of `FIELDS`."""
    prose = _CODE.sub(" ", body)
    described = terms_of(_NEGATED.sub(" ", description))
    opening = terms_of(prose[:OPENING_CHARS])[:OPENING_TERMS]
    headings = terms_of("\n".join(_HEADING.findall(prose)))
    return (
        terms_of(name),
        described,
        terms_of(body),
        opening,
        terms_of("\n".join(_NEGATED.findall(description))),
        [pair for terms in (described, headings, opening) for pair in pairs_of(terms)],
    )


def pairs_of(terms: Sequence[str]) -> list[str]:
    """Return the pairs of neighbouring terms."""
    return [f"{first}{PAIR_JOINT}{second}" for first, second in pairwise(terms)]


@lru_cache(MAX_KEPT_HASHES)
def hash_in(field: int, term: str) -> int:
    """Return the 32-bit number that stands for a term in the field of this number."""
    # the start values differ in all bytes: no other first letter makes up for another field
    return zlib.crc32(term.encode("utf-8", "surrogatepass"), (field + 1) * 0x9E3779B1 & 0xFFFFFFFF)


def pack_counts(fields: Sequence[Sequence[str]]) -> bytes:
    """Return the number of terms of each field, then the hashes of all terms, then how often each stands."""
    hashes = [hash_in(number, term) for number, terms in enumerate(fields) for term in terms]
    distinct, counts = np.unique(np.array(hashes, np.uint32), return_counts=True)
    lengths = np.array([len(terms) for terms in fields], np.uint32)
    capped = np.minimum(counts, MOST_COUNTED).astype(np.uint8)
    return b"".join([lengths.tobytes(), distinct.tobytes(), capped.tobytes()])


def read_counts(packed: Sequence[bytes], wanted: HashArray) -> tuple[NDArray[np.uint8], HashArray]:
    """Return how often each skill holds each of some terms, and how long its fields are.

    Args:
        packed: Of each skill what `pack_counts` returned.
        wanted: Hashes of terms in fields.

    Returns:
        `(skills, wanted)` counts, and `(skills, fields)` lengths.
    """
    found = np.zeros((len(packed), len(wanted)), np.uint8)
    lengths = np.zeros((len(packed), len(FIELDS)), np.uint32)
    if not packed:
        return found, lengths
    head = 4 * len(FIELDS)
    sizes = [(len(data) - head) // 5 for data in packed]
    hashes = np.concatenate(
        [np.frombuffer(data, np.uint32, size, head) for data, size in zip(packed, sizes, strict=True)]
    )
    counts = np.concatenate(
        [
            np.frombuffer(data, np.uint8, size, head + 4 * size)
            for data, size in zip(packed, sizes, strict=True)
        ]
    )
    for row, data in zip(lengths, packed, strict=True):
        row[:] = np.frombuffer(data, np.uint32, len(FIELDS))
    # most of a million hashes are none of the wanted ones: their last bits alone tell
    is_near = np.zeros(1 << 16, bool)
    is_near[wanted & 0xFFFF] = True
    near = np.flatnonzero(is_near[hashes & 0xFFFF])
    order = np.argsort(wanted, kind="stable")
    places = np.searchsorted(wanted[order], hashes[near])
    places[places == len(wanted)] = 0
    same = wanted[order][places] == hashes[near]
    near, columns = near[same], order[places[same]]
    rows = np.searchsorted(np.cumsum(sizes), near, side="right")
    found[rows, columns] = counts[near]
    return found, lengths

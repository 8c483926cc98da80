"""The evidence measure: the share of the lines necessary for a query that a context holds.

Deterministic and strict: the whole document scores 100 % by construction, and every part that an
annotator marked as necessary counts. See `docs/measured.md`.
"""

import re
from collections.abc import Collection, Sequence

import numpy as np

# a page is sufficient that holds so much of all critical lines, and of each range of them
SUFFICIENT_OVERALL = 0.9
SUFFICIENT_EACH = 0.8
# pieces with fewer letters and digits do not count as evidence
MIN_PIECE_CHARS = 3

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+(?=[A-Z0-9`*\"\[(])")
_LIST_MARKER = re.compile(r"^\s*([-*+]|\d+[.)])\s+")
_NEITHER_LETTER_NOR_DIGIT = re.compile(r"[^\w]|_")


def evidence_coverage(
    context: str, lines: Sequence[str], ranges: Sequence[tuple[int, int]]
) -> tuple[float, bool]:
    """Return the share of the evidence that `context` holds, 0 to 1, and whether it is sufficient.

    Letters and digits alone are compared, sentence by sentence; headings do not count. Without any evidence
    the answer is 1 and True. `lines` are those of the skill file, `ranges` the first and last line of each
    stretch of evidence, 1-based and inclusive.
    """
    haystack = _letters(context)
    counts = [counted for first, last in ranges if (counted := _count(haystack, lines[first - 1 : last]))[1]]
    if not counts:
        return 1.0, True
    coverage = sum(found for found, _ in counts) / sum(total for _, total in counts)
    each = all(found / total >= SUFFICIENT_EACH for found, total in counts)
    return coverage, coverage >= SUFFICIENT_OVERALL and each


def rank_measures(picks: Sequence[str], needed: Collection[str] | None) -> tuple[float, float, float]:
    """Return recall, average precision and nDCG of picked nodes, in the order of picking, 0 to 1.

    Needed nodes are equally relevant, and the ideal order has all of them. Without any the measures are 1,
    and NaN where it is not known which are needed.

    Reference: Manning, Raghavan and Schütze, *Introduction to Information Retrieval* (2008), §8.4.
    """
    if not needed:
        unknown = np.nan if needed is None else 1.0
        return unknown, unknown, unknown
    hits = np.array([pick in needed for pick in picks], dtype=float)
    ranks = np.arange(1, len(hits) + 1)
    ideal = np.sum(1 / np.log2(np.arange(2, len(needed) + 2)))
    average = np.sum(hits * np.cumsum(hits) / ranks) / len(needed)
    return float(hits.sum() / len(needed)), float(average), float(np.sum(hits / np.log2(ranks + 1)) / ideal)


def _count(haystack: str, lines: Sequence[str]) -> tuple[int, int]:
    """Return how many letters of `lines` are in `haystack`, and how many there are."""
    found = total = 0
    for line in lines:
        if line.lstrip().startswith("#"):
            continue
        for piece in _SENTENCE_END.split(_LIST_MARKER.sub("", line)):
            needle = _letters(piece)
            if len(needle) >= MIN_PIECE_CHARS:
                total += len(needle)
                found += len(needle) if needle in haystack else 0
    return found, total


def _letters(text: str) -> str:
    return _NEITHER_LETTER_NOR_DIGIT.sub("", text.lower())

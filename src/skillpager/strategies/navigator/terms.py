"""Text to the terms that BM25 counts: words, the parts of identifiers, and pairs of CJK characters."""

import re
import unicodedata

# scripts that write no spaces between words, or (Hangul) inflect behind the stem: kana, Han, Hangul
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = f"[^\\W_{_CJK}]+"
_RUN = re.compile(f"(?P<cjk>[{_CJK}]+)|{_WORD}(?:[_-]+{_WORD})*")
# between the parts of an identifier: max|Nodes, HTTP|Server, utf|8, 2|Dict
_SEAM = re.compile(
    r"[_-]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)

# Lucene's English stop words, which bm25s has too
STOP_WORDS = frozenset(
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these
    they this to was will with
    """.split()  # noqa: SIM905 - thirty-three lines otherwise
)
# plurals of four letters on lose their s
MIN_PLURAL_CHARS = 4


def terms_of(text: str) -> list[str]:
    """Return the terms of a text in order, repetitions included.

    Compatibility forms and case do not count. `max_nodes`, `maxNodes` and `--max-nodes` have the same
    terms, `maxnodes`, `max` and `node`: the identifier, written together, and its parts. A run of CJK
    characters becomes its pairs. Stop words are left out, and an English plural is its singular: both
    are worth 3 points of sufficiency at half of the tokens on training data.
    """
    terms: list[str] = []
    for run in _RUN.finditer(unicodedata.normalize("NFKC", text)):
        terms += _pairs(run[0]) if run["cjk"] else _words(run[0])
    return terms


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)] or [run]


def _words(run: str) -> list[str]:
    """Return the parts of a word or identifier, the whole first when there are several."""
    parts = [part.casefold() for part in _SEAM.split(run)]
    whole = ["".join(parts)] if len(parts) > 1 else []
    return whole + [_singular(part) for part in parts if part not in STOP_WORDS]


def _singular(word: str) -> str:
    plural = len(word) >= MIN_PLURAL_CHARS and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if plural else word

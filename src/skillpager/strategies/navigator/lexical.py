"""The terms of a text, the clauses of a query, and an index of the terms that nodes hold."""

import math
import re
import tomllib
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from skillpager.types import FloatArray

IntArray = NDArray[np.intp]

# scripts without spaces between words, or (Hangul) with inflections after the stem: kana, Han, Hangul
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = f"[^\\W_{_CJK}]+"
_WORDS = re.compile(f"(?P<cjk>[{_CJK}]+)|{_WORD}(?:[_-]+{_WORD})*")
# between the parts of an identifier: max|Nodes, HTTP|Server, utf|8, 2|Dict
_SEAM = re.compile(
    r"[_-]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])"
)

_LISTS = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
STOP_WORDS = frozenset(_LISTS["stop_words"].split())
MIN_PLURAL_CHARS = 4  # plurals of so many letters or more lose their s
STEM_CHARS = 5  # letters of a stem: "deploying" and "deployment" share one
LEAST_TERMS = 2  # a clause with fewer terms that are not in `_ASKING` joins the next one
MOST_CLAUSES = 8  # further clauses are joined, the shortest neighbours first
# clauses are looked for in so much of a query; the encoder reads no more of it either
MAX_CLAUSE_CHARS = 4_000
# a match begins at the beginning of a run, or the search would take time by the square of its length
_STOP = r"(?<![.?!;:,])[.?!;:,]+\s+|(?<!\s)\s+[-—–]\s+"
_CLAUSE_SEAM = re.compile(rf"(?:{_STOP}|(?<!\s)\s+)(?:and|but|or|then|plus|also)\s+|{_STOP}", re.IGNORECASE)
_EDGES = " .?!,;:"
_ASKING = frozenset(_LISTS["asking"].split())

# repeated queries, as a service gets them, need not be split again
MAX_KEPT_QUERIES = 128
# of words, whose terms take some 10 MB
MAX_KEPT_WORDS = 50_000

# Robertson and Zaragoza 2009, §3.4
BM25_K1, BM25_B = 1.2, 0.75


def terms_of(text: str) -> list[str]:
    """Return the terms of a text in order, repetitions included.

    Compatibility forms and case do not count. `max_nodes`, `maxNodes` and `--max-nodes` have the same terms,
    `maxnodes`, `max` and `node`: the identifier, written together, and its parts. A run of CJK characters
    becomes its pairs. Stop words are left out, and an English plural is its singular: both add 3 points of
    sufficiency at half of the tokens on training data.
    """
    terms: list[str] = []
    for match in _WORDS.finditer(unicodedata.normalize("NFKC", text)):
        if word := match["cjk"]:
            terms += [word[start : start + 2] for start in range(len(word) - 1)] or [word]
        else:
            terms += _terms_of_word(match[0])
    return terms


@lru_cache(MAX_KEPT_WORDS)
def _terms_of_word(word: str) -> tuple[str, ...]:
    """Return the terms of a word or identifier; a text repeats most of its words."""
    parts = [part.casefold() for part in _SEAM.split(word)]
    terms = ["".join(parts)] if len(parts) > 1 else []
    for part in parts:
        if part not in STOP_WORDS:
            plural = len(part) >= MIN_PLURAL_CHARS and part.endswith("s") and not part.endswith("ss")
            terms.append(part[:-1] if plural else part)
    return tuple(terms)


def stems_of(terms: Iterable[str]) -> list[str]:
    """Return the first letters of each term."""
    return [term[:STEM_CHARS] for term in terms]


@lru_cache(MAX_KEPT_QUERIES)
def clauses_of(text: str) -> tuple[str, ...]:
    """Return the clauses of a query in order, at most `MOST_CLAUSES`; none if it is one clause.

    Each is a slice of the text, and no two overlap. The parts of a question can then be searched one by one:
    a single embedding represents mostly what most of the text is about (docs/measured.md, "a clause is
    drowned").
    """
    clauses: list[tuple[int, int]] = []
    start, terms = -1, 0  # of the clause that is being read
    for first, last in _parts(text[:MAX_CLAUSE_CHARS]):
        start = first if start < 0 else start
        terms += sum(term not in _ASKING for term in terms_of(text[first:last]))
        if terms >= LEAST_TERMS:
            clauses.append((start, last))
            start, terms = -1, 0
        end = last
    if start >= 0 and clauses:
        clauses[-1] = (clauses[-1][0], end)
    while len(clauses) > MOST_CLAUSES:
        lengths = [right[1] - left[0] for left, right in pairwise(clauses)]
        shortest = lengths.index(min(lengths))
        clauses[shortest : shortest + 2] = [(clauses[shortest][0], clauses[shortest + 1][1])]
    return tuple(text[first:last] for first, last in clauses) if len(clauses) > 1 else ()


def _parts(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the parts between the seams of clauses begin and end, without punctuation around them."""
    bounds = [0, *(edge for seam in _CLAUSE_SEAM.finditer(text) for edge in seam.span()), len(text)]
    for first, last in zip(bounds[::2], bounds[1::2], strict=True):
        part = text[first:last]
        inner = part.strip(_EDGES)
        if inner:
            start = first + len(part) - len(part.lstrip(_EDGES))
            yield start, start + len(inner)


class TermIndex:
    """An index of the terms of texts, for BM25.

    Places and weights of all terms lie in two arrays: arrays for each term would take ten times as much.
    """

    def __init__(self, texts: Sequence[Sequence[str]], *, k1: float = BM25_K1) -> None:
        self._count = len(texts)
        self._numbers: dict[str, int] = {}
        # each occurrence as a single number: of its term, then of its text
        occurrences = [
            self._numbers.setdefault(term, len(self._numbers)) * self._count + ordinal
            for ordinal, terms in enumerate(texts)
            for term in terms
        ]
        places, counts = np.unique(np.array(occurrences, np.int64), return_counts=True)
        held, self._ordinals = np.divmod(places.astype(np.intp), max(1, self._count))
        sizes = np.bincount(held, minlength=len(self._numbers)).tolist()
        self._starts = array("i", accumulate(sizes, initial=0))  # by number of the term
        lengths = np.array([len(terms) for terms in texts], np.float32)
        mean = max(1.0, float(lengths.mean())) if texts else 1.0
        norms: FloatArray = k1 * (1 - BM25_B + BM25_B * lengths / mean)
        factors = np.array([self._rarity(size) * (k1 + 1) for size in sizes], np.float32)
        counted = counts.astype(np.float32)
        self._weights: FloatArray = np.repeat(factors, sizes) * counted / (counted + norms[self._ordinals])

    def __contains__(self, term: str) -> bool:
        return term in self._numbers

    def _rarity(self, size: int) -> float:
        """Return the inverse document frequency of a term that so many texts hold."""
        return math.log1p((self._count - size + 0.5) / (size + 0.5))

    def _places(self, term: str) -> slice | None:
        """Return where texts and weights of a term lie in the arrays; None if no text holds it."""
        number = self._numbers.get(term)
        return None if number is None else slice(self._starts[number], self._starts[number + 1])

    def score(self, terms: Iterable[str]) -> tuple[FloatArray, FloatArray]:
        """Return `(n,)` BM25 scores, and `(n,)` shares of the terms' rarity that each text holds."""
        scores, held = np.zeros((2, self._count), np.float32)
        total = 0.0
        for term in terms:
            places = self._places(term)
            rarity = self._rarity_at(places)
            total += rarity
            if places is not None:
                ordinals = self._ordinals[places]
                scores[ordinals] += self._weights[places]
                held[ordinals] += rarity
        return scores, held / np.float32(total or 1.0)

    def rarity_of(self, term: str) -> float:
        """Return the rarity of a term; that of one that no text holds is the greatest."""
        return self._rarity_at(self._places(term))

    def _rarity_at(self, places: slice | None) -> float:
        return math.log1p(self._count + 0.5) if places is None else self._rarity(places.stop - places.start)

    def rarest(self, terms: Iterable[str]) -> FloatArray:
        """Return `(n,)`: the largest rarity among the terms that each text holds, as a share of the greatest.

        A name that stands in a single text counts 1 there, however long the query is.
        """
        found = np.zeros(self._count, np.float32)
        for term in terms:
            places = self._places(term)
            if places is not None:
                ordinals = self._ordinals[places]
                found[ordinals] = np.maximum(found[ordinals], np.float32(self._rarity_at(places)))
        return found / np.float32(math.log1p((self._count - 0.5) / 1.5))

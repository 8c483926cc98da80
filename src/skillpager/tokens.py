"""Token counters: exact o200k_base counts if rs-bpe is installed, else estimates, labelled as such.

rs-bpe carries the o200k_base vocabulary inside its wheel, loads it in 50 ms and counts 30 MB/s;
tiktoken fetches the vocabulary from the network on first use. But rs-bpe takes 48 MB on disk and
has no wheel for every Python, so it is the extra `[tokens]`.
"""

import math
import re
from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from importlib.util import find_spec

from skillpager.display_text import encodable
from skillpager.errors import require_extra
from skillpager.types import Skill, TokenCounter

_PIECE = re.compile(r"[^\W\d_]+|\d+|\s+|[^\w\s]+|_+")
_WIDE = r"[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff\uf900-\ufaff]"

# tokens by kind of piece, fitted on o200k_base counts of public skills (benchmarks/README.md); wide and
# accented letters are rare there, so their figures come from prose
PER_BREAK = 1.2
PER_WORD, SHORT_WORD, PER_FURTHER_LETTER = 0.98, 5, 0.045
PER_THREE_DIGITS = 1.7
PER_SIGN, PER_FURTHER_SIGN = 0.75, 0.19
PER_WIDE_LETTER, PER_ACCENTED_LETTER = 0.72, 0.35

# o200k_base always ends a token here: after a line break, before a character that is neither space nor slash
_SEAM = re.compile(r"(?<=\n)(?=[^\s/])")

# longer texts are counted in parts; counts of short parts are cached, because pages share them
WHOLE_CHARS = 1_000
CACHED_PART_CHARS = 2_000
MAX_KEPT_PARTS = 8_192


class O200kCounter:
    """Exact o200k_base counts by rs-bpe, loaded by the first; special tokens are counted as plain text."""

    id = "o200k_base"
    exact = True

    def __init__(self) -> None:
        self._bpe = require_extra("rs_bpe.bpe", extra="tokens", purpose="Exact token counting")

    @cached_property
    def _count(self) -> Callable[[str], int]:
        count: Callable[[str], int] = self._bpe.openai.o200k_base().count
        return count

    @cached_property
    def _count_part(self) -> Callable[[str], int]:
        return lru_cache(MAX_KEPT_PARTS)(self._count)  # in C: there are very many short parts

    def count(self, text: str) -> int:
        """Return the number of o200k_base tokens of `text`; lone surrogates count as U+FFFD."""
        text = encodable(text)
        if len(text) <= WHOLE_CHARS:
            return self._count(text)
        return sum(
            self._count_part(part) if len(part) <= CACHED_PART_CHARS else self._count(part)
            for part in _SEAM.split(text)
        )


class EstimatedCounter:
    """Estimates of o200k_base counts from words, digits and signs, without a vocabulary."""

    id = "estimate-2"
    exact = False

    def count(self, text: str) -> int:
        """Return the estimated number of o200k_base tokens of `text`."""
        return math.ceil(sum(map(_estimate, _PIECE.findall(text))))


def _estimate(piece: str) -> float:
    if piece == " ":
        return 0.0
    if piece.isspace():
        return PER_BREAK
    if piece.isascii() and piece.isalpha():
        return PER_WORD + PER_FURTHER_LETTER * max(0, len(piece) - SHORT_WORD)
    if piece.isdigit():
        return PER_THREE_DIGITS * math.ceil(len(piece) / 3)
    if piece.isalpha():
        wide = len(re.findall(_WIDE, piece))
        return PER_WIDE_LETTER * wide + PER_ACCENTED_LETTER * (len(piece) - wide)
    return PER_SIGN + PER_FURTHER_SIGN * (len(piece) - 1)


@cache
def default_counter() -> TokenCounter:
    """Return the exact counter if rs-bpe is installed, else the estimating one."""
    return O200kCounter() if find_spec("rs_bpe") else EstimatedCounter()


def count_tokens(skill: Skill, counter: TokenCounter) -> int:
    """Return the tokens of a whole skill, without front matter and copies of files."""
    return sum(counter.count(file.text[file.body_start :]) for file in skill.files if not file.same_as)

"""How many tokens a text is: exact o200k_base where rs-bpe is installed, else a labelled estimate.

rs-bpe carries the o200k_base vocabulary inside its wheel, loads it in 50 ms and counts 30 MB/s;
tiktoken fetches the vocabulary from the network on first use. But rs-bpe takes 48 MB on disk and
has no wheel for every Python, so it is the extra `[tokens]`.
"""

import math
import re
from functools import cache
from importlib.util import find_spec

from skillpager.errors import require_extra
from skillpager.types import TokenCounter

_WORD = re.compile(r"[^\W\d_]+|\d+|\s+|[^\w\s]+|_+")
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff\uf900-\ufaff]")

# fitted on o200k_base counts of public skills (benchmarks/tokens.md): letters per further token
# of a word, digits per token, signs per token
LETTERS_PER_TOKEN = 7.2
DIGITS_PER_TOKEN = 3
SIGNS_PER_TOKEN = 2.4


class O200kCounter:
    """Exact o200k_base counts; special tokens count as the plain text they are."""

    id = "o200k_base"
    exact = True

    def __init__(self) -> None:
        """Load the vocabulary that rs-bpe carries.

        Raises:
            MissingExtraError: rs-bpe is not installed.
        """
        bpe = require_extra("rs_bpe.bpe", extra="tokens", purpose="Exact token counting")
        self._count = bpe.openai.o200k_base().count

    def count(self, text: str) -> int:
        """Return the number of o200k_base tokens of `text`."""
        return int(self._count(text))


class EstimatedCounter:
    """An estimate of o200k_base counts from words, digits and signs; no vocabulary needed."""

    id = "estimate-1"
    exact = False

    def count(self, text: str) -> int:
        """Return about the number of o200k_base tokens of `text`."""
        return math.ceil(sum(map(_estimate, _WORD.findall(text))))


def _estimate(piece: str) -> float:
    if piece.isspace():
        return 0.0 if piece == " " else 1.0
    wide = len(_WIDE.findall(piece)) if not piece.isascii() else 0
    if wide:
        return 0.62 * wide + (len(piece) - wide) / 2
    if piece.isdigit():
        return math.ceil(len(piece) / DIGITS_PER_TOKEN)
    if piece.isalpha():
        letters = LETTERS_PER_TOKEN if piece.isascii() else LETTERS_PER_TOKEN / 2
        return 1.0 + max(0.0, len(piece) - letters) / letters
    return math.ceil(len(piece) / SIGNS_PER_TOKEN)


@cache
def default_counter() -> TokenCounter:
    """Return the exact counter when rs-bpe is installed, else the estimate."""
    return O200kCounter() if find_spec("rs_bpe") else EstimatedCounter()

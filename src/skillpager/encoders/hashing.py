"""A deterministic encoder without weights: texts that share words or parts of words are close.

Tests use it instead of a real encoder; it knows nothing of meaning.

Reference: Weinberger et al. 2009, Feature Hashing for Large Scale Multitask Learning, arXiv:0902.2206.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from skillpager.types import FloatArray

DIM = 256
WORD_WEIGHT = 2.0  # a whole word says more than any of its parts
# letters of scripts without spaces: there one and two characters take the place of words
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_WORD = re.compile(rf"{_UNSPACED.pattern}+|(?:(?!{_UNSPACED.pattern})\w)+")


class HashingEncoder:
    """Signed hashes of words and character n-grams, counted and scaled to unit length.

    A text is normalised (NFKC, case folded) and cut into words. A word counts `WORD_WEIGHT`, and each three
    or four neighbouring characters of it, its edges included, count one. In scripts without spaces each one
    or two neighbouring characters count one. A feature's BLAKE2 hash gives its place in the row and its sign.
    A text without features has the first unit vector as its row.
    """

    id = f"hashing-1:{DIM}"
    dim = DIM

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), 256)` float32, rows unit length, in the order of `texts`."""
        hashed = cache(_hashed)
        rows = np.zeros((len(texts), DIM))
        for row, text in zip(rows, texts, strict=True):
            words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
            for word, count in Counter(words).items():
                places, weights = hashed(word)
                np.add.at(row, places, count * weights)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows[norms[:, 0] == 0, 0] = 1
        return np.asarray(rows / np.where(norms == 0, 1, norms), np.float32)

    def encode_query(self, text: str) -> FloatArray:
        """Return `(256,)` float32, unit length: the row that `encode_documents` gives."""
        return self.encode_documents([text]).ravel()


def _hashed(word: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return places in the row and signed weights of a word's features."""
    features, sizes = [(word, WORD_WEIGHT)], (3, 4)
    if _UNSPACED.match(word):
        features, sizes = [], (1, 2)
    else:
        word = f"<{word}>"
    for size in sizes:
        features += [(word[start : start + size], 1.0) for start in range(len(word) - size + 1)]
    digests = (blake2b(part.encode("utf-8", "replace"), digest_size=8).digest() for part, _ in features)
    numbers = [int.from_bytes(digest, "little") for digest in digests]
    places = np.array([number % DIM for number in numbers], np.intp)
    # the highest bit gives the sign, for the lower ones give the place
    signs = np.array([1.0 if number >> 63 else -1.0 for number in numbers])
    return places, signs * [weight for _, weight in features]

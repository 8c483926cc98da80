"""One embedding per skill: an exact scan of binary codes, and cosines from half-precision rows.

A code holds the signs of a row, 48 bytes at 384 dimensions. The scan reads all of them, which needs no index
that must be built and kept true: 100,000 codes take about 3 ms.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skillpager.types import Encoder, FloatArray

# of name and description together: what the encoder reads in a hundredth of a second
MAX_EMBEDDED_CHARS = 600
WORD_BITS = 64

HalfArray = NDArray[np.float16]
CodeArray = NDArray[np.uint64]


def embed_skills(encoder: Encoder, described: Sequence[tuple[str, str]]) -> HalfArray:
    """Return `(n, dim)` float16 unit rows of skills, each given as its name and description.

    Raises:
        EncoderError: The encoder fails.
        ValueError: The encoder returns the wrong number of rows, or rows of the wrong length.
    """
    texts = [
        f"{name.replace('-', ' ')}: {description}"[:MAX_EMBEDDED_CHARS] for name, description in described
    ]
    if not texts:
        return np.empty((0, encoder.dim), np.float16)
    rows = encoder.encode_documents(texts)
    if rows.shape != (len(texts), encoder.dim):
        raise ValueError(f"{encoder.id} returned {rows.shape}, expected {(len(texts), encoder.dim)}")
    return rows.astype(np.float16)


def codes_of(rows: HalfArray | FloatArray) -> CodeArray:
    """Return `(words, n)` uint64: the signs of each row, 64 to a word, so that a scan reads whole columns."""
    bits = np.packbits(rows > 0, axis=1)
    padded = np.zeros((len(rows), -(-rows.shape[1] // WORD_BITS) * 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


class VectorIndex:
    """The embeddings of the skills of a library, which may lie in several parts.

    Args:
        rows: Of each part: `(m, dim)` float16 unit rows.
        codes: Of each part: the codes of the rows.
        places: `(n,)`: the row of each skill, the parts one behind the other; -1 for a skill without one.
    """

    def __init__(
        self, rows: Sequence[HalfArray], codes: Sequence[CodeArray], places: NDArray[np.intp]
    ) -> None:
        self._rows = rows
        self._places = places
        self._starts = np.cumsum([0, *map(len, rows)])
        self.known: NDArray[np.bool_] = places >= 0
        self._embedded = np.flatnonzero(self.known)
        together = np.concatenate(codes, axis=1) if codes else np.empty((0, 0), np.uint64)
        self._codes = together[:, places[self._embedded]]

    def nearest(self, query: FloatArray, most: int) -> NDArray[np.intp]:
        """Return at most `most` skills whose codes differ least from that of `(dim,)` `query`; unordered."""
        if len(self._embedded) <= most:
            return self._embedded
        distances = np.bitwise_count(self._codes ^ codes_of(query[None])).sum(0, dtype=np.uint16)
        # of skills at the same distance the earlier one is nearer, on every machine
        keys = distances.astype(np.int64) * len(distances) + np.arange(len(distances))
        found: NDArray[np.intp] = self._embedded[np.argpartition(keys, most - 1)[:most]]
        return found

    def cosines(self, query: FloatArray, skills: NDArray[np.intp]) -> FloatArray:
        """Return `(len(skills),)` cosines; 0 for a skill without a row."""
        cosines = np.zeros(len(skills), np.float32)
        places = self._places[skills]
        parts = np.searchsorted(self._starts, places, "right") - 1
        for part in np.unique(parts[places >= 0]):
            mine = (parts == part) & (places >= 0)
            cosines[mine] = self._rows[part][places[mine] - self._starts[part]].astype(np.float32) @ query
        return cosines

"""Parts of a pager that cost next to nothing, for tests of what surrounds them."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from skillpager import SkillPager
from skillpager.settings import Settings
from skillpager.types import (
    Classification,
    FloatArray,
    Fragment,
    NodeType,
    Skill,
    SkillIndex,
    Store,
    StoreEntry,
)

_TYPES = tuple(NodeType)


class DigestEncoder:
    """Unit rows made of a digest of the text: no two texts are alike, and equal ones are equal."""

    id = "digest-8"
    dim = 8

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), 8)` float32 unit rows."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        data = b"".join(
            hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=self.dim).digest() for text in texts
        )
        rows = np.frombuffer(data, np.uint8).reshape(len(texts), self.dim).astype(np.float32) - 127.5
        unit: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit

    def encode_query(self, text: str) -> FloatArray:
        """Return `(8,)` float32, unit length."""
        row: FloatArray = self.encode_documents([text])[0]
        return row


class TurnsClassifier:
    """Gives the six types in turn."""

    id = "turns-1"
    embedding = None

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return one verdict per fragment."""
        return [Classification(_TYPES[fragment.ordinal % len(_TYPES)], 1.0) for fragment in fragments]


class NoStore:
    """A `Store` that keeps nothing."""

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return None."""
        return None

    def save(self, index: SkillIndex) -> None:
        """Do nothing."""

    def entries(self) -> list[StoreEntry]:
        """Return an empty list."""
        return []


def plain_pager(folder: Path, store: Store | Path | None = None) -> SkillPager:
    """Return a pager of these parts; its strategy is MMR."""
    return SkillPager(
        encoder=DigestEncoder(),
        classifier=TurnsClassifier(),
        store=store,
        settings=Settings(cache_dir=folder),
    )

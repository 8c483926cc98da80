"""The table and statements that stores of indexes have in common, whatever their database."""

import hashlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillpager.errors import StoreError
from skillpager.stores.blob import DamagedBlobError, decode, encode
from skillpager.types import Skill, SkillIndex, StoreEntry

logger = logging.getLogger(__name__)

Row = tuple[Any, ...]

# a load notes its time only when the last note is older: most loads write nothing
USED_SECONDS = 3600.0
# columns of the table of indexes, but for its `id` and `data`, in types that SQLite and PostgreSQL know
COLUMNS = """key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, root TEXT NOT NULL, encoder TEXT NOT NULL,
    digest TEXT NOT NULL, nodes BIGINT NOT NULL, size BIGINT NOT NULL, created DOUBLE PRECISION NOT NULL,
    used DOUBLE PRECISION NOT NULL, checksum TEXT NOT NULL"""

# No checksum covers the time of last use: a damaged one counts as 0.
_SELECT = "SELECT id, name, checksum, data, ? - used FROM indexes WHERE key = ?"
_INSERT = """
    INSERT INTO indexes (key, name, root, encoder, digest, nodes, size, created, used, checksum, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""
_NOTE_USE = "UPDATE indexes SET used = ? WHERE id = ?"
_ENTRIES = """
    SELECT key, name, root, nodes, size, created, used + 0.0 FROM indexes ORDER BY used + 0.0 DESC, id DESC"""
_EVICT = """
    DELETE FROM indexes WHERE id IN (
        SELECT id FROM (
            SELECT id, sum(size) OVER (ORDER BY used DESC, id DESC) AS kept FROM indexes
        ) AS entries WHERE kept > ?
    ) RETURNING used, id, key"""


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """Damage that a store found in an entry, or in its file.

    Attributes:
        key: Cache key of the entry; empty for the file.
        name: Name of the skill, or path of the file.
        problem: The damage, in words.
    """

    key: str
    name: str
    problem: str


class SqlStore(ABC):
    """Indexes as blobs in the table of an SQL database, with a checksum that each load verifies.

    An index never changes: of two that are saved under one key, the first stays. Methods raise `StoreError`
    where the database cannot be opened, read or (to save or delete) written.

    Attributes:
        max_bytes: Bytes that all indexes may take; None for no limit.
    """

    max_bytes: int | None

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the store is, without any secret."""

    @abstractmethod
    def probe(self) -> str:
        """Return in words what can be done with the store; make what is missing for that."""

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; using the store again opens others."""

    @abstractmethod
    def _read(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a statement, whose values are marked `?`."""

    @abstractmethod
    def _write(self, *statements: tuple[str, Sequence[object]], wait: bool = True) -> list[Row]:
        """Execute statements, all or nothing, and return all their rows; `wait` for locks of others."""

    def exists(self) -> bool:
        """Return False if there is nothing to look into; nothing is made."""
        return True

    @property
    def size(self) -> int:
        """Bytes of all indexes; the database takes a little more."""
        return sum(entry.size for entry in self.entries()) if self.exists() else 0

    def load(self, key: str, skill: Skill) -> SkillIndex | None:
        """Return the index of `skill` stored under `key`, or None; a damaged one is logged and deleted."""
        now = time.time()
        found = self._read(_SELECT, (now, key))
        if not found:
            return None
        ((id_, name, checksum, data, idle),) = found
        try:
            _check(data, checksum)
            index = decode(data, skill)
        except DamagedBlobError as problem:
            logger.warning(
                'The index of "%s" (%s) in %s is damaged: %s. It is deleted and will be rebuilt.',
                *(name, key, self.place, problem),
            )
            try:  # by its number: another may have been stored under its key since
                self._write(("DELETE FROM indexes WHERE id = ?", (id_,)))
            except StoreError as error:
                logger.warning("The damaged index cannot be deleted: %s", error)
            return None
        if idle >= USED_SECONDS:
            try:
                self._write((_NOTE_USE, (now, id_)), wait=False)
            except StoreError as error:
                # Only the order of eviction depends on it: no reason to wait, or to fail.
                logger.debug("The use of an index is not noted: %s", error)
        return index

    def save(self, index: SkillIndex) -> None:
        """Write `index` atomically; then delete the least recently used ones that are over `max_bytes`.

        An index that alone is larger than `max_bytes` is not stored, which is logged.

        Raises:
            StoreError: The store is read-only, locked for too long, away, or the disk is full.
            ValueError: `index` breaks its own contract.
        """
        data, skill = encode(index), index.skill
        if self.max_bytes is not None and len(data) > self.max_bytes:
            logger.warning(
                'The index of "%s" is not stored: its %d bytes are more than the %d that %s may hold.',
                *(skill.name, len(data), self.max_bytes, self.place),
            )
            return
        shown = map(_storable, (skill.name, str(skill.root or ""), index.recipe.encoder))
        numbers = (len(index.nodes), len(data), now := time.time(), now)
        values = (index.key, *shown, skill.files[0].digest, *numbers, _checksum(data), data)
        statements: list[tuple[str, Sequence[object]]] = [(_INSERT, values)]
        if self.max_bytes is not None:
            statements.append((_EVICT, (self.max_bytes,)))
        self._write(*statements)

    def entries(self) -> list[StoreEntry]:
        """Return every entry, most recently used first."""
        return [StoreEntry(*row) for row in self._read(_ENTRIES)]

    def remove(self, keys: Sequence[str]) -> int:
        """Delete entries; return how many there were."""
        return len(
            self._write(*(("DELETE FROM indexes WHERE key = ? RETURNING key", (key,)) for key in keys))
        )

    def evict(self, max_bytes: int) -> list[str]:
        """Delete least recently used entries until `max_bytes` suffice; return their keys in that order."""
        return [key for _, _, key in sorted(self._write((_EVICT, (max_bytes,))))]

    def clear(self) -> None:
        """Delete every entry."""
        self._write(("DELETE FROM indexes", ()))

    def verify(self) -> list[DamagedEntry]:
        """Return what is damaged, by reading everything; nothing is changed."""
        damaged = []
        for entry in self.entries():
            try:
                for _, _, checksum, data, _ in self._read(_SELECT, (0.0, entry.key)):
                    _check(data, checksum)
            except DamagedBlobError as problem:
                damaged.append(DamagedEntry(entry.key, entry.name, str(problem)))
        return damaged


class NoStore:
    """A `Store` for strangers' documents: in a real store they would push out the owner's indexes."""

    def load(self, key: str, skill: Skill) -> SkillIndex | None:  # noqa: ARG002 - the Protocol has them
        """Return None."""
        return None

    def save(self, index: SkillIndex) -> None:
        """Do nothing."""

    def entries(self) -> list[StoreEntry]:
        """Return an empty list."""
        return []


def _check(data: object, checksum: str) -> None:
    """Raise `DamagedBlobError` unless bytes have their checksum."""
    if not isinstance(data, bytes) or _checksum(data) != checksum:
        raise DamagedBlobError("its checksum does not match")


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _storable(text: str) -> str:
    """Return a text for a column that is only listed: what no database can hold is escaped."""
    return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")

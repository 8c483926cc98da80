"""The nearest nodes of skills whose indexes are stored: a skill may hold what its description leaves out."""

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from skillpager.caches import LRUCache
from skillpager.errors import StoreError
from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.routes import Route, RoutedSkill
from skillpager.stores import SqliteStore
from skillpager.types import FloatArray, Store

if TYPE_CHECKING:
    from skillpager.stores.postgres import PostgresStore

# bytes of rows that stay in memory: those of about 600 skills
MAX_KEPT_BYTES = 64 * 1024**2

_NEW = """SELECT indexes.id, root, digest FROM indexes
    JOIN files ON files.index_id = indexes.id AND files.ordinal = 0
    WHERE indexes.id > ? AND encoder = ? ORDER BY indexes.id"""
_ROWS = "SELECT dim, data FROM indexes JOIN embeddings ON index_id = id WHERE id = ?"
_HEADING = "SELECT heading_path FROM nodes WHERE index_id = ? AND ordinal = ?"


class StoredNodes(ABC):
    """The embeddings of nodes in an index store; a store that fails has none.

    Args:
        encoder: Id of the encoder whose embeddings are read.
    """

    def __init__(self, encoder: str) -> None:
        self._encoder = encoder
        self._rows = LRUCache[int, FloatArray](MAX_KEPT_BYTES, lambda rows: rows.nbytes)

    def told(self, route: Route, embed: Callable[[], FloatArray]) -> Route:
        """Return a route whose skills with a stored index tell their nodes nearest to the query.

        Args:
            route: The route.
            embed: Returns the `(dim,)` embedding of the query; not called without such skills.
        """
        try:
            ids = self._ids([routed.skill for routed in route.skills])
            if all(id_ is None for id_ in ids):
                return route
            rows = self._read([id_ for id_ in ids if id_ is not None])
            query = embed()
            nearest = {id_: int((each @ query).argmax()) for id_, each in rows.items() if len(each)}
            headings = self._headings(nearest)
        except StoreError:
            return route

        def with_node(routed: RoutedSkill, id_: int | None) -> RoutedSkill:
            if id_ is None or id_ not in nearest:  # deleted since
                return routed
            cosine = float((rows[id_] @ query)[nearest[id_]])
            heading = " › ".join(json.loads(headings[id_])) if id_ in headings else ""
            return replace(routed, node_cosine=cosine, node=heading)

        return replace(route, skills=tuple(with_node(*each) for each in zip(route.skills, ids, strict=True)))

    def _read(self, ids: Sequence[int]) -> dict[int, FloatArray]:
        """Return `(nodes, dim)` rows of each index, from memory or the store."""
        found = {id_: rows for id_ in ids if (rows := self._rows.get(id_)) is not None}
        for id_, (dim, data) in self._select([id_ for id_ in ids if id_ not in found]).items():
            found[id_] = self._rows.put(id_, np.frombuffer(data, "<f4").reshape(-1, dim))
        return found

    @abstractmethod
    def _ids(self, skills: Sequence[FoundSkill]) -> list[int | None]:
        """Return the number of the stored index of each skill; None for a skill without one."""

    @abstractmethod
    def _select(self, ids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        """Return width and bytes of the embeddings of indexes."""

    @abstractmethod
    def _headings(self, nodes: Mapping[int, int]) -> dict[int, str]:
        """Return the heading path of one node of each index, as JSON."""


class SqliteNodes(StoredNodes):
    """The embeddings of nodes in a file.

    Args:
        store: The file.
        encoder: Id of the encoder whose embeddings are read.
    """

    def __init__(self, store: SqliteStore, encoder: str) -> None:
        super().__init__(encoder)
        self._store = store
        self._last = 0  # ids are never used twice, so later ones are new
        self._known: dict[tuple[str, str], int] = {}  # by root and digest of SKILL.md
        self._lock = threading.Lock()

    def _ids(self, skills: Sequence[FoundSkill]) -> list[int | None]:
        with self._lock:
            for id_, root, digest in self._store.read(_NEW, (self._last, self._encoder)):
                self._known[root, digest] = self._last = id_
        return [self._known.get((os.path.realpath(skill.path), skill.digest)) for skill in skills]

    def _select(self, ids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        found = {id_: self._store.read(_ROWS, (id_,)) for id_ in ids}
        return {id_: (dim, data) for id_, rows in found.items() for dim, data in rows}

    def _headings(self, nodes: Mapping[int, int]) -> dict[int, str]:
        found = {id_: self._store.read(_HEADING, (id_, node)) for id_, node in nodes.items()}
        return {id_: heading for id_, rows in found.items() for (heading,) in rows}


class PostgresNodes(StoredNodes):
    """The embeddings of nodes in a database: for the skills of a route, not for all of a team's.

    An index is found by the key that its publisher says, or by name and text of the skill, whose folder
    differs from host to host.

    Args:
        store: The store.
        encoder: Id of the encoder whose embeddings are read.
    """

    def __init__(self, store: "PostgresStore", encoder: str) -> None:
        super().__init__(encoder)
        self._store = store

    def _ids(self, skills: Sequence[FoundSkill]) -> list[int | None]:
        keys = [skill.published.key for skill in skills if skill.published is not None]
        names = [skill.name for skill in skills if skill.published is None]
        found = self._store.find_indexes(keys, names, self._encoder)
        by_key = {key: id_ for id_, key, _, _ in found}
        by_text = {(name, digest): id_ for id_, _, name, digest in found}
        return [
            by_text.get((skill.name, skill.digest))
            if skill.published is None
            else by_key.get(skill.published.key)
            for skill in skills
        ]

    def _select(self, ids: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        return self._store.embeddings(ids) if ids else {}

    def _headings(self, nodes: Mapping[int, int]) -> dict[int, str]:
        return self._store.heading_paths(nodes)


def stored_nodes(store: Store, encoder: Callable[[], str]) -> StoredNodes | None:
    """Return the nodes of a store; None for one that keeps nothing, or is not ours.

    Args:
        store: The store.
        encoder: Returns the id of the encoder whose embeddings are read.
    """
    if isinstance(store, SqliteStore):
        return SqliteNodes(store, encoder())
    # psycopg, which the class would import, is there only for those who have such a store
    is_postgres = hasattr(store, "find_indexes")
    return PostgresNodes(cast("PostgresStore", store), encoder()) if is_postgres else None

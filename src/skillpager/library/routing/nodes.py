"""The nearest nodes of skills whose indexes are stored: a skill may hold what its description leaves out."""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from skillpager.errors import StoreError
from skillpager.library.routing.routes import Route, RoutedSkill
from skillpager.memory import LRUCache
from skillpager.stores import SqliteStore
from skillpager.types import FloatArray

# bytes of rows that stay in memory: those of about 600 skills
MAX_KEPT_BYTES = 64 * 1024**2

_NEW = """SELECT indexes.id, root, digest FROM indexes
    JOIN files ON files.index_id = indexes.id AND files.ordinal = 0
    WHERE indexes.id > ? AND encoder = ? ORDER BY indexes.id"""
_ROWS = "SELECT dim, data FROM indexes JOIN embeddings ON index_id = id WHERE id = ?"
_HEADING = "SELECT heading_path FROM nodes WHERE index_id = ? AND ordinal = ?"


class StoredNodes:
    """The embeddings of nodes in an index store; a store that fails has none.

    Args:
        store: The store.
        encoder: Id of the encoder whose embeddings are read.
    """

    def __init__(self, store: SqliteStore, encoder: str) -> None:
        self._store = store
        self._encoder = encoder
        self._last = 0  # ids are never used twice, so later ones are new
        self._ids: dict[tuple[str, str], int] = {}  # by root and digest of SKILL.md
        self._rows = LRUCache[int, FloatArray](MAX_KEPT_BYTES, lambda rows: rows.nbytes)
        self._lock = threading.Lock()

    def told(self, route: Route, embed: Callable[[], FloatArray]) -> Route:
        """Return a route whose skills with a stored index tell their nodes nearest to the query.

        Args:
            route: The route.
            embed: Returns the `(dim,)` embedding of the query; not called without such skills.
        """
        try:
            self._refresh()
            if all(self._id_of(routed) is None for routed in route.skills):
                return route
            query = embed()
            return replace(route, skills=tuple(self._with_node(routed, query) for routed in route.skills))
        except StoreError:
            return route

    def _refresh(self) -> None:
        """Learn which indexes were stored since the last call."""
        with self._lock:
            for id_, root, digest in self._store.read(_NEW, (self._last, self._encoder)):
                self._ids[root, digest] = self._last = id_

    def _id_of(self, routed: RoutedSkill) -> int | None:
        return self._ids.get((os.path.realpath(routed.skill.path), routed.skill.digest))

    def _with_node(self, routed: RoutedSkill, query: FloatArray) -> RoutedSkill:
        id_ = self._id_of(routed)
        if id_ is None:
            return routed
        rows = self._rows.get_or_make(id_, partial(self._read, id_))
        if not len(rows):  # deleted since
            return routed
        cosines = rows @ query
        best = int(cosines.argmax())
        found = self._store.read(_HEADING, (id_, best))
        heading = " › ".join(json.loads(found[0][0])) if found else ""
        return replace(routed, node_cosine=float(cosines[best]), node=heading)

    def _read(self, id_: int) -> FloatArray:
        found = self._store.read(_ROWS, (id_,))
        if not found:
            return np.empty((0, 0), np.float32)
        ((dim, data),) = found
        return np.frombuffer(data, "<f4").reshape(-1, dim)

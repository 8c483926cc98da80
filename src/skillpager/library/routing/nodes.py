"""The nearest nodes of skills whose indexes are stored: a skill may hold what its description leaves out."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from skillpager.caches import LRUCache
from skillpager.errors import StoreError
from skillpager.library.discovery import FoundSkill
from skillpager.library.routing.routes import Route, RoutedSkill
from skillpager.stores.sql import SqlStore
from skillpager.types import FloatArray, Store

# bytes of rows that stay in memory: those of about 600 skills
MAX_KEPT_BYTES = 64 * 1024**2

NodeRows = tuple[FloatArray, list[tuple[str, ...]]]


class StoredNodes:
    """The embeddings of nodes in an index store; a store that fails has none.

    Args:
        store: The store.
        encoder: Id of the encoder whose embeddings are read.
    """

    def __init__(self, store: SqlStore, encoder: str) -> None:
        self._store = store
        self._encoder = encoder
        self._rows = LRUCache[str, NodeRows](MAX_KEPT_BYTES, lambda rows: rows[0].nbytes)

    def told(self, route: Route, embed: Callable[[], FloatArray]) -> Route:
        """Return a route whose skills with a stored index tell their nodes nearest to the query.

        Args:
            route: The route.
            embed: Returns the `(dim,)` embedding of the query; not called without such skills.
        """
        try:
            keys = self._keys([routed.skill for routed in route.skills])
            rows = [None if key is None else self._read(key) for key in keys]
        except StoreError:
            return route
        if all(each is None or not len(each[0]) for each in rows):
            return route
        query = embed()

        def with_node(routed: RoutedSkill, found: NodeRows | None) -> RoutedSkill:
            if found is None or not len(found[0]):
                return routed
            cosines = found[0] @ query
            nearest = int(cosines.argmax())
            return replace(routed, node_cosine=float(cosines[nearest]), node=" › ".join(found[1][nearest]))

        return replace(route, skills=tuple(with_node(*each) for each in zip(route.skills, rows, strict=True)))

    def _keys(self, skills: Sequence[FoundSkill]) -> list[str | None]:
        """Return the cache key of each skill's stored index; None for a skill without one.

        That of a published skill is known. Others have the name and the text of the skill, if possible in its
        folder, which differs from host to host.
        """
        published = {skill.published.key for skill in skills if skill.published is not None}
        digests = {skill.digest for skill in skills if skill.published is None}
        found = self._store.find(self._encoder, keys=sorted(published), digests=sorted(digests))
        known: dict[object, str] = {}
        for key, name, root, digest in found:
            known |= {key: key, (name, digest): key, (name, digest, root): key}

        def key_of(skill: FoundSkill) -> str | None:
            if skill.published is not None:
                return known.get(skill.published.key)
            text = (skill.name, skill.digest)
            return known.get((*text, os.path.realpath(skill.path))) or known.get(text)

        return [key_of(skill) for skill in skills]

    def _read(self, key: str) -> NodeRows | None:
        found = self._rows.get(key)
        if found is None and (stored := self._store.rows(key)) is not None:
            found = self._rows.put(key, stored)
        return found


def stored_nodes(store: Store, encoder: Callable[[], str]) -> StoredNodes | None:
    """Return the nodes of a store; None for one that keeps nothing, or is not ours.

    Args:
        store: The store.
        encoder: Returns the id of the encoder whose embeddings are read.
    """
    return StoredNodes(store, encoder()) if isinstance(store, SqlStore) else None

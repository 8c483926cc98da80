"""What one process keeps between calls, within bounds and for all threads: indexes, pages, queries."""

import threading
from collections import OrderedDict

from skillpager.pages.render import PageRenderer
from skillpager.sources import Stamps
from skillpager.types import Encoder, FloatArray, SkillIndex, Style, TokenCounter

# nodes of all indexes together (about 3 kB each), renderers, and queries
MAX_KEPT_NODES = 50_000
MAX_KEPT_PAGES = 256
MAX_KEPT_QUERIES = 1_024


class Kept:
    """Bounded caches, least recently used out first; the newest index always stays."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.RLock()
        self._indexes: OrderedDict[str, SkillIndex] = OrderedDict()
        self._sources: dict[tuple[str, str], tuple[Stamps, str]] = {}
        self._pages: OrderedDict[tuple[str, Style, str], PageRenderer] = OrderedDict()
        self._queries: OrderedDict[tuple[str, str], FloatArray] = OrderedDict()

    def index(self, key: str) -> SkillIndex | None:
        """Return the index kept under `key`."""
        with self._lock:
            if key in self._indexes:
                self._indexes.move_to_end(key)
            return self._indexes.get(key)

    def index_at(self, place: tuple[str, str]) -> SkillIndex | None:
        """Return the index kept for a path and scope while none of its files has changed."""
        known = self._sources.get(place)
        return None if known is None or known[0].changed() else self.index(known[1])

    def keep(self, index: SkillIndex) -> SkillIndex:
        """Keep an index and return it; forget older ones over the bound."""
        with self._lock:
            self._indexes[index.key] = index
            self._indexes.move_to_end(index.key)
            while len(self._indexes) > 1 and self._nodes() > MAX_KEPT_NODES:
                self._forget(next(iter(self._indexes)))
        return index

    def keep_source(self, place: tuple[str, str], stamps: Stamps | None, key: str) -> None:
        """Remember which index a path and scope lead to; nothing when the stamps cannot be trusted."""
        with self._lock:
            if stamps is None:
                self._sources.pop(place, None)
            else:
                self._sources[place] = (stamps, key)

    def page(self, index: SkillIndex, counter: TokenCounter, style: Style, show: str) -> PageRenderer:
        """Return the page renderer of an index, made on first use."""
        key = (index.key, style, show)
        with self._lock:
            page = self._pages.get(key)
            if page is None or page.index is not index:
                page = self._pages[key] = PageRenderer(index, counter, style=style, show=show)
            self._pages.move_to_end(key)
            if len(self._pages) > MAX_KEPT_PAGES:
                self._pages.popitem(last=False)
            return page

    def query(self, text: str, encoder: Encoder) -> FloatArray:
        """Return the embedding of a query, encoding it when it is not kept."""
        key = (encoder.id, text)
        with self._lock:
            row = self._queries.get(key)
        if row is None:
            row = encoder.encode_query(text)
            with self._lock:
                self._queries[key] = row
                if len(self._queries) > MAX_KEPT_QUERIES:
                    self._queries.popitem(last=False)
        return row

    def _nodes(self) -> int:
        return sum(len(index.nodes) for index in self._indexes.values())

    def _forget(self, key: str) -> None:
        del self._indexes[key]
        self._sources = {place: known for place, known in self._sources.items() if known[1] != key}
        for page in [page for page in self._pages if page[0] == key]:
            del self._pages[page]

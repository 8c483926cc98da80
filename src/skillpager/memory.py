"""Bounded in-memory caches of one process (indexes, page renderers, query embeddings), and file stamps."""

import time
from dataclasses import dataclass
from pathlib import Path

from skillpager.lru import LRUCache
from skillpager.pages.render import PageRenderer
from skillpager.types import Encoder, FloatArray, Skill, SkillIndex, Style, TokenCounter

# nodes of all indexes together, about 3 kB each; renderers, which hold their index, have the same bound
MAX_KEPT_NODES = 50_000
MAX_KEPT_PATHS = 10_000
MAX_KEPT_QUERIES = 1_024

# a file written this recently may change again within the resolution of its time stamp
SETTLED_NS = 2_000_000_000

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class FileStamps:
    """Modification time, size and inode of a skill's files and of their folders, taken when it was read."""

    paths: tuple[Path, ...]
    stamps: tuple[Stamp, ...]

    def changed(self) -> bool:
        """Return whether any of them differs now, or is gone."""
        try:
            return tuple(map(_stamp, self.paths)) != self.stamps
        except OSError:
            return True


def stamp_files(skill: Skill) -> FileStamps | None:
    """Return the stamps of a skill that was just read; None while a file is too fresh to be trusted."""
    if skill.root is None:
        return None
    files = [skill.root / file.path for file in skill.files]
    paths = tuple(dict.fromkeys([*files, *(path.parent for path in files)]))
    try:
        stamps = tuple(map(_stamp, paths))
    except OSError:
        return None
    settled = time.time_ns() - SETTLED_NS
    return FileStamps(paths, stamps) if all(stamp[0] < settled for stamp in stamps) else None


class ProcessMemory:
    """What a pager keeps in memory between calls. Safe for many threads.

    Attributes:
        indexes: Indexes by cache key.
    """

    def __init__(self) -> None:
        self.indexes = LRUCache[str, SkillIndex](MAX_KEPT_NODES, lambda index: len(index.nodes))
        self._paths = LRUCache[tuple[str, str], tuple[FileStamps, str]](MAX_KEPT_PATHS)
        self._renderers = LRUCache[tuple[int, Style, str], PageRenderer](
            MAX_KEPT_NODES, lambda renderer: len(renderer.index.nodes)
        )
        self._queries = LRUCache[tuple[str, str], FloatArray](MAX_KEPT_QUERIES)

    def index_at(self, path: str, scope: str) -> SkillIndex | None:
        """Return the index of a path and scope while none of its files has changed."""
        known = self._paths.get((path, scope))
        return None if known is None or known[0].changed() else self.indexes.get(known[1])

    def remember_path(self, path: str, scope: str, stamps: FileStamps | None, key: str) -> None:
        """Remember the cache key of a path and scope; not without stamps, by which a change is noticed."""
        if stamps is not None:
            self._paths.put((path, scope), (stamps, key))

    def renderer(self, index: SkillIndex, counter: TokenCounter, style: Style, show: str) -> PageRenderer:
        """Return the page renderer of an index, made on first use."""
        # a renderer keeps its index alive, so that no other index gets the same id
        return self._renderers.get_or_make(
            (id(index), style, show), lambda: PageRenderer(index, counter, style=style, show=show)
        )

    def embedding(self, text: str, encoder: Encoder) -> FloatArray:
        """Return `(dim,)` float32, unit length: the embedding of a query, computed on first use."""
        return self._queries.get_or_make((encoder.id, text), lambda: encoder.encode_query(text))


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino

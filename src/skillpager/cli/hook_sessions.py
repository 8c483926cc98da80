"""Remembers what `skillpager hook` has shown in each session: a file of node ids each, in the cache."""

import hashlib
import json
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from skillpager.files import make_private_folder, read_bounded, write_file

FOLDER = "hook"
# sessions that are remembered, and versions of skills in each; the least recently used are dropped
MAX_SESSIONS = 100
MAX_SKILLS = 64
MAX_BYTES = 1_000_000


class ShownNodes:
    """The nodes that a session was shown, by the key of their index.

    What cannot be read or written is as if nothing had been shown: the nodes are then shown again.

    Args:
        cache: The cache folder.
        session: The agent's id of its session; empty for a session that is not remembered.
    """

    def __init__(self, cache: Path, session: str) -> None:
        name = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:24]
        self._file = cache / FOLDER / f"{name}.json" if session else None
        self._nodes: dict[str, list[str]] = {}
        with suppress(OSError, ValueError, TypeError, AttributeError):
            data = json.loads(read_bounded(self._file, MAX_BYTES)) if self._file else {}
            self._nodes = {str(key): [str(node) for node in nodes] for key, nodes in data.items()}

    def of(self, key: str) -> Collection[str]:
        """Return the ids of the nodes of this index that were shown."""
        return frozenset(self._nodes.get(key, ()))

    def add(self, shown: Iterable[tuple[str, Collection[str]]]) -> None:
        """Record that nodes are shown: their ids by the key of their index."""
        if self._file is None:
            return
        for key, nodes in shown:
            known = self._nodes.pop(key, [])  # the skill used last stands last
            self._nodes[key] = [*known, *(node for node in nodes if node not in known)]
        kept = dict(list(self._nodes.items())[-MAX_SKILLS:])
        with suppress(OSError):
            make_private_folder(self._file.parent)
            write_file(self._file, json.dumps(kept))
            files = sorted(self._file.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)
            for old in files[:-MAX_SESSIONS]:
                old.unlink(missing_ok=True)

"""A shelf: the segments that a process has at hand, from the catalog or its own memory."""

import logging
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from skillpager.errors import StoreError
from skillpager.library.routing.catalog import SMALL, Catalog
from skillpager.library.routing.segments import KeyArray, Segment

logger = logging.getLogger(__name__)


class Shelf:
    """The segments of a library. A catalog that fails costs a warning: segments then stay in memory.

    Not thread-safe.

    Args:
        catalog: Where segments are stored; None keeps them in memory alone.
    """

    def __init__(self, catalog: Catalog | None) -> None:
        self._catalog = catalog
        self._stored: dict[int, Segment] = {}
        self._own: list[Segment] = []

    @property
    def parts(self) -> list[Segment]:
        """The segments."""
        return [*self._stored.values(), *self._own]

    def places(self, keys: KeyArray) -> NDArray[np.intp]:
        """Return `(len(keys),)`: the row of each skill, the parts one behind the other; -1 for none."""
        parts = [part.keys for part in self.parts]
        known = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        if not len(known):
            return np.full(len(keys), -1, np.intp)
        order = np.argsort(known, kind="stable")
        found = order[np.searchsorted(known, keys, sorter=order).clip(max=len(known) - 1)]
        places: NDArray[np.intp] = np.where(known[found] == keys, found, -1)
        return places

    def refresh(self) -> None:
        """Read the segments that other processes have stored."""
        if self._catalog is not None:
            try:
                self._stored = self._catalog.segments(self._stored)
            except StoreError as error:
                self._do_without(error)

    def add(self, segment: Segment, living: Collection[int]) -> None:
        """Add a segment.

        Args:
            segment: The segment.
            living: Keys of the skills of the library, of which none may be dropped.
        """
        if self._catalog is not None:
            try:
                self._catalog.add(segment, self._stored, living)
            except StoreError as error:
                self._do_without(error)
            else:
                self.refresh()
                return
        small = [part for part in self._own if len(part.keys) < SMALL]
        large = [part for part in self._own if len(part.keys) >= SMALL]
        self._own = [*large, Segment.merge([*small, segment], living)]

    def _do_without(self, error: StoreError) -> None:
        logger.warning("what routing knows of skills stays in memory for now: %s", error)
        self._catalog = None

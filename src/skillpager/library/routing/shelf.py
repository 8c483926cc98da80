"""A shelf: the segments that a process has at hand, from the catalog or its own memory."""

import logging
from collections.abc import Collection
from contextlib import suppress

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
        # while words are added only the keys are needed, a tenth of a percent of a segment
        self._keys: dict[int, KeyArray] = {}
        self._stored: dict[int, Segment] = {}
        self._own: list[Segment] = []
        self._whole = True

    @property
    def parts(self) -> list[Segment]:
        """The segments, as `load` has read them."""
        return [*self._stored.values(), *self._own]

    def load(self) -> bool:
        """Read the segments that are not in memory; return False if some that were there are not any more."""
        if self._catalog is not None and self._stored.keys() != self._keys.keys():
            before = self._keys.keys()
            try:
                self._stored = self._catalog.segments(self._stored)
                self._keys = {id_: part.keys for id_, part in self._stored.items()}
                self._whole = before <= self._keys.keys()
            except StoreError as error:
                self._do_without(error)
        whole, self._whole = self._whole, True
        return whole

    def places(self, keys: KeyArray) -> NDArray[np.intp]:
        """Return `(len(keys),)`: the row of each skill, the parts one behind the other; -1 for none."""
        parts = [*self._keys.values(), *(part.keys for part in self._own)]
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
                self._keys = self._catalog.keys(self._keys)
                # what was merged is in memory no longer than it is of use
                self._stored = {id_: part for id_, part in self._stored.items() if id_ in self._keys}
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
                self._catalog.add(segment, living)
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
        if self._catalog is not None:
            with suppress(StoreError):  # what cannot be written may be readable
                self._stored = self._catalog.segments(self._stored)
        self._catalog = None
        self._whole = self._keys.keys() <= self._stored.keys()
        self._keys = {id_: part.keys for id_, part in self._stored.items()}

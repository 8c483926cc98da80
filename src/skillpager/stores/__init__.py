"""Stores for built indexes: an SQLite file, a PostgreSQL database, or a store that saves nothing."""

from importlib import import_module
from typing import TYPE_CHECKING

from skillpager.types import DamagedEntry

if TYPE_CHECKING:
    from skillpager.stores.memory import NoStore
    from skillpager.stores.sqlite import DEFAULT_MAX_BYTES, SqliteStore

__all__ = ["DEFAULT_MAX_BYTES", "DamagedEntry", "NoStore", "SqliteStore"]


def __getattr__(name: str) -> object:
    """Import a store when it is first asked for: the catalog uses `connection` and needs no numpy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'memory' if name == 'NoStore' else 'sqlite'}"), name)

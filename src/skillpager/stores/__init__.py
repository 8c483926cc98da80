"""Stores for built indexes: an SQLite file, or a store that saves nothing."""

from skillpager.stores.memory import NoStore
from skillpager.stores.sqlite import DEFAULT_MAX_BYTES, DamagedEntry, SqliteStore

__all__ = ["DEFAULT_MAX_BYTES", "DamagedEntry", "NoStore", "SqliteStore"]

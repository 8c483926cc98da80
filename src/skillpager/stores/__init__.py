"""Stores for built indexes: an SQLite file, a PostgreSQL database, or a store that saves nothing."""

from skillpager.stores.memory import NoStore
from skillpager.stores.sqlite import DEFAULT_MAX_BYTES, SqliteStore
from skillpager.types import DamagedEntry

__all__ = ["DEFAULT_MAX_BYTES", "DamagedEntry", "NoStore", "SqliteStore"]

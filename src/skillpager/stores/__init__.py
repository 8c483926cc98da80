"""Stage 5: stores, which hold built indexes."""

from skillpager.stores.memory import NoStore
from skillpager.stores.sqlite import DEFAULT_MAX_BYTES, DamagedEntry, SqliteStore

__all__ = ["DEFAULT_MAX_BYTES", "DamagedEntry", "NoStore", "SqliteStore"]

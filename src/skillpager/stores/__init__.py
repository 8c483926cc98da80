"""Stage 6: where indexes are kept."""

from skillpager.stores.sqlite import DEFAULT_MAX_BYTES, DamagedEntry, SqliteStore

__all__ = ["DEFAULT_MAX_BYTES", "DamagedEntry", "SqliteStore"]

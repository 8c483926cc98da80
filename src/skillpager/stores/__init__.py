"""Stores for built indexes: an SQLite file, a PostgreSQL database, or a store that saves nothing."""

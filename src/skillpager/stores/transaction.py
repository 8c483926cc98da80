"""All or nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    """Keep what is done inside, or undo all of it on an error.

    Args:
        connection: In autocommit mode.
        begin: `BEGIN` to read one snapshot, `BEGIN IMMEDIATE` to be the only writer.
    """
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise

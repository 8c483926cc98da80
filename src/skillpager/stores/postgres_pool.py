"""The connections of a process to PostgreSQL, which its threads share: made when needed, retried, closed."""

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, Self, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from skillpager.errors import SettingsError
from skillpager.settings import hide_secrets, store_fault
from skillpager.stores.postgres_errors import PASSING, explain, is_final

logger = logging.getLogger(__name__)
# what psycopg reports is in our errors; without a handler Python would print it to stderr
logging.getLogger("psycopg").addHandler(logging.NullHandler())

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

# connections of a process that its threads use in turns; most pages come from memory and need none
POOL_SIZE = 4
# seconds to wait for a lock of another session
LOCK_TIMEOUT = 30.0
# seconds in which a lost connection is tried again: a page must not wait for a whole failover
RETRY_SECONDS = 5.0
_FIRST_DELAY = 0.05
# seconds between two looks at whether connecting has failed for good
_LOOK = 0.1
# Where the address does not say it: a dead host is noticed within a minute, by client and by server.
_DEFAULTS = {
    "connect_timeout": 5,
    "fallback_application_name": "skillpager",
    "client_encoding": "UTF8",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_SESSION = {
    # no other schema's functions or operators are taken for the system's
    "search_path": "pg_catalog",
    # to compile a statement that takes milliseconds would take longer
    "jit": "off",
    # a client that was stopped in a transaction must not lock others out
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}


class Pool:
    """The connections of a process to a database; made when first used, and again after `close` or a fork.

    Args:
        address: `postgresql://` address; what it leaves out is taken from the variables and files of libpq.
        lock_timeout: Seconds to wait for a lock of another session.
        patience: Seconds in which a lost connection is tried again.

    Attributes:
        place: The address without user and password, as it may be shown.
        turn: Held by a thread that opens or closes the connections.

    Raises:
        SettingsError: The address is not valid.
    """

    def __init__(self, address: str, *, lock_timeout: float, patience: float) -> None:
        self.place = hide_secrets(address)
        self.turn = threading.Lock()
        self._options, self._secrets = _read_address(address)
        self._session = {**_SESSION, "lock_timeout": f"{round(lock_timeout * 1000)}ms"}
        self._lock_timeout = lock_timeout
        self._patience = patience
        self._pool: ConnectionPool[Connection] | None = None
        self._failure: Exception | None = None
        with _fork_turn:
            _pools.add(self)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`, which is repeated for a while if its connection is lost.

        Raises:
            StoreError: The server cannot be reached, or `work` fails.
        """
        delay, deadline = _FIRST_DELAY, time.monotonic() + self._patience
        while True:
            connection = None
            try:
                pool, connection = self._borrow(deadline)
                try:
                    return work(connection)
                finally:
                    pool.putconn(connection)
            except psycopg.Error as error:
                lost = connection is not None and connection.closed
                if not (lost or isinstance(error, PASSING)) or time.monotonic() + delay > deadline:
                    raise explain(error, self.place, self._secrets) from error
                logger.debug("The store %s is tried again: %s", self.place, error)
                # if the server was restarted, all other connections are lost as well
                with suppress(PoolClosed):
                    pool.check()
                time.sleep(delay)
                delay *= 2

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Return a connection for the caller alone; whatever it has locked is released with it.

        Raises:
            StoreError: The server cannot be reached, or a statement of the caller fails.
        """
        try:
            with closing(_connection_class(self._session, lambda _: None).connect(**self._options)) as opened:
                yield opened
        except psycopg.Error as error:
            raise explain(error, self.place, self._secrets) from error

    def close(self) -> None:
        """Close the connections; the next use opens others."""
        with self.turn:
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connections while the caller holds `turn`."""
        pool, self._pool = self._pool, None
        self._failure = None
        if pool is not None:
            pool.close()

    def _borrow(self, deadline: float) -> tuple["ConnectionPool[Connection]", Connection]:
        """Return a connection, and the pool that it goes back to.

        Raises:
            psycopg.Error: Connecting failed for good, or until the deadline.
        """
        busy_until = time.monotonic() + self._lock_timeout
        while True:
            try:
                pool = self._open()
                return pool, pool.getconn(_LOOK)
            except PoolClosed:  # by another thread, before a fork or after a failure
                continue
            except PoolTimeout:
                failure, now = self._failure, time.monotonic()
                if failure is not None and (is_final(failure) or now > deadline):
                    self.close()  # which ends the attempts of the pool
                    raise failure from None
                if now > max(busy_until, deadline):
                    raise

    def _open(self) -> "ConnectionPool[Connection]":
        with self.turn:
            if self._pool is None:
                self._pool = ConnectionPool(
                    kwargs=self._options,
                    connection_class=_connection_class(self._session, self._note_failure),
                    min_size=0,
                    max_size=POOL_SIZE,
                    open=True,
                    name="skillpager",
                    reconnect_timeout=self._patience,
                    num_workers=1,
                )
            return self._pool

    def _note_failure(self, failure: Exception | None) -> None:
        self._failure = failure


def _connection_class(
    session: Mapping[str, str], note: Callable[[Exception | None], None]
) -> type[psycopg.Connection[tuple[Any, ...]]]:
    """Return a class of connections that have our session settings, and note how connecting went.

    The pool connects in a thread of its own and says to those who wait only that it took too long.
    """

    class NotingConnection(psycopg.Connection[tuple[Any, ...]]):
        @classmethod
        def connect(cls, conninfo: str = "", **options: Any) -> Self:
            try:
                connection = super().connect(conninfo, **options)
                try:
                    settings = ", ".join(["set_config(%s, %s, false)"] * len(session))
                    values = [text for pair in session.items() for text in pair]
                    connection.execute(f"SELECT {settings}", values)
                except BaseException:
                    connection.close()
                    raise
            except Exception as error:
                note(error)
                raise
            note(None)
            return connection

    return NotingConnection


def _read_address(address: str) -> tuple[dict[str, Any], list[str]]:
    """Return what an address says as options of a connection, with our defaults, and the secrets in it.

    Raises:
        SettingsError: It is not valid. The words of libpq are left out: they repeat it with its password.
    """
    if fault := store_fault(address):
        raise SettingsError(f"The address of the store {fault}.")
    try:
        said = conninfo_to_dict(address)
    except psycopg.Error:
        raise SettingsError(
            f"The address of the store is {hide_secrets(address)}, which is not valid: write "
            "postgresql://USER@HOST:PORT/DATABASE, with options of libpq behind a question mark."
        ) from None
    secrets = [str(said[name]) for name in ("password", "sslpassword") if said.get(name)]
    defaults = dict(_DEFAULTS)
    if "PGCONNECT_TIMEOUT" in os.environ:
        del defaults["connect_timeout"]
    return {**defaults, **said, "autocommit": True}, secrets


# A connection is a dialogue with one process: a forked child must not take part in it. So all are closed
# before a fork, by the thread that forks; both sides connect again.
_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()
_fork_turn = threading.Lock()
_forking: list[Pool] = []


def _before_fork() -> None:
    _fork_turn.acquire()
    _forking.extend(_pools)
    for pool in _forking:
        pool.turn.acquire()
        pool.disconnect()


def _after_fork() -> None:
    while _forking:
        _forking.pop().turn.release()
    _fork_turn.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)

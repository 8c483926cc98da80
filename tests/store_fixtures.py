"""The places of the stores that `tests/stores` runs at, and the PostgreSQL servers behind them: a plugin of pytest."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from postgres_server import VERSIONS, PostgresServer, missing_server
from skillpager.stores.sql import SqlStore
from store_places import Place

if TYPE_CHECKING:
    from skillpager.stores.postgres import PostgresStore

NEWEST = max(VERSIONS)
KINDS = ["sqlite", *(f"postgres-{version}" for version in VERSIONS)]
_numbers = count()


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[int], PostgresServer]]:
    """A function that returns the running server of a version."""
    if reason := missing_server():
        pytest.skip(reason)
    running: dict[int, PostgresServer] = {}
    with ExitStack() as stack:

        def of_version(version: int) -> PostgresServer:
            if version not in running:
                running[version] = stack.enter_context(PostgresServer(version))
            return running[version]

        yield of_version


@pytest.fixture(scope="session")
def server(servers: Callable[[int], PostgresServer]) -> PostgresServer:
    """The server of the newest version."""
    return servers(NEWEST)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that may be stopped and killed."""
    if reason := missing_server():
        pytest.skip(reason)
    with PostgresServer() as running:
        yield running


@pytest.fixture(scope="module")
def _shared_database(server: PostgresServer) -> str:
    return server.create_database(f"test_{next(_numbers)}")


@pytest.fixture
def database(_shared_database: str) -> str:
    """The address of an empty database, for its owner."""
    Place(_shared_database).execute("DROP SCHEMA IF EXISTS skillpager CASCADE")
    return _shared_database


@pytest.fixture
def store(database: str) -> Iterator["PostgresStore"]:
    """A store in an empty database."""
    from skillpager.stores.postgres import PostgresStore

    with closing(PostgresStore(database)) as opened:
        yield opened


@pytest.fixture(scope="module", params=KINDS)
def make_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Place]:
    """A function that returns an empty place of each kind in turn."""
    kind, _, version = request.param.partition("-")
    if kind == "sqlite":
        return lambda: Place(tmp_path_factory.mktemp("store") / "cache")
    if reason := missing_server():
        pytest.skip(reason)
    server = request.getfixturevalue("servers")(int(version))
    return lambda: Place(server.create_database(f"test_{next(_numbers)}"))


@pytest.fixture(scope="module")
def _shared_place(make_place: Callable[[], Place]) -> Place:
    return make_place()


@pytest.fixture
def place(make_place: Callable[[], Place], _shared_place: Place) -> Place:
    """An empty place."""
    if isinstance(_shared_place.address, Path):
        return make_place()
    # to make a database takes longer than most tests
    _shared_place.execute("DROP SCHEMA IF EXISTS skillpager CASCADE")
    return _shared_place


@pytest.fixture
def any_store(place: Place) -> Iterator[SqlStore]:
    """A store at this place."""
    with closing(place.open()) as opened:
        yield opened

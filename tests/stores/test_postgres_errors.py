"""What goes wrong with PostgreSQL: each with a clear error, nothing half written, and no secret shown."""

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from conftest import SAMPLES
from index_builder import assert_same_index, build_index
from messages import raises
from postgres_server import OWNER, PASSWORD, PostgresServer
from skillpager import SkillPager
from skillpager.errors import SettingsError, StoreError
from skillpager.factories import make_store
from skillpager.settings import Settings
from skillpager.stores.postgres import PostgresStore
from store_places import Place
from tls_proxy import make_certificate, tls_proxy

# what is refused at once is not tried for so long, which the tests of that measure
LONG = 200.0


def role(server: PostgresServer, name: str, *rights: str, database: str) -> str:
    """Make a role with these rights in a database, and return its address."""
    server.sql(f"DROP ROLE IF EXISTS {name}")
    server.sql(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    owner = PostgresServer.url(server, database)
    with psycopg.connect(owner, autocommit=True) as connection:
        for right in rights:
            connection.execute(f"GRANT {right} TO {name}")  # type: ignore[call-overload]
    return server.url(database, user=name)


READING = ("USAGE ON SCHEMA skillpager", "SELECT ON ALL TABLES IN SCHEMA skillpager")


@pytest.fixture
def name(database: str) -> str:
    return database.rpartition("/")[2]


@pytest.fixture
def drop_roles(server: PostgresServer, name: str) -> Iterator[None]:
    """Roles can be dropped when they have no rights any more."""
    yield
    for (found,) in server.sql("SELECT rolname FROM pg_roles WHERE rolname LIKE 'role\\_%'"):
        server.sql(f"DROP OWNED BY {found}", name)
        server.sql(f"DROP ROLE {found}")


# ---- connecting


def fails_at_once(address: str) -> None:
    """Let a store be asked that must not try again."""
    started = time.monotonic()
    with closing(PostgresStore(address, patience=LONG)) as store:
        try:
            store.entries()
        finally:
            assert time.monotonic() - started < LONG / 2


REFUSED: dict[str, Callable[[str, str], str]] = {
    "wrong password": lambda address, _: address.replace(PASSWORD, "wr0ng"),
    "no password": lambda address, _: address.replace(f":{PASSWORD}", ""),
    "unknown role": lambda address, _: address.replace(OWNER, "nobody_here", 1),
    "no database": lambda address, name: address.replace(f"/{name}", "/nowhere"),
    "no TLS": lambda address, _: f"{address}?sslmode=require",
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_server_refuses_is_an_error_at_once(
    what: str, database: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    with raises(StoreError):
        fails_at_once(REFUSED[what](database, name))


def test_no_server() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"postgresql://me:{PASSWORD}@127.0.0.1:{unused.getsockname()[1]}/skills"
        with closing(PostgresStore(address, patience=0.3)) as store, raises(StoreError):
            store.entries()


def test_a_server_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://me@127.0.0.1:{silent.getsockname()[1]}/skills?connect_timeout=2"
        with closing(PostgresStore(address, patience=0.3)) as store:
            started = time.monotonic()
            with raises(StoreError):
                store.entries()
            assert time.monotonic() - started < LONG / 2


@pytest.mark.system("openssl")
def test_tls_settings_are_passed_on(server: PostgresServer, name: str, tmp_path: Path) -> None:
    ours, other = (make_certificate(tmp_path, host) for host in ("localhost", "other.example"))
    index = build_index()
    with tls_proxy(server.port, ours) as port:
        address = server.url(name).replace(f"127.0.0.1:{server.port}", f"localhost:{port}")
        verified = f"{address}?sslmode=verify-full&sslrootcert={quote(str(ours))}"
        with closing(PostgresStore(verified)) as store:
            store.save(index)
            assert_same_index(store.load(index.key, index.skill), index)
            assert ", TLS)" in store.probe()
        wrong_authority = f"{address}?sslmode=verify-full&sslrootcert={quote(str(other))}"
        for refused in (wrong_authority, verified.replace("@localhost", "@127.0.0.1")):
            with pytest.raises(StoreError, match="cannot be reached: start the server, or correct"):
                fails_at_once(refused)


# ---- addresses


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret@x@host/db",
        "postgresql://me:s3/cret@host/db",
        "postgresql://me:s3?cret@host/db",
        "postgresql://me:s3#cret@host/db",
        "postgresql://me:s3 cret@host/db",
        "postgresql://me:s3%cret@host/db",
        "postgresql://me:s3cret@host/db?colour=blue",
        "host=db user=me password=s3cret",
        "/srv/s3cret",
        "mysql://me:s3cret@host/db",
    ],
)
def test_an_address_with_a_mistake_is_not_repeated_with_its_password(address: str) -> None:
    with raises(SettingsError) as caught:
        make_store(Settings(), address)
    assert "cret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_no_secret_is_shown(server: PostgresServer, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in what a store says of itself, nor in errors with all their causes, nor in any log."""
    logging.getLogger("psycopg").setLevel(logging.DEBUG)
    caplog.set_level(logging.DEBUG)
    told = []
    addresses = [
        server.url(name),
        server.url("nowhere"),
        server.url(name, user="nobody_here"),
        f"{server.url(name)}?sslmode=require",
        f"postgresql://{OWNER}@127.0.0.1:{server.port}/nowhere?password={PASSWORD}",
        f"postgresql://{OWNER}:{PASSWORD}@127.0.0.1:1/nowhere",
        f"postgresql://{OWNER}:{PASSWORD}@no-such-host.invalid/nowhere",
    ]
    try:
        for address in addresses:
            settings = Settings(store=address)
            with closing(PostgresStore(address, patience=0.1)) as store:
                told += [repr(settings), repr(store), store.place]
                try:
                    told.append(store.probe())
                    store.save(build_index())
                except StoreError as error:
                    cause: BaseException | None = error
                    while cause is not None:
                        told.append(repr(cause))
                        cause = cause.__cause__ or cause.__context__
    finally:
        logging.getLogger("psycopg").setLevel(logging.NOTSET)
    told += [f"{record.getMessage()} {record.exc_text}" for record in caplog.records]
    assert any("psycopg" in record.name for record in caplog.records)
    assert len(told) > 5 * len(addresses)
    assert [text for text in told if PASSWORD in text] == []


# ---- rights


def test_a_role_that_may_only_read_serves_pages(
    store: PostgresStore,
    server: PostgresServer,
    name: str,
    drop_roles: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    skill, query = SAMPLES / "git-bisect", "find the bad commit"
    with closing(SkillPager(encoder="hashing", store=store)) as builder:
        page = builder.page(skill, query)
    address = role(server, "role_reader", *READING, database=name)
    with closing(SkillPager(encoder="hashing", store=address)) as reader:
        assert reader.page(skill, query) == page
        assert [record for record in caplog.records if record.name.startswith("skillpager")] == []
        # what is not stored is built, kept in memory, and said not to be stored
        other = SAMPLES / "csv-cleaning"
        assert reader.page(other, query).text
        (warning,) = [record for record in caplog.records if record.name.startswith("skillpager")]
        assert "is not stored" in warning.getMessage()
        assert "does not allow this role" in warning.getMessage()
    with closing(PostgresStore(address)) as opened:
        assert opened.probe().endswith("allows reading only")
        assert opened.verify() == []
        with raises(StoreError):
            opened.save(build_index())
        with raises(StoreError):
            opened.remove([opened.entries()[0].key])
        with raises(StoreError):
            opened.clear()


def test_a_damaged_index_is_left_by_a_role_that_may_only_read(
    store: PostgresStore,
    server: PostgresServer,
    name: str,
    drop_roles: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    index = build_index()
    store.save(index)
    Place(server.url(name)).execute("UPDATE indexes SET checksum = ''")
    with closing(PostgresStore(role(server, "role_reader", *READING, database=name))) as reader:
        assert reader.load(index.key, index.skill) is None
        assert "cannot be deleted" in caplog.text
        assert len(reader.entries()) == 1
    assert store.load(index.key, index.skill) is None
    assert store.entries() == []


def test_tables_that_the_role_may_not_make(server: PostgresServer, name: str, drop_roles: None) -> None:
    with closing(PostgresStore(role(server, "role_builder", database=name))) as builder:
        assert builder.entries() == []
        with raises(StoreError):
            builder.save(build_index())
        assert builder.probe().endswith("allows reading only")


def test_a_standby_serves_loads(
    store: PostgresStore, server: PostgresServer, database: str, name: str
) -> None:
    """Stands for one: its transactions are read-only, too."""
    index = build_index()
    store.save(index)
    with closing(PostgresStore(f"{database}?options=-cdefault_transaction_read_only%3Don")) as standby:
        assert_same_index(standby.load(index.key, index.skill), index)
        assert standby.probe().endswith("allows reading only")
        with raises(StoreError):
            standby.save(build_index(name="another"))


# ---- the server in trouble


def test_tables_that_somebody_has_changed(store: PostgresStore, database: str) -> None:
    index = build_index()
    store.save(index)
    Place(database).execute("ALTER TABLE indexes RENAME checksum TO digest_of_data")
    with raises(StoreError):
        store.load(index.key, index.skill)
    with raises(StoreError):
        store.save(build_index(name="another"))

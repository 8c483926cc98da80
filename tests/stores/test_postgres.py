"""PostgreSQL: tables, lost connections, kills of the server, set-up as documented."""

import gc
import logging
import pickle
import re
import threading
from contextlib import closing
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from cli_process import wait_until
from conftest import SAMPLES
from index_builder import assert_same_index, build_index
from messages import raises
from postgres_server import PASSWORD, PostgresServer
from skillpager import SkillPager
from skillpager.errors import StoreError
from skillpager.stores.postgres import PostgresStore
from store_places import Place

DOCUMENT = Path(__file__).parents[2] / "docs" / "operating.md"
SERVER_LOSS = 60.0  # seconds that a busy machine may take to start a server


def name_of(database: str) -> str:
    return str(conninfo_to_dict(database)["dbname"])


def sessions(server: PostgresServer, database: str) -> int:
    """Return how many connections of clients a database has."""
    counted = server.sql(
        f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name_of(database)}' AND backend_type = 'client backend'"
    )
    return int(str(counted[0][0]))


# ---- tables


def test_a_look_makes_no_tables(store: PostgresStore, database: str) -> None:
    assert store.entries() == []
    assert store.size == 0
    assert store.load("0" * 64, build_index().skill) is None
    assert store.verify() == []
    assert Place(database).execute("SELECT to_regnamespace('skillpager')") == [(None,)]


def test_tables_that_are_dropped_meanwhile_are_made_again(store: PostgresStore, database: str) -> None:
    index = build_index()
    store.save(index)
    assert len(store.entries()) == 1
    Place(database).execute("DROP SCHEMA skillpager CASCADE")
    with raises(StoreError):
        store.load(index.key, index.skill)
    assert store.load(index.key, index.skill) is None
    store.save(index)
    assert_same_index(store.load(index.key, index.skill), index)


def test_a_copy_of_the_store_connects_anew(store: PostgresStore) -> None:
    index = build_index()
    store.save(index)
    with closing(pickle.loads(pickle.dumps(store))) as copy:
        assert_same_index(copy.load(index.key, index.skill), index)


@pytest.mark.parametrize("version", [3, 5])
def test_tables_of_another_version_are_left_alone(version: int, store: PostgresStore, database: str) -> None:
    index = build_index()
    store.save(index)
    place = Place(database)
    place.execute(f"UPDATE versions SET version = {version}")
    with closing(PostgresStore(database)) as other, raises(StoreError):
        other.load(index.key, index.skill)
    assert place.execute("SELECT key FROM indexes") == [(index.key,)]


# ---- connections


def test_a_store_that_is_closed_or_forgotten_has_no_connections(
    server: PostgresServer, database: str
) -> None:
    store = PostgresStore(database)
    store.entries()
    assert sessions(server, database) == 1
    store.close()
    wait_until(lambda: sessions(server, database) == 0)
    store.entries()
    assert sessions(server, database) == 1
    del store
    gc.collect()
    wait_until(lambda: sessions(server, database) == 0)


def test_connections_that_the_server_ends_are_made_again(
    store: PostgresStore, server: PostgresServer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    index = build_index()
    store.save(index)
    for _ in range(3):
        server.sql(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name_of(database)}'"
        )
        assert_same_index(store.load(index.key, index.skill), index)
    assert [record for record in caplog.records if record.name.startswith("skillpager")] == []


# ---- kills of the server


def test_a_server_that_comes_back_is_waited_for(own_server: PostgresServer) -> None:
    index = build_index()
    with closing(PostgresStore(own_server.create_database("restarted"), patience=SERVER_LOSS)) as store:
        store.save(index)
        for end in (own_server.stop, own_server.kill):
            end()
            restart = threading.Timer(0.5, own_server.start)
            restart.start()
            assert_same_index(store.load(index.key, index.skill), index)
            restart.join()


def test_pages_are_made_while_the_server_is_away(
    own_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    address = own_server.create_database("away")
    with closing(SkillPager(encoder="hashing", store=PostgresStore(address, patience=0.1))) as pager:
        before = pager.page(SAMPLES / "git-bisect", "find the bad commit").text
        own_server.stop()
        assert pager.page(SAMPLES / "git-bisect", "find the bad commit").text == before
        pager.page(SAMPLES / "csv-cleaning", "remove empty rows")
        (warning,) = [
            record
            for record in caplog.records
            if record.levelno == logging.WARNING and record.name.startswith("skillpager")
        ]
        assert "stay in memory" in warning.getMessage()
        own_server.start()
        assert [entry.name for entry in pager.store.entries()] == ["git-bisect"]


# ---- documentation


def test_the_documented_set_up_works(own_server: PostgresServer) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    roles, rights = re.findall(r"^```sql\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for statement in roles.split(";\n")[:-1]:
        own_server.sql(statement)
    owner, builder, reader = ("skillpager_owner", "skillpager", "skillpager_reader")
    for role in (owner, builder, reader):
        own_server.sql(f"ALTER ROLE {role} PASSWORD '{PASSWORD}'")
    address = {role: own_server.url("skills", user=role) for role in (owner, builder, reader)}
    with closing(PostgresStore(address[owner])) as store:
        assert store.probe().endswith("reading and saving")
    for statement in rights.split(";\n")[:-1]:
        Place(address[owner]).execute(statement)
    index = build_index()
    with closing(PostgresStore(address[builder])) as store:
        store.save(index)
        assert store.probe().endswith("reading and saving")
    with closing(PostgresStore(address[reader])) as store:
        assert_same_index(store.load(index.key, index.skill), index)
        assert store.probe().endswith("reading only")
        back_up(own_server, text)
        assert_same_index(store.load(index.key, index.skill), index)


def back_up(server: PostgresServer, text: str) -> None:
    """Run the commands of the document that make a backup and restore it."""
    commands = re.findall(r"^pg_(?:dump|restore) .*", text, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        program, *options = command.replace("skills.dump", str(server.folder / "skills.dump")).split()
        where = (f"--host={server.folder}", f"--port={server.port}", "--username=postgres")
        server.run(program, *where, *options)


def test_every_table_and_column_is_documented(store: PostgresStore, database: str) -> None:
    store.probe()
    documents = (DOCUMENT, DOCUMENT.with_name("design.md"))
    text = "".join(document.read_text(encoding="utf-8") for document in documents)
    columns = Place(database).execute(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'skillpager'"
    )
    assert len(columns) > 15
    assert [(table, column) for table, column in columns if f"`{column}`" not in text] == []

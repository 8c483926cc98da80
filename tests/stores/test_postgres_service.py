"""Commands, HTTP services and MCP servers over one PostgreSQL database."""

import re
from contextlib import closing
from pathlib import Path

import pytest

import http_running
from cli_process import environment, hide, invoke, run, wait_until
from conftest import SAMPLES
from http_running import ASKED
from postgres_server import OWNER, PASSWORD, PostgresServer
from skillpager.errors import StoreError
from skillpager.stores.postgres import VERSION, PostgresStore
from skillpager.types import PublishedSkill
from store_places import Place

SKILL = "git-bisect"
QUERY = "find the bad commit"


@pytest.fixture
def env(tmp_path: Path, database: str) -> dict[str, str]:
    return environment(
        tmp_path / "cache", samples=False, SKILLPAGER_STORE=database, SKILLPAGER_ENCODER="hashing"
    )


def names(database: str) -> list[str]:
    with closing(PostgresStore(database)) as store:
        return sorted(entry.name for entry in store.entries())


def test_cache_commands(env: dict[str, str], database: str) -> None:
    assert invoke("index", SAMPLES / SKILL, SAMPLES / "csv-cleaning", env=env).code == 0
    shown = invoke("cache", "info", env=env)
    assert re.search(r"postgresql://…@127\.0\.0\.1:\d+/\w+: 2 indexes, [\d.]+ kB$", shown.err, re.MULTILINE)
    listed = invoke("cache", "info", "--json", env=env).json
    assert [entry["name"] for entry in listed["entries"]] == ["csv-cleaning", SKILL]
    assert listed["max_size"] is None
    assert invoke("cache", "verify", env=env).code == 0
    Place(database).execute("UPDATE indexes SET checksum = ''")
    assert invoke("cache", "verify", env=env).code == 1
    evicted = invoke("cache", "evict", "--max-size", "0", "--json", env=env)
    assert len(evicted.json["removed"]) == 2
    assert invoke("cache", "clear", "--yes", env=env).code == 0
    assert names(database) == []
    assert not Path(env["SKILLPAGER_CACHE_DIR"]).exists()


def test_a_page_names_a_store_only_without_a_password(
    env: dict[str, str], server: PostgresServer, database: str
) -> None:
    own = {name: value for name, value in env.items() if name != "SKILLPAGER_STORE"}
    shown = invoke("page", SAMPLES / SKILL, QUERY, "-k", "2", "--store", database, env=own)
    assert "skillpager show" in shown.out
    assert "--store" not in shown.out
    address = f"postgresql://127.0.0.1:{server.port}/{database.rpartition('/')[2]}"
    own |= {"PGUSER": "owner", "PGPASSWORD": PASSWORD}
    shown = invoke("page", SAMPLES / SKILL, QUERY, "-k", "2", "--store", address, env=own)
    assert f"--store {address}" in shown.out


def test_doctor_makes_the_tables_and_shows_no_password(env: dict[str, str], database: str) -> None:
    done = invoke("doctor", env=env)
    assert done.code == 0, done.out
    assert re.search(
        r"^  cache +ok: postgresql://…@\S+ \(PostgreSQL 18\.\d+, not encrypted\) allows reading and saving: 0 indexes, 0 bytes$",
        done.out,
        re.MULTILINE,
    )
    assert re.search(r"^  store +postgresql://…@\S+  \(environment\)$", done.out, re.MULTILINE)
    assert PASSWORD not in done.out + done.err + invoke("doctor", "--json", env=env).out
    assert Place(database).execute("SELECT version FROM versions") == [(VERSION,)]


def test_doctor_says_what_is_wrong_with_the_store(env: dict[str, str], server: PostgresServer) -> None:
    for address in (server.url("nowhere"), "postgresql://me:s3@cret@host/db"):
        done = invoke("doctor", "--store", address, env=env)
        assert done.code == 1
        assert re.search(r"^  cache +FAILED: ", done.out, re.MULTILINE)
        assert re.search(r"^  self-test +ok", done.out, re.MULTILINE)
        assert PASSWORD not in done.out + done.err
        assert "cret" not in done.out + done.err


def test_without_the_package_the_extra_is_named(env: dict[str, str], tmp_path: Path) -> None:
    hidden = {**env, "PYTHONPATH": hide(tmp_path / "hidden", "psycopg")}
    done = run("page", SAMPLES / SKILL, QUERY, env=hidden)
    assert done.code == 1
    assert "[postgres]" in done.err
    assert "Traceback" not in done.err


def test_two_services_serve_the_same_pages(database: str, tmp_path: Path) -> None:
    """The second finds what the first has built; both go on when all is removed."""
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        folder.mkdir()
    options = ("--store", database)
    hashing = {"SKILLPAGER_ENCODER": "hashing"}
    with (
        http_running.child(first, *options, **hashing) as one,
        http_running.child(second, *options, **hashing) as other,
    ):
        page = one.client.post("/v1/page", json=ASKED)
        assert page.status_code == 200
        assert names(database) == ["postgres-backup"]
        created = [entry.created for entry in PostgresStore(database).entries()]
        assert other.client.post("/v1/page", json=ASKED).json() == page.json()
        assert [entry.created for entry in PostgresStore(database).entries()] == created
        with closing(PostgresStore(database)) as store:
            store.clear()
        for service in (one, other):
            assert service.client.post("/v1/page", json=ASKED).json() == page.json()
        asked = {**ASKED, "skill": SKILL}
        assert (
            other.client.post("/v1/page", json=asked).json() == one.client.post("/v1/page", json=asked).json()
        )
        assert names(database) == [SKILL]
        assert PASSWORD not in "".join(one.said + other.said)


def test_a_service_without_its_database_is_alive_and_not_ready(
    server: PostgresServer, database: str, tmp_path: Path
) -> None:
    hashing = {"SKILLPAGER_ENCODER": "hashing"}
    for name, store, ready in (("here", database, 200), ("away", server.url("nowhere"), 503)):
        (tmp_path / name).mkdir()
        with http_running.child(tmp_path / name, "--store", store, **hashing) as service:
            assert service.client.post("/v1/page", json=ASKED).status_code == 200
            get = service.client.get
            wait_until(lambda: get("/readyz").status_code == ready)  # noqa: B023
            assert get("/livez").status_code == 200
            assert PASSWORD not in "".join(service.said)


@pytest.mark.nightly
def test_a_failover_loses_nothing_and_a_standby_serves_readers(own_server: PostgresServer) -> None:
    """What was acknowledged is there, once; what was not is an error that says so; a standby cannot publish."""
    own_server.create_database("skills")
    with PostgresServer(standby_of=own_server) as standby:
        for setting in ("synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'"):
            own_server.sql(f"ALTER SYSTEM SET {setting}")
        own_server.sql("SELECT pg_reload_conf()")
        wait_until(lambda: own_server.sql("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
        hosts = f"127.0.0.1:{own_server.port},127.0.0.1:{standby.port}"
        address = f"postgresql://{OWNER}:{PASSWORD}@{hosts}/skills?target_session_attrs=read-write"
        published, failed = [], []
        with (
            closing(PostgresStore(address, patience=0.5)) as store,
            closing(PostgresStore(standby.url("skills"))) as reading,
        ):
            library = store.library("default")
            while len(published) < 40:
                try:
                    library.publish(skill_named(f"skill-{len(published):02}"), b"text")
                except StoreError as error:
                    failed.append(str(error))
                    standby.promote()
                    continue  # the same again
                published.append(f"skill-{len(published):02}")
                if len(published) == 20:
                    assert len(reading.library("default").changes()[1]) == 20
                    with pytest.raises(StoreError, match="read-only, as a standby is"):
                        reading.library("default").publish(skill_named("other"), b"text")
                    own_server.kill()
            _, there = library.changes()
        assert sorted(skill.name for _, skill in there if isinstance(skill, PublishedSkill)) == published
        assert failed
        assert all("The index store postgresql://…@" in each and PASSWORD not in each for each in failed)


def skill_named(name: str) -> PublishedSkill:
    return PublishedSkill(name, "digest", "", False, "", "unknown", "key", "state")

"""A primary with a standby that streams from it: what a process sees of a failover, and of the standby itself."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import http_running
from postgres_server import OWNER, PASSWORD, PostgresServer, missing_server
from skillpager import SkillPager
from skillpager.errors import StoreError
from skillpager.library import Library
from skillpager.library.published import Publisher
from skillpager.parsing.skill import skill_from_text
from skillpager.stores.postgres import PostgresStore

SOON = 120.0  # seconds for a failover, on a machine that does other work


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary, and a standby that has what the primary has acknowledged."""
    if reason := missing_server():
        pytest.skip(reason)
    with PostgresServer() as primary:
        primary.create_database("skills")
        with PostgresServer(standby_of=primary) as standby:
            for setting in ("synchronous_standby_names = '*'", "synchronous_commit = 'remote_apply'"):
                primary.sql(f"ALTER SYSTEM SET {setting}")
            primary.sql("SELECT pg_reload_conf()")
            wait_for(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == [("sync",)])
            yield primary, standby


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def address_of(*servers: PostgresServer) -> str:
    """Return the address of whichever of the servers is the primary."""
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers)
    return f"postgresql://{OWNER}:{PASSWORD}@{hosts}/skills?target_session_attrs=read-write"


def publish(store: PostgresStore, name: str) -> None:
    text = f"---\nname: {name}\ndescription: What {name} does.\n---\n# {name}\n\nSay {name}.\n"
    Publisher(store.library("default")).publish(skill_from_text(text), Path(name), "")


def test_a_running_service_follows_a_failover(
    pair: tuple[PostgresServer, PostgresServer], tmp_path: Path
) -> None:
    """What was acknowledged is there, once; what was not is an error that says so; the service goes on."""
    primary, standby = pair
    address = address_of(primary, standby)
    (tmp_path / "empty").mkdir()
    published: list[str] = []
    failed: list[str] = []
    done = threading.Event()
    with closing(PostgresStore(address, patience=0.5)) as store:
        publish(store, "first")

        def write() -> None:
            number = 0
            while not done.is_set():
                name = f"skill-{number:04}"
                try:
                    publish(store, name)
                except StoreError as error:
                    failed.append(str(error))
                    continue  # the same again
                published.append(name)
                number += 1

        options = ("--store", address)
        with http_running.child(
            tmp_path, *options, skills=tmp_path / "empty", SKILLPAGER_ENCODER="hashing"
        ) as service:

            def listed() -> list[str]:
                reply = service.client.get("/v1/skills")
                assert reply.status_code == 200
                return [skill["name"] for skill in reply.json()["skills"]]

            assert listed() == ["first"]
            writer = threading.Thread(target=write)
            writer.start()
            try:
                wait_for(lambda: len(published) > 3)
                primary.kill()
                wait_for(lambda: len(failed) > 0)
                before = len(published)
                asked = {"skill": "first", "query": "say first"}
                assert listed()[0] == "first"  # from memory
                standby.promote()
                wait_for(lambda: len(published) > before + 3)
            finally:
                done.set()
                writer.join()
            wait_for(lambda: set(published) <= set(listed()))
            assert service.client.post("/v1/page", json=asked).status_code == 200
            assert PASSWORD not in "".join(service.said)
        _, there = store.library("default").changes()
        names = [skill if isinstance(skill, str) else skill.name for _, skill in there]
    assert sorted(names) == ["first", *published]
    assert all("The index store postgresql://…@" in said and PASSWORD not in said for said in failed)


def test_a_standby_serves_readers(pair: tuple[PostgresServer, PostgresServer], tmp_path: Path) -> None:
    """It sends no notifications, so that changes are seen by the version; it refuses to publish."""
    primary, standby = pair
    with (
        closing(PostgresStore(address_of(primary))) as store,
        closing(PostgresStore(standby.url("skills"))) as reading,
        closing(
            Library(SkillPager(store=reading, encoder="hashing"), [], cache=tmp_path, published="default")
        ) as library,
    ):
        publish(store, "first")
        assert [skill.name for skill in library.skills()] == ["first"]
        assert library.route("say first").skills[0].skill.name == "first"
        publish(store, "second")
        wait_for(lambda: len(library.skills()) == 2)
        assert library.page("say second").parts[0].skill.name == "second"
        with pytest.raises(StoreError, match="read-only, as a standby is"):
            publish(reading, "third")

"""Adapters on a host without folders: skills that are published in a real PostgreSQL, with the real packages."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from conftest import SAMPLES
from skillpager import SkillPager
from skillpager.integrations import pydantic_ai
from skillpager.integrations.retrieval import library_of, shared_pager
from skillpager.integrations.tools import SkillTools
from skillpager.library import Library
from skillpager.library.published import Publisher
from skillpager.parsing.skill import read_skill
from skillpager.settings import INDEX_FOLDER
from skillpager.stores.postgres import PostgresStore
from test_integrations_retrievers import BOTH, RETRIEVERS, Retrieve

PUBLISHED = ("git-bisect", "postgres-backup", "kubernetes-debugging")


def publish(database: str, library: str, *names: str) -> None:
    """Publish samples; whoever pages them first builds their indexes."""
    with closing(PostgresStore(database)) as store:
        publisher = Publisher(store.library(library))
        for name in names:
            publisher.publish(read_skill(SAMPLES / name), SAMPLES / name, "")


@pytest.fixture
def far(database: str) -> Iterator[SkillPager]:
    """A pager on a host that has the store, and no skill."""
    publish(database, "default", *PUBLISHED)
    with closing(SkillPager(store=database)) as pager:
        yield pager
    library_of.cache_clear()  # what is kept listens for changes


@pytest.fixture
def _settings_of_host(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the pager that adapters share have the store, as the environment of a host sets it."""
    publish(database, "team", "git-bisect")
    monkeypatch.setenv("SKILLPAGER_STORE", database)
    shared_pager.cache_clear()
    yield
    library_of.cache_clear()
    shared_pager().close()
    shared_pager.cache_clear()


@pytest.mark.parametrize("retrieve", RETRIEVERS)
def test_published_skills_are_retrieved_as_those_of_folders(retrieve: Retrieve, far: SkillPager) -> None:
    page = Library(far, [], published="default").page(BOTH, max_tokens=700)
    found = retrieve(BOTH, folders=[], pager=far, max_tokens=700)
    assert [text for text, _, _ in found] == [node.text for part in page.parts for node in part.page.nodes]
    assert {data["skill"] for _, data, _ in found} == {"git-bisect", "postgres-backup"}
    # there is a file, and no place on this host
    assert all(data["file"] == "SKILL.md" and "source" not in data for _, data, _ in found)
    [(text, *_)] = retrieve(BOTH, folders=[], pager=far, max_tokens=700, as_page=True)
    assert text == page.text
    # the next process of this host need not read the words again
    assert any((far.settings.cache_dir / INDEX_FOLDER / "words").iterdir())


@pytest.mark.usefixtures("_settings_of_host")
@pytest.mark.parametrize("retrieve", RETRIEVERS)
def test_the_settings_name_store_and_library(retrieve: Retrieve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLPAGER_LIBRARY", "team")
    assert {data["skill"] for _, data, _ in retrieve(BOTH, folders=[])} == {"git-bisect"}


def test_an_agents_tools_read_published_skills(far: SkillPager) -> None:
    tools = SkillTools([], far, {"max_tokens": 300})
    page = tools.load_skill("git-bisect", BOTH)
    assert (
        page
        == far.page(SAMPLES / "git-bisect", BOTH, max_tokens=300, show="read_skill_nodes git-bisect").text
    )
    assert tools.read_skill_nodes("git-bisect", "n3") == far.expand(SAMPLES / "git-bisect", "n3").text
    agent = Agent(TestModel(call_tools=["list_skills"]), tools=pydantic_ai.skill_tools([], pager=far))
    assert "git-bisect" in asyncio.run(agent.run("go")).output

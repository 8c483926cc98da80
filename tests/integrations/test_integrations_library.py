"""Retrievers over a whole library, with the real packages: LangChain, LlamaIndex, Haystack."""

import asyncio
import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from haystack import Pipeline
from langchain_core.load import dumps, loads
from llama_index.core.schema import MetadataMode

from conftest import SAMPLES
from skillpager import SkillPager
from skillpager.integrations import haystack, langchain, llama_index
from skillpager.library import Library

BOTH = "Find the commit that broke the build with git bisect, then restore one table from a dump."
ELSEWHERE = "Quel temps fait-il a Tombouctou ?"
# text, metadata and id of a retrieved document, whatever the framework calls them
Found = tuple[str, dict[str, Any], str]
Retrieve = Callable[..., list[Found]]


def with_langchain(query: str, **options: Any) -> list[Found]:
    """Retrieve with LangChain."""
    documents = langchain.SkillLibraryRetriever(**options).invoke(query)
    return [(found.page_content, found.metadata, str(found.id)) for found in documents]


def with_llama_index(query: str, **options: Any) -> list[Found]:
    """Retrieve with LlamaIndex."""
    found = llama_index.SkillLibraryRetriever(**options).retrieve(query)
    return [
        (each.node.get_content(MetadataMode.NONE), each.node.metadata, each.node.node_id) for each in found
    ]


def with_haystack(query: str, **options: Any) -> list[Found]:
    """Retrieve with Haystack."""
    documents = haystack.SkillLibraryRetriever(**options).run(query)["documents"]
    return [(str(found.content), found.meta, found.id) for found in documents]


RETRIEVERS = (with_langchain, with_llama_index, with_haystack)


@pytest.mark.parametrize("retrieve", RETRIEVERS)
def test_documents_are_the_nodes_of_the_skills_that_the_query_needs(
    retrieve: Retrieve, pager: SkillPager
) -> None:
    page = Library(pager, [SAMPLES]).page(BOTH, max_tokens=700)
    found = retrieve(BOTH, folders=[SAMPLES], pager=pager, max_tokens=700)
    assert [text for text, _, _ in found] == [node.text for part in page.parts for node in part.page.nodes]
    told = [(data["skill"], data["chance"], data["start_line"]) for _, data, _ in found]
    assert told == [
        (part.skill.name, part.chance, node.span.start_line)
        for part in page.parts
        for node in part.page.nodes
    ]
    assert {data["skill"] for _, data, _ in found} == {"git-bisect", "postgres-backup"}
    assert all(data["source"].startswith(str(SAMPLES)) for _, data, _ in found)
    assert len({number for *_, number in found}) == len(found)


@pytest.mark.parametrize("retrieve", RETRIEVERS)
def test_the_page_is_one_document(retrieve: Retrieve, pager: SkillPager) -> None:
    page = Library(pager, [SAMPLES]).page(BOTH, max_tokens=700, show=lambda skill: f"read {skill.name}")
    options = {"folders": [SAMPLES], "pager": pager, "max_tokens": 700, "show": "read"}
    [(text, data, _)] = retrieve(BOTH, as_page=True, **options)
    assert text == page.text
    assert data["skill"] == ", ".join(part.skill.name for part in page.parts)
    assert (data["tokens"], data["sufficiency"]) == (page.tokens, page.sufficiency)
    # flat, as vector stores require
    assert all(value is None or isinstance(value, str | int | float) for value in data.values())


@pytest.mark.parametrize("retrieve", RETRIEVERS)
@pytest.mark.parametrize("as_page", [False, True])
def test_where_no_skill_fits_nothing_is_retrieved(
    retrieve: Retrieve, as_page: bool, pager: SkillPager
) -> None:
    assert retrieve(ELSEWHERE, folders=[SAMPLES], pager=pager, as_page=as_page) == []


@pytest.mark.parametrize("retrieve", RETRIEVERS)
def test_skills_that_only_the_user_may_start_are_not_retrieved(
    retrieve: Retrieve, pager: SkillPager, tmp_path: Path
) -> None:
    (tmp_path / "deploy").mkdir()
    text = "---\nname: deploy\ndescription: Deploy the service.\ndisable-model-invocation: true\n---\n\nDeploy it.\n"
    (tmp_path / "deploy" / "SKILL.md").write_text(text)
    assert retrieve("Deploy the service.", folders=[tmp_path], pager=pager) == []


@pytest.mark.parametrize("retrieve", RETRIEVERS)
@pytest.mark.parametrize("wrong", [{"max_token": 3}, {"max_skills": "many"}, {"skill": "x"}])
def test_a_wrong_option_is_refused(retrieve: Retrieve, wrong: dict[str, object], pager: SkillPager) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        retrieve(BOTH, folders=[SAMPLES], pager=pager, **wrong)


def test_a_library_is_read_once_and_copies_share_it(pager: SkillPager) -> None:
    retriever = langchain.SkillLibraryRetriever(folders=[SAMPLES], pager=pager)
    assert retriever.library is copy.deepcopy(retriever).library
    again = pickle.loads(pickle.dumps(langchain.SkillLibraryRetriever(folders=[str(SAMPLES)])))
    assert again.folders == (str(SAMPLES),)


def test_async_calls_work(pager: SkillPager) -> None:
    async def both() -> tuple[int, int]:
        chain = langchain.SkillLibraryRetriever(folders=[SAMPLES], pager=pager)
        index = llama_index.SkillLibraryRetriever([SAMPLES], pager=pager)
        return len(await chain.ainvoke(BOTH)), len(await index.aretrieve(BOTH))

    chain, index = asyncio.run(both())
    assert chain == index > 3


def test_langchain_writes_and_reads_it() -> None:
    retriever = langchain.SkillLibraryRetriever(folders=[SAMPLES], max_tokens=300, max_skills=2)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The function `loads` is in beta")  # LangChain's own
        again = loads(
            dumps(retriever),
            valid_namespaces=["skillpager"],
            allowed_objects=[langchain.SkillLibraryRetriever],
        )
    assert again == retriever
    assert (again.max_tokens, again.max_skills) == (300, 2)


def test_a_pipeline_of_haystack_runs_and_is_saved(pager: SkillPager, tmp_path: Path) -> None:
    pipeline = Pipeline()
    pipeline.add_component("library", haystack.SkillLibraryRetriever([SAMPLES], as_page=True, max_skills=2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["skillpager.*"])
    [document] = again.run({"library": {"query": BOTH, "max_tokens": 500, "max_skills": 1}})["library"][
        "documents"
    ]
    assert document.meta["tokens"] <= 500
    assert "," not in document.meta["skill"]

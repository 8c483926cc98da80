"""Retrievers over a skill and over a library, with the real packages: LangChain, LlamaIndex, Haystack."""

import asyncio
import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from haystack import Pipeline
from langchain_core.load import dumpd, dumps, loads
from llama_index.core.schema import MetadataMode, TextNode

from adapter_cases import MAX_NODES, NAME, QUERY, SKILL, TEXT, expected_metadata, waiting_pager
from conftest import SAMPLES, write_skill
from skillpager import SkillPager
from skillpager.integrations import haystack, langchain, llama_index
from skillpager.library import Library

BOTH = "Find the commit that broke the build with git bisect, then restore one table from a dump."
ELSEWHERE = "Quel temps fait-il a Tombouctou ?"
# text, metadata and id of a retrieved document, whatever the framework calls them
Found = tuple[str, dict[str, Any], str]
Retrieve = Callable[..., list[Found]]


def kind_of(module: Any, options: dict[str, Any]) -> Any:
    """Return the retriever over one skill if one is given, else that over a library."""
    return module.SkillPagerRetriever if "skill" in options else module.SkillLibraryRetriever


def with_langchain(query: str, **options: Any) -> list[Found]:
    """Retrieve with LangChain."""
    documents = kind_of(langchain, options)(**options).invoke(query)
    return [(found.page_content, found.metadata, str(found.id)) for found in documents]


def with_llama_index(query: str, **options: Any) -> list[Found]:
    """Retrieve with LlamaIndex."""
    found = kind_of(llama_index, options)(**options).retrieve(query)
    return [
        (each.node.get_content(MetadataMode.NONE), each.node.metadata, each.node.node_id) for each in found
    ]


def with_haystack(query: str, **options: Any) -> list[Found]:
    """Retrieve with Haystack."""
    documents = kind_of(haystack, options)(**options).run(query)["documents"]
    return [(str(found.content), found.meta, found.id) for found in documents]


RETRIEVERS = (with_langchain, with_llama_index, with_haystack)


@pytest.mark.parametrize("retrieve", RETRIEVERS)
def test_documents_are_the_nodes_of_a_skills_page_with_its_numbers(
    retrieve: Retrieve, pager: SkillPager
) -> None:
    found = retrieve(QUERY, skill=SKILL, pager=pager, max_nodes=MAX_NODES)
    page = pager.page(SKILL, QUERY, max_nodes=MAX_NODES)
    assert [text for text, _, _ in found] == [node.text for node in page.nodes]
    for (_, data, _), expected in zip(found, expected_metadata(page, NAME), strict=True):
        assert expected.items() <= data.items()
        assert data["source"] == str(SKILL / "SKILL.md")
        # flat, as vector stores require
        assert all(isinstance(value, str | int | float) for value in data.values())
    [(text, *_)] = retrieve(QUERY, skill=SKILL, pager=pager, max_nodes=MAX_NODES, as_page=True, show="read")
    assert text == pager.page(SKILL, QUERY, max_nodes=MAX_NODES, show="read").text


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
    more = "disable-model-invocation: true\n"
    write_skill(tmp_path / "deploy", description="Deploy the service.", more=more)
    assert retrieve("Deploy the service.", folders=[tmp_path], pager=pager) == []


@pytest.mark.parametrize("retrieve", RETRIEVERS)
@pytest.mark.parametrize("wrong", [{"max_token": 3}, {"max_skills": "many"}])
def test_a_wrong_option_is_refused(retrieve: Retrieve, wrong: dict[str, object], pager: SkillPager) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        retrieve(BOTH, folders=[SAMPLES], pager=pager, **wrong)
    with pytest.raises(ValueError, match="max_token"):
        retrieve(QUERY, skill=SKILL, pager=pager, max_token=3)


def test_a_library_is_read_once_and_copies_share_it(pager: SkillPager) -> None:
    retriever = langchain.SkillLibraryRetriever(folders=[SAMPLES], pager=pager)
    assert retriever.library is copy.deepcopy(retriever).library
    again = pickle.loads(pickle.dumps(langchain.SkillLibraryRetriever(folders=[str(SAMPLES)])))
    assert again.folders == (str(SAMPLES),)


def test_a_pipeline_of_haystack_runs_and_is_saved(pager: SkillPager, tmp_path: Path) -> None:
    pipeline = Pipeline()
    pipeline.add_component("library", haystack.SkillLibraryRetriever([SAMPLES], as_page=True, max_skills=2))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["skillpager.*"])
    [document] = again.run({"library": {"query": BOTH, "max_tokens": 500, "max_skills": 1}})["library"][
        "documents"
    ]
    assert document.meta["tokens"] <= 500
    assert "," not in document.meta["skill"]


# ---- LangChain


def test_picks_are_told_from_small_gaps_that_are_shown(pager: SkillPager) -> None:
    skill = SAMPLES / "odd-markdown"
    query = "How do I show a code block that itself contains triple backticks?"  # whose page has such a gap
    retriever = langchain.SkillPagerRetriever(skill=skill, pager=pager, max_nodes=MAX_NODES, strategy="mmr")
    documents = retriever.invoke(query)
    context = pager.page(skill, query, max_nodes=MAX_NODES, strategy="mmr")
    assert context.selection is not None
    ranks = {document.metadata["id"]: document.metadata.get("rank") for document in documents}
    assert len(documents) > len(context.selection.picks)
    assert {pick.node.id: pick.rank for pick in context.selection.picks}.items() <= ranks.items()
    assert [d.metadata["picked"] for d in documents] == [
        d.metadata.get("rank") is not None for d in documents
    ]


def test_ids_are_unique_among_skills_and_their_versions(pager: SkillPager, tmp_path: Path) -> None:
    changed = tmp_path / "SKILL.md"
    changed.write_text(TEXT + "\nOne more sentence.\n", encoding="utf-8")
    skills = [SKILL, changed, SAMPLES / "git-bisect"]
    ids = [
        d.id
        for skill in skills
        for d in langchain.SkillPagerRetriever(skill=skill, pager=pager).invoke(QUERY)
    ]
    assert len(ids) == len(set(ids))


def test_it_is_written_and_read_as_langchain_does_it() -> None:
    retriever = langchain.SkillPagerRetriever(skill=SKILL, max_tokens=300, mmr_lambda=0.5)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The function `loads` is in beta")  # LangChain's own
        again = loads(
            dumps(retriever), valid_namespaces=["skillpager"], allowed_objects=[langchain.SkillPagerRetriever]
        )
    assert again == retriever
    assert again.max_tokens == 300


def test_with_a_pager_of_its_own_it_says_that_it_cannot_be_written(hashing_pager: SkillPager) -> None:
    written = dumpd(langchain.SkillPagerRetriever(skill=SKILL, pager=hashing_pager))
    assert written["type"] == "not_implemented"


# ---- LlamaIndex


def test_nodes_have_offsets_scores_and_source(pager: SkillPager) -> None:
    retriever = llama_index.SkillPagerRetriever(SKILL, pager=pager, max_nodes=MAX_NODES)
    found = retriever.retrieve(QUERY)
    for each in found:
        assert isinstance(each.node, TextNode)
        assert each.score == each.node.metadata["relevance"]
        assert TEXT[each.node.start_char_idx : each.node.end_char_idx] == each.node.text
    assert len({each.node.ref_doc_id for each in found}) == 1


def test_a_language_model_reads_the_heading_path_and_no_numbers(pager: SkillPager) -> None:
    found = llama_index.SkillPagerRetriever(SKILL, pager=pager, max_nodes=1).retrieve(QUERY)[0]
    head, _, body = found.node.get_content(MetadataMode.LLM).partition("\n\n")
    known = found.node.metadata
    assert body == found.node.get_content()
    assert set(head.splitlines()) == {
        f"{key}: {known[key]}" for key in ("skill", "type", "file", "heading_path")
    }
    embedded = found.node.get_content(MetadataMode.EMBED).partition("\n\n")[0]
    assert set(embedded.splitlines()) == {f"{key}: {known[key]}" for key in ("skill", "heading_path")}


def test_async_calls_leave_the_event_loop_free(tmp_path: Path) -> None:
    pager, encoder = waiting_pager(tmp_path)
    of_langchain = langchain.SkillPagerRetriever(skill=SKILL, pager=pager)
    of_llama_index = llama_index.SkillPagerRetriever(SKILL, pager=pager)

    async def both() -> None:
        calls = [
            asyncio.create_task(of_langchain.ainvoke(QUERY)),
            asyncio.create_task(of_llama_index.aretrieve(QUERY)),
        ]
        await asyncio.sleep(0.05)
        encoder.free.set()
        assert all(await asyncio.gather(*calls))

    asyncio.run(both())

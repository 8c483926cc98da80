"""Retrievers over a whole library, with the real packages: LangChain, LlamaIndex, Haystack."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from haystack import Pipeline
from llama_index.core.schema import MetadataMode

from adapter_cases import MAX_NODES, NAME, QUERY, SKILL, expected_metadata
from conftest import SAMPLES
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
    (tmp_path / "deploy").mkdir()
    text = "---\nname: deploy\ndescription: Deploy the service.\ndisable-model-invocation: true\n---\n\nDeploy it.\n"
    (tmp_path / "deploy" / "SKILL.md").write_text(text)
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

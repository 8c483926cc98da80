"""LangChain: the retriever and the compressor, with the real package."""

import asyncio
import warnings
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.load import dumpd, dumps, loads
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnablePassthrough
from pydantic import ValidationError

from adapter_cases import (
    MAX_NODES,
    QUERY,
    SKILL,
    TEXT,
    waiting_pager,
)
from conftest import SAMPLES
from golden import QUERIES
from skillpager import SkillPager
from skillpager.integrations.langchain import SkillPagerCompressor, SkillPagerRetriever


def test_picks_are_told_from_small_gaps_that_are_shown(pager: SkillPager) -> None:
    skill, query = SAMPLES / "odd-markdown", QUERIES["odd-markdown"]  # whose page has such a gap
    retriever = SkillPagerRetriever(skill=skill, pager=pager, max_nodes=MAX_NODES, strategy="mmr")
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
    ids = [d.id for skill in skills for d in SkillPagerRetriever(skill=skill, pager=pager).invoke(QUERY)]
    assert len(ids) == len(set(ids))


def test_lambda_mult_is_another_name_of_mmr_lambda(pager: SkillPager) -> None:
    theirs = SkillPagerRetriever(skill=SKILL, pager=pager, lambda_mult=0.3, max_nodes=5)  # type: ignore[call-arg]
    ours = SkillPagerRetriever(skill=SKILL, pager=pager, mmr_lambda=0.3, max_nodes=5)
    assert theirs.mmr_lambda == 0.3
    assert theirs.invoke(QUERY) == ours.invoke(QUERY)
    assert theirs.invoke(QUERY) != SkillPagerRetriever(skill=SKILL, pager=pager, max_nodes=5).invoke(QUERY)


@pytest.mark.parametrize("wrong", [{"max_token": 3}, {"mmr_lambda": 0.3, "lambda_mult": 0.3}])
def test_an_unknown_or_doubled_option_is_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=r"max_token|lambda_mult"):
        SkillPagerRetriever(skill=SKILL, **wrong)


def test_it_runs_in_a_chain_and_in_batches(pager: SkillPager) -> None:
    retriever = SkillPagerRetriever(skill=SKILL, pager=pager, as_page=True, max_tokens=400)
    pages = retriever | (lambda documents: documents[0].page_content)
    prompt = ChatPromptTemplate.from_template("{page}\n\nTask: {task}")
    chain = {"page": pages, "task": RunnablePassthrough()} | prompt
    text = chain.invoke(QUERY).to_string()
    assert pager.page(SKILL, QUERY, max_tokens=400).text in text
    assert retriever.batch([QUERY, "dump roles"])[0] == retriever.invoke(QUERY)


def test_options_can_be_configured_for_a_call(pager: SkillPager) -> None:
    field = ConfigurableField(id="max_tokens")
    retriever = SkillPagerRetriever(skill=SKILL, pager=pager, as_page=True).configurable_fields(
        max_tokens=field
    )
    [document] = retriever.invoke(QUERY, config={"configurable": {"max_tokens": 300}})
    assert document.metadata["tokens"] <= 300 < retriever.invoke(QUERY)[0].metadata["tokens"]


def test_ainvoke_leaves_the_event_loop_free(tmp_path: Path) -> None:
    pager, encoder = waiting_pager(tmp_path)
    retriever = SkillPagerRetriever(skill=SKILL, pager=pager)
    compressor = SkillPagerCompressor(pager=pager)

    async def both() -> None:
        retrieved = asyncio.create_task(retriever.ainvoke(QUERY))
        compressed = asyncio.create_task(compressor.acompress_documents([Document(TEXT)], QUERY))
        await asyncio.sleep(0.05)
        encoder.free.set()
        assert await retrieved
        assert await compressed

    asyncio.run(both())


def test_it_is_written_and_read_as_langchain_does_it() -> None:
    retriever = SkillPagerRetriever(skill=SKILL, max_tokens=300, mmr_lambda=0.5)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The function `loads` is in beta")  # LangChain's own
        again = loads(
            dumps(retriever), valid_namespaces=["skillpager"], allowed_objects=[SkillPagerRetriever]
        )
    assert again == retriever
    assert again.max_tokens == 300


def test_with_a_pager_of_its_own_it_says_that_it_cannot_be_written(hashing_pager: SkillPager) -> None:
    written = dumpd(SkillPagerRetriever(skill=SKILL, pager=hashing_pager))
    assert written["type"] == "not_implemented"


def test_the_compressor_pages_each_document_and_keeps_order_ids_and_metadata(pager: SkillPager) -> None:
    other = (SAMPLES / "git-bisect" / "SKILL.md").read_text(encoding="utf-8")
    documents = [
        Document(TEXT, id="a", metadata={"type": "faq", "source": "wiki"}),
        Document(" \n", id="blank"),
        Document(other, id="b"),
        Document("one line", id="short"),
    ]
    pages = SkillPagerCompressor(pager=pager, max_tokens=300).compress_documents(documents, QUERY)
    assert [page.id for page in pages] == ["a", "blank", "b", "short"]
    assert pages[0].page_content == pager.page(TEXT, QUERY, max_tokens=300).text
    assert {"type": "faq", "source": "wiki"}.items() <= pages[0].metadata.items()
    assert pages[0].metadata["skillpager"]["tokens"] <= 300
    assert pages[0].metadata["skillpager"]["omitted"][0]["start_line"] > 0
    assert pages[1] == documents[1]
    assert pages[3].page_content.strip() == "one line"
    assert documents[0].page_content == TEXT
    assert "skillpager" not in documents[0].metadata


def test_a_document_is_named_by_its_metadata_on_one_line(pager: SkillPager) -> None:
    body = TEXT.split("---", 2)[2]
    document = Document(body, metadata={"title": "Notes]\n\non dumps", "source": "x.md"})
    [page] = SkillPagerCompressor(pager=pager, max_tokens=300).compress_documents([document], QUERY)
    assert page.page_content.startswith('[Page of skill "Notes] on dumps". ')

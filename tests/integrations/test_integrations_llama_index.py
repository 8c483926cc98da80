"""LlamaIndex: the retriever, the postprocessor and the node parser, with the real package."""

import asyncio
import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    Document,
    ImageNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    TextNode,
)

from adapter_cases import (
    MAX_NODES,
    QUERY,
    SKILL,
    TEXT,
    waiting_pager,
)
from conftest import SAMPLES, TRAPS
from messages import raises
from skillpager import SkillPager
from skillpager.errors import SettingsError
from skillpager.integrations.llama_index import (
    SkillNodeParser,
    SkillPagerPostprocessor,
    SkillPagerRetriever,
)

LINES = ["# Title", "", "- item", "text. text.", "text", "```", "| a | b |", "|---|---|", "\ufeff", "文字。"]


# ---- retriever


def test_nodes_have_offsets_scores_and_source(pager: SkillPager) -> None:
    retriever = SkillPagerRetriever(SKILL, pager=pager, max_nodes=MAX_NODES)
    assert (retriever.skill, retriever.max_nodes, retriever.as_page) == (str(SKILL), MAX_NODES, False)
    found = retriever.retrieve(QUERY)
    for each in found:
        assert isinstance(each.node, TextNode)
        assert each.score == each.node.metadata["relevance"]
        assert TEXT[each.node.start_char_idx : each.node.end_char_idx] == each.node.text
    assert len({each.node.ref_doc_id for each in found}) == 1


def test_a_language_model_reads_the_heading_path_and_no_numbers(pager: SkillPager) -> None:
    found = SkillPagerRetriever(SKILL, pager=pager, max_nodes=1).retrieve(QUERY)[0]
    head, _, body = found.node.get_content(MetadataMode.LLM).partition("\n\n")
    known = found.node.metadata
    assert body == found.node.get_content()
    assert set(head.splitlines()) == {
        f"{key}: {known[key]}" for key in ("skill", "type", "file", "heading_path")
    }
    embedded = found.node.get_content(MetadataMode.EMBED).partition("\n\n")[0]
    assert set(embedded.splitlines()) == {f"{key}: {known[key]}" for key in ("skill", "heading_path")}


def test_it_feeds_a_query_engine_with_the_postprocessor_behind_it(pager: SkillPager) -> None:
    retriever = SkillPagerRetriever(SKILL, pager=pager, as_page=True)
    shorter = SkillPagerPostprocessor(pager=pager, max_tokens=300)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM(), node_postprocessors=[shorter])
    answer = engine.query(QUERY)
    assert answer.source_nodes[0].node.metadata["skillpager"]["tokens"] <= 300
    assert "pg_restore" in str(answer)  # the mock answers with its prompt


# ---- postprocessor


def test_each_node_is_paged_and_keeps_place_id_score_and_metadata(pager: SkillPager) -> None:
    first = TextNode(text=TEXT, id_="a", metadata={"type": "faq"})
    other = Document(text=(SAMPLES / "git-bisect" / "SKILL.md").read_text(encoding="utf-8"), id_="b")
    nodes = [NodeWithScore(node=node, score=0.5) for node in (first, ImageNode(id_="image"), other)]
    pages = SkillPagerPostprocessor(pager=pager, max_tokens=300).postprocess_nodes(nodes, query_str=QUERY)
    assert [(page.node.id_, page.score) for page in pages] == [("a", 0.5), ("image", 0.5), ("b", 0.5)]
    assert pages[0].node.get_content() == pager.page(TEXT, QUERY, max_tokens=300).text
    assert pages[0].node.metadata["type"] == "faq"
    assert pages[0].node.metadata["skillpager"]["tokens"] <= 300
    assert "skillpager" not in pages[0].node.get_content(MetadataMode.LLM).partition("\n\n")[0]
    assert pages[1] is nodes[1]
    assert (first.text, first.metadata) == (TEXT, {"type": "faq"})


def test_without_a_query_it_says_what_to_pass(pager: SkillPager) -> None:
    with raises(SettingsError):
        SkillPagerPostprocessor(pager=pager).postprocess_nodes([])


def test_the_postprocessor_is_written_and_read_as_llama_index_does_it() -> None:
    made = SkillPagerPostprocessor(max_tokens=300, strategy="mmr")
    again = SkillPagerPostprocessor.from_json(made.to_json())
    assert (again.max_tokens, again.strategy, again.pager) == (300, "mmr", None)


# ---- node parser


@pytest.mark.parametrize(
    "path",
    [*sorted(TRAPS.glob("*.md")), *sorted(SAMPLES.glob("*/SKILL.md"))],
    ids=lambda path: path.as_posix(),
)
def test_nodes_tile_a_document_and_offsets_are_exact(path: Path, pager: SkillPager) -> None:
    assert_tiles(path.read_bytes().decode("utf-8"), pager)


@example(["# Title", "", "text", "", "text"], "\n")
@settings(max_examples=60)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=12), st.sampled_from(["\n", "\r\n"]))
def test_nodes_tile_any_document_however_often_a_text_repeats(
    pager: SkillPager, lines: list[str], newline: str
) -> None:
    assert_tiles(newline.join(lines), pager)


def assert_tiles(text: str, pager: SkillPager) -> None:
    """Check that a document's nodes are its text, and stand where they say."""
    document = Document(text=text)
    nodes = SkillNodeParser(pager=pager).get_nodes_from_documents([document])
    if not document.text.strip("\ufeff \r\n"):
        assert nodes == []
        return
    assert "".join(node.get_content() for node in nodes) == document.text
    position = 0
    for node in nodes:
        assert isinstance(node, TextNode)
        assert (node.start_char_idx, node.end_char_idx) == (position, position + len(node.text))
        position += len(node.text)


def test_nodes_have_types_neighbours_and_the_metadata_of_their_document(pager: SkillPager) -> None:
    documents = [
        Document(text=TEXT, id_="a", metadata={"file_name": "a.md"}),
        Document(text="Other.", id_="b"),
    ]
    nodes = SkillNodeParser(pager=pager).get_nodes_from_documents(documents)
    first = [node for node in nodes if node.ref_doc_id == "a"]
    known = pager.index(TEXT).nodes
    assert [node.metadata["type"] for node in first] == [str(node.type) for node in known]
    assert [node.metadata["start_line"] for node in first] == [node.span.start_line for node in known]
    assert {node.metadata["file_name"] for node in first} == {"a.md"}
    assert first[0].next_node is not None
    assert first[0].next_node.node_id == first[1].node_id
    assert first[1].prev_node is not None
    assert first[1].prev_node.node_id == first[0].node_id
    assert NodeRelationship.NEXT not in first[-1].relationships
    assert NodeRelationship.PREVIOUS not in nodes[-1].relationships


def test_a_document_of_headings_is_one_node_without_a_type(pager: SkillPager) -> None:
    [node] = SkillNodeParser(pager=pager).get_nodes_from_documents([Document(text="# One\n\n## Two\n")])
    assert node.get_content() == "# One\n\n## Two\n"
    assert "type" not in node.metadata


def test_it_runs_in_an_ingestion_pipeline_with_ids_of_the_users_choice(pager: SkillPager) -> None:
    parser = SkillNodeParser(pager=pager, id_func=lambda number, document: f"{document.id_}-{number}")
    nodes = IngestionPipeline(transformations=[parser]).run(documents=[Document(text=TEXT, id_="a")])
    assert [node.id_ for node in nodes][:2] == ["a-0", "a-1"]


# ---- all


def test_async_calls_leave_the_event_loop_free(tmp_path: Path) -> None:
    pager, encoder = waiting_pager(tmp_path)
    retriever = SkillPagerRetriever(SKILL, pager=pager)
    postprocessor = SkillPagerPostprocessor(pager=pager)
    parser = SkillNodeParser(pager=pager)
    document = Document(text=TEXT)

    async def all_of_them() -> None:
        calls = [
            asyncio.create_task(retriever.aretrieve(QUERY)),
            asyncio.create_task(
                postprocessor.apostprocess_nodes([NodeWithScore(node=document)], QueryBundle(QUERY))
            ),
            asyncio.create_task(parser.aget_nodes_from_documents([document])),
        ]
        await asyncio.sleep(0.05)
        encoder.free.set()
        assert all(await asyncio.gather(*calls))

    asyncio.run(all_of_them())


@pytest.mark.parametrize("kind", [SkillPagerPostprocessor, SkillNodeParser])
def test_copies_share_the_pager_and_pickles_keep_its_parts(
    kind: type[SkillPagerPostprocessor | SkillNodeParser], hashing_pager: SkillPager
) -> None:
    made = kind(pager=hashing_pager)
    assert copy.deepcopy(made).pager is hashing_pager
    again = pickle.loads(pickle.dumps(made))
    assert again.pager.recipe == hashing_pager.recipe
    assert again.to_dict() == made.to_dict()

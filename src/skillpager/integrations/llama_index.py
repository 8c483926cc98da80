"""LlamaIndex: retrievers over one skill and over a library, a postprocessor, and a node parser."""

import asyncio
import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack

from skillpager.errors import SettingsError, require_extra

require_extra("llama_index.core", extra="llama-index", purpose="skillpager.integrations.llama_index")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import build_nodes_from_splits
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BasePydanticReader
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.utils import get_tqdm_iterable

from skillpager.integrations.options import (
    HasOptions,
    IndexOptions,
    LibraryFields,
    LibraryOptions,
    PageFields,
    PagerOption,
    SkillFields,
    SkillOptions,
)
from skillpager.integrations.records import Record, node_metadata, page_metadata, skill_of

# metadata that a language model reads beside a node's text, and that is embedded with it
FOR_LLM = frozenset({"skill", "file", "heading_path", "type"})
FOR_EMBEDDING = frozenset({"skill", "heading_path"})

PAGE_KEY = "skillpager"

logger = logging.getLogger(__name__)


class _Retriever(BaseRetriever, HasOptions[SkillFields | LibraryFields]):
    def __init__(
        self, options: SkillFields | LibraryFields, callback_manager: CallbackManager | None
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_found(record) for record in self.options.records(query_bundle.query_str)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class SkillPagerRetriever(_Retriever):
    """Retrieves the page of a skill: a `TextNode` for each of its nodes, in document order.

    Its source is the skill, its offsets are those in the file, its metadata are type, file, lines, heading
    path, tokens and scores; the score beside it is the relevance.
    """

    def __init__(
        self,
        skill: str | Path,
        *,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[SkillOptions],
    ) -> None:
        """Choose a skill and how it is paged.

        Args:
            skill: A path, or Markdown text (a string with a line break).
            callback_manager: As for every retriever.
            **options: See `SkillOptions`.

        Raises:
            ValueError: An option is unknown or of a wrong type.
        """
        super().__init__(SkillFields.model_validate({"skill": skill, **options}), callback_manager)


class SkillLibraryRetriever(_Retriever):
    """Retrieves the page of the skills that a query needs, among all: a `TextNode` for each of its nodes.

    Metadata are those of `SkillPagerRetriever`, and the skill's `chance`. If no skill fits there
    is no node.
    """

    def __init__(
        self,
        folders: Sequence[str | Path] | None = None,
        *,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[LibraryOptions],
    ) -> None:
        """Choose the skills and how they are paged; nothing is read yet.

        Args:
            folders: Folders to search for skills; None for those of the settings and the conventional ones.
            callback_manager: As for every retriever.
            **options: See `LibraryOptions`.

        Raises:
            ValueError: An option is unknown or of a wrong type.
        """
        super().__init__(LibraryFields.model_validate({"folders": folders, **options}), callback_manager)


def _found(record: Record) -> NodeWithScore:
    """Return a record as a node with its score."""
    node = TextNode(
        id_=record.id,
        text=record.text,
        metadata=dict(record.metadata),
        start_char_idx=record.start,
        end_char_idx=record.end,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=record.source)},
    )
    _hide_metadata(node)
    return NodeWithScore(node=node, score=record.score)


class SkillPagerPostprocessor(BaseNodePostprocessor, PageFields):
    """Replaces the Markdown text of each node by its page for the query.

    Order, ids and scores stay; `metadata["skillpager"]` holds the page's tokens and what it leaves out.
    Limits apply to each node. The fields are those of `PageFields`.
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the framework saves it."""
        return "SkillPagerPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise SettingsError("SkillPagerPostprocessor pages for a query: pass query_str or query_bundle.")
        return [self._page(node, query_bundle.query_str) for node in nodes]

    def _page(self, found: NodeWithScore, query: str) -> NodeWithScore:
        text = found.node.get_content(metadata_mode=MetadataMode.NONE)
        page = self.page_of(text, found.node.metadata, query)
        if page is None:
            return found
        node = found.node.model_copy(deep=True)
        node.set_content(page.text)
        node.metadata[PAGE_KEY] = page_metadata(page)
        node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, PAGE_KEY]
        node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, PAGE_KEY]
        return NodeWithScore(node=node, score=found.score)


class SkillReader(BasePydanticReader, IndexOptions):
    """Reads skills from folders, archives, tables and addresses, and indexes them in parallel.

    Each becomes a document, the text of its entry file. Faults are logged as warnings. The fields are those
    of `IndexOptions`.
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the framework saves it."""
        return "SkillReader"

    def load_data(self, sources: Sequence[str | Path]) -> list[Document]:
        """Return a document for each skill of the sources, which are those of `skillpager index`.

        Raises:
            SkillPagerError: A fault that would fail every skill, such as a wrong setting.
        """
        records, failed = self.index(sources)
        for error in failed.values():
            logger.warning("%s", error)
        return [Document(id_=each.id, text=each.text, metadata=dict(each.metadata)) for each in records]


class SkillNodeParser(NodeParser, PagerOption):
    """Splits Markdown documents into typed nodes whose texts, joined, are the document.

    A node's text includes the headings and blank lines before it; that of the last node also the rest of the
    document. The lines and tokens in its metadata are those without these. A blank document has no node; a
    document of headings alone has a single node without a type.
    """

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the framework saves it."""
        return "SkillNodeParser"

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        documents = get_tqdm_iterable(nodes, show_progress, "Parsing nodes")
        return [node for document in documents for node in self._split(document)]

    async def _aparse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        return await asyncio.to_thread(self._parse_nodes, nodes, show_progress, **kwargs)

    def _postprocess_parsed_nodes(
        self, nodes: list[BaseNode], parent_doc_map: dict[str, Document]
    ) -> list[BaseNode]:
        # the framework searches for each text again and gives repeated texts the wrong offsets
        offsets = [(node.start_char_idx, node.end_char_idx) for node in nodes if isinstance(node, TextNode)]
        parsed = super()._postprocess_parsed_nodes(nodes, parent_doc_map)
        for node, (start, end) in zip(parsed, offsets, strict=True):
            if isinstance(node, TextNode):
                node.start_char_idx, node.end_char_idx = start, end
        return parsed

    def _split(self, document: BaseNode) -> list[TextNode]:
        text = document.get_content(metadata_mode=MetadataMode.NONE)
        skill = skill_of(self.chosen_pager, text, document.metadata)
        if skill is None:
            return []
        nodes = self.chosen_pager.index(skill).nodes
        # a text starts where the node before it ends; the last one ends with the document
        places = list(pairwise([0, *(node.span.end for node in nodes[:-1]), len(text)]))
        made = build_nodes_from_splits(
            [text[start:end] for start, end in places], document, id_func=self.id_func
        )
        for each, (start, end) in zip(made, places, strict=True):
            each.start_char_idx, each.end_char_idx = start, end
        for each, node in zip(made, nodes, strict=False):  # a document of headings has a text and no node
            each.metadata = node_metadata(skill, node)
            _hide_metadata(each)
        return made


def _hide_metadata(node: TextNode) -> None:
    """Hide the numbers in the metadata from language models and from embedding."""
    ours = set(node.metadata)
    node.excluded_llm_metadata_keys = sorted({*node.excluded_llm_metadata_keys, *ours - FOR_LLM})
    node.excluded_embed_metadata_keys = sorted({*node.excluded_embed_metadata_keys, *ours - FOR_EMBEDDING})

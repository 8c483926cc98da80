"""LlamaIndex: retrievers over one skill and over a library."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skillpager.errors import require_extra

require_extra("llama_index.core", extra="llama-index", purpose="skillpager.integrations.llama_index")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from skillpager.integrations.retrieval import LibraryFields, Record, SkillFields

# metadata that a language model reads beside a node's text, and that is embedded with it
FOR_LLM = frozenset({"skill", "file", "heading_path", "type"})
FOR_EMBEDDING = frozenset({"skill", "heading_path"})


class _Retriever(BaseRetriever):
    options: SkillFields | LibraryFields

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_found(record) for record in self.options.records(query_bundle.query_str)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class SkillPagerRetriever(_Retriever):
    """Retrieves the page of a skill: a `TextNode` for each of its nodes, in document order.

    Its source is the skill, its offsets are those in the file, its metadata are type, file, lines, heading
    path, tokens and scores; the score beside it is the relevance. `skill` is a path, or Markdown text with a
    line break. Options are fields of `SkillFields`; an unknown one, or one of a wrong type, is a
    `ValueError`.
    """

    def __init__(
        self, skill: str | Path, *, callback_manager: CallbackManager | None = None, **options: Any
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.options = SkillFields(skill=skill, **options)


class SkillLibraryRetriever(_Retriever):
    """Retrieves the page of the skills that a query needs, among all: a `TextNode` for each of its nodes.

    Metadata are those of `SkillPagerRetriever`, and the skill's `chance`. If no skill fits there is no node.
    Nothing is read before the first query. Without folders these are those of the settings and the
    conventional ones. Options are fields of `LibraryFields`.
    """

    def __init__(
        self,
        folders: Sequence[str | Path] | None = None,
        *,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.options = LibraryFields.model_validate({"folders": folders, **options})


def _found(record: Record) -> NodeWithScore:
    """Return a record as a node with its score; models and embedding do not see the numbers."""
    node = TextNode(
        id_=record.id,
        text=record.text,
        metadata=record.metadata,
        start_char_idx=record.start,
        end_char_idx=record.end,
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=record.source)},
        excluded_llm_metadata_keys=sorted(record.metadata.keys() - FOR_LLM),
        excluded_embed_metadata_keys=sorted(record.metadata.keys() - FOR_EMBEDDING),
    )
    return NodeWithScore(node=node, score=record.score)

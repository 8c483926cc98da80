"""LangChain: retrievers over one skill and over a library, and a compressor of Markdown documents."""

import os
from collections.abc import Sequence
from pathlib import Path

from skillpager.errors import require_extra

require_extra("langchain_core", extra="langchain", purpose="skillpager.integrations.langchain")

from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.load.serializable import SerializedConstructor, SerializedNotImplemented
from langchain_core.retrievers import BaseRetriever
from pydantic import AliasChoices, Field, field_validator

from skillpager.integrations.options import LibraryFields, PageFields, PagerOption
from skillpager.integrations.records import (
    Record,
    page_metadata,
    page_text,
    retrieve,
    retrieve_from_library,
)


class _Options(PageFields):
    # LangChain's retrievers call the weight `lambda_mult`
    mmr_lambda: float | None = Field(default=None, validation_alias=AliasChoices("mmr_lambda", "lambda_mult"))


class _Retriever(BaseRetriever, PagerOption):
    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: `langchain_core.load` can write and read the retriever."""
        return True

    def to_json(self) -> SerializedConstructor | SerializedNotImplemented:
        """Return the form that `langchain_core.load` writes; with its own pager it cannot be read back."""
        return super().to_json() if self.pager is None else self.to_json_not_implemented()


class SkillPagerRetriever(_Retriever, _Options):
    """Retrieves the page of a skill: a document for each of its nodes, in document order.

    `metadata` holds the node's type, file, lines, heading path, tokens and scores. The other fields are those
    of `PageFields`; `lambda_mult` is another name of `mmr_lambda`.

    Attributes:
        skill: A path, or Markdown text (a string with a line break).
        as_page: Return the page with headings and marks as one document.
    """

    skill: str | Path
    as_page: bool = False

    @field_validator("skill")
    @classmethod
    def _as_text(cls, skill: str | Path) -> str:
        return os.fspath(skill)  # `dumps` writes no paths

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return _documents(retrieve(self, self.skill, query, as_page=self.as_page))


class SkillLibraryRetriever(_Retriever, LibraryFields):
    """Retrieves the page of the skills that a query needs, among all: a document for each of its nodes.

    `metadata` holds the same as with `SkillPagerRetriever`, and the skill's `chance` and `tasks`. If no skill
    fits there is no document. The fields are those of `LibraryFields`.

    Attributes:
        as_page: Return the page, with the names of its skills, as one document.
    """

    as_page: bool = False

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return _documents(retrieve_from_library(self, query, as_page=self.as_page))


def _documents(records: Sequence[Record]) -> list[Document]:
    return [Document(record.text, id=record.id, metadata=dict(record.metadata)) for record in records]


class SkillPagerCompressor(BaseDocumentCompressor, _Options):
    """Replaces the Markdown text of each document by its page for the query.

    Order, ids and metadata stay; `metadata["skillpager"]` holds the page's tokens and what it leaves out.
    Limits apply to each document. The fields are those of `PageFields`.
    """

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the pages of the documents, in their order; a blank document stays as it is.

        Raises:
            SkillPagerError: As for `SkillPager.page`.
        """
        compressed = []
        for document in documents:
            page = page_text(self, document.page_content, document.metadata, query)
            if page is not None:
                metadata = {**document.metadata, "skillpager": page_metadata(page)}
                document = document.model_copy(update={"page_content": page.text, "metadata": metadata})
            compressed.append(document)
        return compressed

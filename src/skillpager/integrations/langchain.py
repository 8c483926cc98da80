"""LangChain: retrievers over one skill and over a library, and a compressor of Markdown documents."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from skillpager.errors import require_extra

require_extra("langchain_core", extra="langchain", purpose="skillpager.integrations.langchain")

from langchain_core.callbacks import CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.load.serializable import SerializedConstructor, SerializedNotImplemented
from langchain_core.retrievers import BaseRetriever
from pydantic import AliasChoices, Field

from skillpager.integrations.options import LibraryFields, PageFields, PagerOption, SkillFields
from skillpager.integrations.records import Record, page_metadata

# LangChain's retrievers call the weight `lambda_mult`
LAMBDA = Field(default=None, validation_alias=AliasChoices("mmr_lambda", "lambda_mult"))


class _Retriever(BaseRetriever, PagerOption, ABC):
    @abstractmethod
    def records(self, query: str) -> list[Record]: ...

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(record.text, id=record.id, metadata=dict(record.metadata))
            for record in self.records(query)
        ]

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Return True: `langchain_core.load` can write and read the retriever."""
        return True

    def to_json(self) -> SerializedConstructor | SerializedNotImplemented:
        """Return the form that `langchain_core.load` writes; with its own pager it cannot be read back."""
        return super().to_json() if self.pager is None else self.to_json_not_implemented()


class SkillPagerRetriever(SkillFields, _Retriever):
    """Retrieves the page of a skill: a document for each of its nodes, in document order.

    `metadata` holds the node's type, file, lines, heading path, tokens and scores. The fields are those of
    `SkillFields`; `lambda_mult` is another name of `mmr_lambda`.
    """

    mmr_lambda: float | None = LAMBDA


class SkillLibraryRetriever(LibraryFields, _Retriever):
    """Retrieves the page of the skills that a query needs, among all: a document for each of its nodes.

    `metadata` holds the same as with `SkillPagerRetriever`, and the skill's `chance`. If no skill
    fits there is no document. The fields are those of `LibraryFields`.
    """


class SkillPagerCompressor(BaseDocumentCompressor, PageFields):
    """Replaces the Markdown text of each document by its page for the query.

    Order, ids and metadata stay; `metadata["skillpager"]` holds the page's tokens and what it leaves out.
    Limits apply to each document. The fields are those of `PageFields`.
    """

    mmr_lambda: float | None = LAMBDA

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the pages of the documents, in their order; a blank document stays as it is.

        Raises:
            SkillPagerError: As for `SkillPager.page`.
        """
        compressed = []
        for document in documents:
            page = self.page_of(document.page_content, document.metadata, query)
            if page is not None:
                metadata = {**document.metadata, "skillpager": page_metadata(page)}
                document = document.model_copy(update={"page_content": page.text, "metadata": metadata})
            compressed.append(document)
        return compressed

"""LangChain: retrievers over one skill and over a library."""

from abc import ABC, abstractmethod

from skillpager.errors import require_extra

require_extra("langchain_core", extra="langchain", purpose="skillpager.integrations.langchain")

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.load.serializable import SerializedConstructor, SerializedNotImplemented
from langchain_core.retrievers import BaseRetriever

from skillpager.integrations.retrieval import LibraryFields, Record, SharedFields, SkillFields


class _Retriever(BaseRetriever, SharedFields, ABC):
    @abstractmethod
    def records(self, query: str) -> list[Record]: ...

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(record.text, id=record.id, metadata=record.metadata) for record in self.records(query)
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
    `SkillFields`.
    """


class SkillLibraryRetriever(LibraryFields, _Retriever):
    """Retrieves the page of the skills that a query needs, among all: a document for each of its nodes.

    `metadata` holds the same as with `SkillPagerRetriever`, and the skill's `chance`. If no skill
    fits there is no document. The fields are those of `LibraryFields`.
    """

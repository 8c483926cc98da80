"""Haystack: retrievers over one skill and over a library."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from skillpager.errors import SettingsError, require_extra

require_extra("haystack", extra="haystack", purpose="skillpager.integrations.haystack")

from haystack import Document, component, default_from_dict, default_to_dict

from skillpager.integrations.retrieval import LibraryFields, SkillFields


class _Saved:
    """A component with options, which it writes into a pipeline's file and reads from it."""

    options: SkillFields | LibraryFields

    def to_dict(self) -> dict[str, Any]:
        """Return the component as a dict for a pipeline's file.

        Raises:
            SettingsError: It has its own pager.
        """
        if self.options.pager is not None:
            raise SettingsError(
                "A pipeline with its own pager cannot be saved: leave pager out and choose its parts with "
                "the settings SKILLPAGER_*."
            )
        return default_to_dict(self, **self.options.model_dump(mode="json", exclude_defaults=True))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the component that `to_dict` wrote."""
        return default_from_dict(cls, data)

    def _retrieve(self, query: str, **limits: int | None) -> dict[str, list[Document]]:
        changes = {name: value for name, value in limits.items() if value is not None}
        documents = [
            Document(id=record.id, content=record.text, meta=record.metadata, score=record.score)
            for record in self.options.model_copy(update=changes).records(query)
        ]
        return {"documents": documents}


@component
class SkillPagerRetriever(_Saved):
    """Retrieves the page of a skill: a document for each of its nodes, in document order.

    `meta` holds the node's type, file, lines, heading path, tokens and scores; `score` is the relevance.
    `skill` is a path, or Markdown text with a line break. Options are fields of `SkillFields`; an unknown
    one, or one of a wrong type, is a `ValueError`.
    """

    def __init__(self, skill: str | Path, **options: Any) -> None:
        self.options = SkillFields(skill=skill, **options)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, max_tokens: int | None = None, max_nodes: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the page for a query as `{"documents": [...]}`; these limits replace the component's."""
        return self._retrieve(query, max_tokens=max_tokens, max_nodes=max_nodes)


@component
class SkillLibraryRetriever(_Saved):
    """Retrieves the page of the skills that a query needs, among all: a document for each of its nodes.

    `meta` holds the same as with `SkillPagerRetriever`, and the skill's `chance`. If no skill fits there is
    no document. Nothing is read before the first query. Without folders these are those of the settings and
    the conventional ones. Options are fields of `LibraryFields`.
    """

    def __init__(self, folders: Sequence[str | Path] | None = None, **options: Any) -> None:
        self.options = LibraryFields.model_validate({"folders": folders, **options})

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, max_tokens: int | None = None, max_skills: int | None = None
    ) -> dict[str, list[Document]]:
        """Return the page for a query as `{"documents": [...]}`; these limits replace the component's."""
        return self._retrieve(query, max_tokens=max_tokens, max_skills=max_skills)

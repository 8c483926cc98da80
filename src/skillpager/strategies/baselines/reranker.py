"""A cross-encoder that reads query and node together: the usual second stage of retrieval."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from skillpager.errors import require_extra
from skillpager.node_text import text_under_headings
from skillpager.remote.endpoint import sendable
from skillpager.strategies.baselines.hub_model import HubStrategy
from skillpager.types import Query, SkillIndex


@dataclass(frozen=True, slots=True)
class Reranker(HubStrategy):
    """Nodes by falling score of a cross-encoder, which reads each with the headings it stands under.

    Every node is scored, so that nothing depends on a first stage. Code that a model brings along is not
    run.

    Attributes:
        model: Name on the Hugging Face hub, such as `BAAI/bge-reranker-v2-m3`, or the path of a folder.
        name: `reranker`.
    """

    name: str = "reranker"

    def load(self) -> Any:
        """Return the cross-encoder."""
        package = require_extra("sentence_transformers", extra="st", purpose="The strategy reranker")
        return package.CrossEncoder(self.model)

    def score(self, model: Any, index: SkillIndex, query: Query) -> ArrayLike:
        """Return the score of each pair of query and node."""
        pairs = [(sendable(query.text), sendable(text_under_headings(node))) for node in index.nodes]
        scores: ArrayLike = model.predict(pairs, show_progress_bar=False) if pairs else []
        return scores

"""A cross-encoder that reads query and node together: the usual second stage of retrieval."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from skillpager.errors import require_extra
from skillpager.node_text import text_under_headings
from skillpager.remote.endpoint import sendable
from skillpager.strategies.baselines.loading import LoadedModel
from skillpager.strategies.scoring import select_by_score
from skillpager.types import Budget, Query, Selection, SkillIndex, TokenMeter

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


@dataclass(frozen=True, slots=True)
class Reranker:
    """Nodes by falling score of a cross-encoder, which reads each with the headings it stands under.

    Every node is scored, so that nothing depends on a first stage. Code that a model brings along is not
    run.

    Attributes:
        model: Name on the Hugging Face hub, such as `BAAI/bge-reranker-v2-m3`, or the path of a folder.
        name: `reranker`.
        loaded: The model, loaded at first use.
    """

    model: str
    name: str = "reranker"
    loaded: "LoadedModel[CrossEncoder]" = field(default_factory=LoadedModel, repr=False, compare=False)

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best score first.

        Raises:
            StrategyError: The model cannot be loaded or run, or gives no single number for a pair.
            MissingExtraError: The `sentence-transformers` package is not installed.
        """
        pairs = [(sendable(query.text), sendable(text_under_headings(node))) for node in index.nodes]

        def score(model: "CrossEncoder") -> ArrayLike:
            scores: ArrayLike = model.predict(pairs, show_progress_bar=False) if pairs else []
            return scores

        scores = self.loaded.scores(f"{self.name}:{self.model}", len(pairs), load=self._load, score=score)
        return select_by_score(self.name, index, query, scores, budget=budget, meter=meter)

    def _load(self) -> "CrossEncoder":
        package = require_extra("sentence_transformers", extra="st", purpose="The strategy reranker")
        model: CrossEncoder = package.CrossEncoder(self.model)
        return model

"""Nodes by the score of a cross-encoder of the Hugging Face hub, which runs in this process."""

import threading
from typing import Any

import numpy as np

from skillpager.errors import StrategyError, require_extra
from skillpager.remote.endpoint import sendable
from skillpager.remote.hub import no_progress_bars, reason_of
from skillpager.sections import embedded_text
from skillpager.strategies.picking import select_by_score
from skillpager.types import Budget, FloatArray, Query, ScoreKind, Selection, SkillIndex, TokenMeter

DECIMALS = 6  # scores are compared to a millionth, as cosines are


class Reranker:
    """Nodes by falling score of a cross-encoder, such as `BAAI/bge-reranker-v2-m3`.

    It reads the query together with each node under its headings: the usual second stage of retrieval, but
    over all nodes, so that nothing depends on a first stage. The model is loaded at first use; code that
    comes with it is not run. Thread-safe, one thread at a time.

    Args:
        model: Name on the Hugging Face hub, or the path of a folder.
    """

    name = "reranker"

    def __init__(self, model: str) -> None:
        self.model = model
        self._encoder: Any = None
        # held while loading and while scoring: fast tokenizers refuse a second thread
        self._lock = threading.Lock()

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best score first.

        Raises:
            StrategyError: The model cannot be loaded or run, or is not a cross-encoder with one score.
            MissingExtraError: A package is not installed.
        """
        scores = self.scores(index, query)
        return select_by_score(
            self.name, index, query, scores, budget=budget, meter=meter, score_kind=ScoreKind.MODEL
        )

    def scores(self, index: SkillIndex, query: Query) -> FloatArray:
        """Return `(n,)` float32: the score of each node, to a millionth; raises as `select` does."""
        pairs = [(sendable(query.text), sendable(embedded_text(node, "heading"))) for node in index.nodes]
        purpose = f'The strategy "{self.name}:{self.model}"'
        with self._lock, no_progress_bars(purpose):
            package = require_extra("sentence_transformers", extra="st", purpose=purpose)
            # the type of an error depends on which of several packages finds the fault
            try:
                if self._encoder is None:
                    self._encoder = package.CrossEncoder(self.model)
            except Exception as error:
                raise StrategyError(
                    f'The model of "{self.name}:{self.model}" cannot be loaded ({reason_of(error)}): give '
                    "the name of a model on the Hugging Face hub, or the path of a folder that holds one; "
                    "without network it must have been downloaded before."
                ) from error
            try:
                found = self._encoder.predict(pairs, show_progress_bar=False) if pairs else []
                numbers = np.asarray(found, dtype=np.float32)
                if numbers.shape != (len(pairs),):
                    raise ValueError(f"it gives numbers of shape {numbers.shape} for {len(pairs)} nodes")
                if not np.isfinite(numbers).all():
                    raise ValueError("it gives something that is not a finite number")
            except Exception as error:
                raise StrategyError(
                    f'The model of "{self.name}:{self.model}" cannot score {len(pairs)} nodes '
                    f"({reason_of(error)}): choose a model that was made for this strategy."
                ) from error
        rounded: FloatArray = np.round(numbers, DECIMALS)
        return rounded

"""Base of the strategies that score nodes with a Hugging Face model in this process."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skillpager.errors import SkillPagerError, StrategyError, require_extra
from skillpager.strategies.picking import select_by_score
from skillpager.types import Budget, FloatArray, Query, Selection, SkillIndex, TokenMeter

# scores are compared to a millionth, as cosines are
DECIMALS = 6

_LOAD_ADVICE = (
    "give the name of a model on the Hugging Face hub, or the path of a folder that holds one; without "
    "network it must have been downloaded before"
)
_SCORE_ADVICE = "choose a model that was made for this strategy"


@dataclass(slots=True)
class LoadedModel:
    """A model once it is loaded, and the lock of its users.

    Attributes:
        model: The model; None before its first use.
        lock: Held while loading and while scoring: fast tokenizers refuse a second thread.
    """

    model: Any = None
    lock: threading.RLock = field(default_factory=threading.RLock)


@dataclass(frozen=True, slots=True)
class HubStrategy(ABC):
    """Nodes by falling score of a model. Safe for many threads; one at a time uses the model.

    Attributes:
        model: Name on the Hugging Face hub, or the path of a folder.
        name: Name of the strategy.
        loaded: The model, loaded at first use.
    """

    model: str
    name: str = ""
    loaded: LoadedModel = field(default_factory=LoadedModel, repr=False, compare=False)

    @abstractmethod
    def load(self) -> Any:
        """Return the model; whatever it raises becomes a `StrategyError`."""

    @abstractmethod
    def score(self, model: Any, index: SkillIndex, query: Query) -> ArrayLike:
        """Return one number for each node; whatever it raises becomes a `StrategyError`."""

    def select(self, index: SkillIndex, query: Query, *, budget: Budget, meter: TokenMeter) -> Selection:
        """Return up to `max_nodes` picks, the best score first.

        Raises:
            StrategyError: The model cannot be loaded or run, or is not one that this strategy can use.
            MissingExtraError: A package is not installed.
        """
        scores = self.scores(index, query)
        return select_by_score(self.name, index, query, scores, budget=budget, meter=meter)

    def scores(self, index: SkillIndex, query: Query) -> FloatArray:
        """Return `(n,)` float32: the score of each node, to a millionth.

        Raises:
            StrategyError: The model cannot be loaded or run, or gives something else than a number for each
                node.
            MissingExtraError: A package is not installed.
        """
        label, count = f"{self.name}:{self.model}", len(index.nodes)
        with self.loaded.lock, _no_progress_bars(f'The strategy "{label}"'):
            if self.loaded.model is None:
                with _strategy_errors(f'The model of "{label}" cannot be loaded', _LOAD_ADVICE):
                    self.loaded.model = self.load()
            with _strategy_errors(f'The model of "{label}" cannot score {count} nodes', _SCORE_ADVICE):
                numbers = np.asarray(self.score(self.loaded.model, index, query), dtype=np.float32)
                if numbers.shape != (count,):
                    raise ValueError(f"it gives numbers of shape {numbers.shape} for {count} nodes")
                if not np.isfinite(numbers).all():
                    raise ValueError("it gives something that is no finite number")
        rounded: FloatArray = np.round(numbers, DECIMALS)
        return rounded


@contextmanager
def _strategy_errors(complaint: str, advice: str) -> Iterator[None]:
    """Turn whatever goes wrong inside into a StrategyError."""
    try:
        yield
    except SkillPagerError:
        raise
    # what is raised depends on which of four packages, or whose code, finds the fault
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise StrategyError(f"{complaint} ({reason}): {advice}.") from error


@contextmanager
def _no_progress_bars(purpose: str) -> Iterator[None]:
    """Hide the progress bars of transformers; `purpose` is what needs it, for the error."""
    bars = require_extra("transformers.utils.logging", extra="st", purpose=purpose)
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()

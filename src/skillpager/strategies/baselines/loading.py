"""Models of others in this process: loaded at first use, kept, and their failures in plain words."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from skillpager.errors import SkillPagerError, StrategyError, require_extra
from skillpager.types import FloatArray

Model = TypeVar("Model")

# scores are compared to a millionth, as cosines are
DECIMALS = 6


_LOAD_ADVICE = (
    "give the name of a model on the Hugging Face hub, or the path of a folder that holds one; without "
    "network it must have been downloaded before"
)
_SCORE_ADVICE = "choose a model that was made for this strategy"


class LoadedModel(Generic[Model]):
    """A model of the Hugging Face hub or of a folder. Safe for many threads; one at a time uses it."""

    def __init__(self) -> None:
        """Load nothing yet."""
        self._model: Model | None = None
        # held while scoring too: fast tokenizers refuse a second thread
        self._lock = threading.RLock()

    def scores(
        self, label: str, count: int, *, load: Callable[[], Model], score: Callable[[Model], ArrayLike]
    ) -> FloatArray:
        """Return `(count,)` float32: what `score` makes of `count` nodes, to a millionth.

        Args:
            label: Strategy and model as the user named them, such as `reranker:BAAI/bge-reranker-v2-m3`.
            count: Number of nodes.
            load: Makes the model; called at first use.
            score: Makes one number for each node.

        Raises:
            StrategyError: The model cannot be loaded or run, or gives something else than `count` numbers.
            MissingExtraError: A package is not installed.
        """
        with self._lock, no_progress_bars(f'The strategy "{label}"'):
            if self._model is None:
                with _told_as(f'The model of "{label}" cannot be loaded', _LOAD_ADVICE):
                    self._model = load()
            with _told_as(f'The model of "{label}" cannot score {count} nodes', _SCORE_ADVICE):
                return _checked(score(self._model), count)


def _checked(scores: ArrayLike, count: int) -> FloatArray:
    """Return scores as rounded float32; ValueError when they are not `count` finite numbers."""
    numbers = np.asarray(scores, dtype=np.float32)
    if numbers.shape != (count,):
        raise ValueError(f"it gives numbers of shape {numbers.shape} for {count} nodes")
    if not np.isfinite(numbers).all():
        raise ValueError("it gives something that is no finite number")
    rounded: FloatArray = np.round(numbers, DECIMALS)
    return rounded


@contextmanager
def _told_as(complaint: str, advice: str) -> Iterator[None]:
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
def no_progress_bars(purpose: str) -> Iterator[None]:
    """Keep transformers from drawing progress bars for a while.

    Args:
        purpose: What needs transformers, as the subject of a sentence.

    Raises:
        MissingExtraError: transformers is not installed.
    """
    logging = require_extra("transformers.utils.logging", extra="st", purpose=purpose)
    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()

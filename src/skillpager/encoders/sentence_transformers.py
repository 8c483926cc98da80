"""Embeddings from any model of the sentence-transformers package, such as the paper's `BAAI/bge-m3`."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skillpager.encoders.openai import unit_rows
from skillpager.errors import EncoderError, require_extra
from skillpager.types import FloatArray

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH_SIZE = 32


class SentenceTransformersEncoder:
    """A sentence-transformers model in this process. Safe for many threads; loaded at first use.

    Prompts that the model has for queries and documents are used. Code that a model brings along is not run.
    A model that is not on disk is downloaded from the Hugging Face hub. A text in which the model finds
    nothing has the first unit vector as its row. Methods raise `EncoderError` if the model cannot be loaded
    or run, and `MissingExtraError` without the package.

    Args:
        model: Name on the hub, such as `BAAI/bge-m3`, or the path of a folder.
        device: Where it runs, such as `cpu`, `cuda` or `mps`; None for the best there is.
        batch_size: Texts per batch.

    Raises:
        ValueError: `batch_size` is below 1.
    """

    def __init__(self, model: str, *, device: str | None = None, batch_size: int = BATCH_SIZE) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1: {batch_size}")
        self._name = model
        self._device = device
        self._batch_size = batch_size
        self._model: SentenceTransformer | None = None
        # held while encoding too: fast tokenizers refuse a second thread
        self._lock = threading.RLock()

    @property
    def id(self) -> str:
        """Name of the model."""
        return f"sentence-transformers:{self._name}"

    @property
    def dim(self) -> int:
        """Length of a row; loads the model."""
        known = self._loaded().get_embedding_dimension()
        return known or len(self.encode_query(""))

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), dim)` float32, rows unit length, in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        return self._encode(self._loaded().encode_document, texts)

    def encode_query(self, text: str) -> FloatArray:
        """Return `(dim,)` float32, unit length."""
        row: FloatArray = self._encode(self._loaded().encode_query, [text])[0]
        return row

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> FloatArray:
        try:
            with self._lock:
                rows = encode(list(texts), batch_size=self._batch_size, show_progress_bar=False)
            # static models give zeros for a text without a word they know
            rows[~rows.any(axis=1), 0] = 1
            # scaled here, because a model in 16 bits would leave rows of unit length only to three digits
            return unit_rows(rows)
        except (RuntimeError, ValueError) as error:
            raise EncoderError(
                f'The sentence-transformers model "{self._name}" cannot embed {len(texts)} texts in batches '
                f"of {self._batch_size} ({_first_line(error)}): choose another model, a smaller batch size "
                "or another device."
            ) from error

    def _loaded(self) -> "SentenceTransformer":
        with self._lock:
            if self._model is None:
                self._model = self._load()
            return self._model

    def _load(self) -> "SentenceTransformer":
        purpose = f'The encoder "{self.id}"'
        package = require_extra("sentence_transformers", extra="st", purpose=purpose)
        bars = require_extra("transformers.utils.logging", extra="st", purpose=purpose)
        shown = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()
        try:
            model: SentenceTransformer = package.SentenceTransformer(self._name, device=self._device)
            return model
        # what is raised depends on which of four packages finds the fault
        except Exception as error:
            raise EncoderError(
                f'The sentence-transformers model "{self._name}" cannot be loaded ({_first_line(error)}): '
                "give the name of a model on the Hugging Face hub, such as BAAI/bge-m3, or the path of a "
                "folder that holds one; without network it must have been downloaded before."
            ) from error
        finally:
            if shown:
                bars.enable_progress_bar()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__

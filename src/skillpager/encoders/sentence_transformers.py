"""Embeddings from any sentence-transformers model, such as the paper's `BAAI/bge-m3`."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skillpager.encoders.openai import unit_rows
from skillpager.errors import EncoderError, require_extra
from skillpager.types import FloatArray

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class SentenceTransformersEncoder:
    """A sentence-transformers model in this process. Thread-safe; loaded at first use.

    The model's prompts for queries and documents are used. Code that comes with a model is not run. A model
    that is not on disk is downloaded from the Hugging Face hub. A text in which the model finds nothing has
    the first unit vector as its row. Methods raise `EncoderError` if the model cannot be loaded or run, and
    `MissingExtraError` without the package.

    Args:
        model: Name on the hub, such as `BAAI/bge-m3`, or the path of a folder.
    """

    def __init__(self, model: str) -> None:
        self._name, self.id = model, f"sentence-transformers:{model}"
        self._model: SentenceTransformer | None = None
        # held while encoding too: fast tokenizers refuse a second thread
        self._lock = threading.RLock()

    @property
    def dim(self) -> int:
        """Length of a row; loads the model."""
        return self._loaded().get_embedding_dimension() or len(self.encode_query(""))

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), dim)` float32, rows unit length, in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        return self._encode(self._loaded().encode_document, texts)

    def encode_query(self, text: str) -> FloatArray:
        """Return `(dim,)` float32, unit length."""
        return self._encode(self._loaded().encode_query, [text]).ravel()

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> FloatArray:
        try:
            with self._lock:
                rows = encode(list(texts), show_progress_bar=False)
            # static models give zeros for a text without a known word
            rows[~rows.any(axis=1), 0] = 1
            # scaled here, because a model in 16 bits would leave rows of unit length only to three digits
            return unit_rows(rows)
        except (RuntimeError, ValueError) as error:
            raise EncoderError(
                f'The sentence-transformers model "{self._name}" cannot embed {len(texts)} texts '
                f"({_reason_of(error)}): choose another model."
            ) from error

    def _loaded(self) -> "SentenceTransformer":
        with self._lock:
            if self._model is not None:
                return self._model
            purpose = f'The encoder "{self.id}"'
            package = require_extra("sentence_transformers", extra="st", purpose=purpose)
            bars = require_extra("transformers.utils.logging", extra="st", purpose=purpose)
            shown = bars.is_progress_bar_enabled()
            bars.disable_progress_bar()
            try:
                model: SentenceTransformer = package.SentenceTransformer(self._name)
            # the type depends on which of four packages finds the fault
            except Exception as error:
                raise EncoderError(
                    f'The sentence-transformers model "{self._name}" cannot be loaded ({_reason_of(error)}): '
                    "give the name of a model on the Hugging Face hub, such as BAAI/bge-m3, or the path of a "
                    "folder that holds one; without network it must have been downloaded before."
                ) from error
            finally:
                if shown:
                    bars.enable_progress_bar()
            self._model = model
            return model


def _reason_of(error: Exception) -> str:
    """Return the first line of an error, or its type if it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__

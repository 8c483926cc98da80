"""Embeddings from any model of the sentence-transformers package, such as `BAAI/bge-m3` (paper §4)."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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

    Args:
        model: Name on the Hugging Face hub, such as `BAAI/bge-m3`, or the path of a folder.
        device: Where it runs, such as `cpu`, `cuda` or `mps`; None for the best there is.
        batch_size: Texts per batch.
    """

    def __init__(self, model: str, *, device: str | None = None, batch_size: int = BATCH_SIZE) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1: {batch_size}")
        self._name = model
        self._device = device
        self._batch_size = batch_size
        self._model: SentenceTransformer | None = None
        # tokenizers of this family refuse a second thread
        self._lock = threading.RLock()

    @property
    def id(self) -> str:
        """Name of the model."""
        return f"sentence-transformers:{self._name}"

    @property
    def dim(self) -> int:
        """Length of a row; loads the model.

        Raises:
            EncoderError: The model cannot be loaded.
            MissingExtraError: The `sentence-transformers` package is not installed.
        """
        return self._encode([""], self._loaded().encode_document).shape[1]

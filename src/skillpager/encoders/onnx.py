"""Embeddings from a sentence-transformers model that was exported to ONNX; no network, no torch."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillpager.encoders.builtin import MODEL, TOKENIZER, Model, content_digest, usable_processors
from skillpager.errors import EncoderError
from skillpager.types import FloatArray

if TYPE_CHECKING:
    from tokenizers import Encoding

POOLING = "1_Pooling/config.json"
# most word pieces of a text that count, with [CLS] and [SEP]: the positions of a BERT; a tokenizer may
# say less
MAX_PIECES = 512

# each makes the row of a text, `(dim,)`, of the states of its word pieces, `(pieces, dim)`
POOLINGS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "pooling_mode_cls_token": lambda states: states[0],
    "pooling_mode_mean_tokens": lambda states: states.mean(axis=0),
}


class OnnxEncoder:
    """A sentence-transformers model from a folder, as ONNX. Thread-safe; the weights load at the first text.

    The folder holds `model.onnx`, whose first output are the states of the word pieces, `tokenizer.json`, and
    `1_Pooling/config.json`, which says whether a row is the state of [CLS] or the mean. Texts have no prompt.
    A row depends on its text alone, which counts up to the length of the tokenizer, `MAX_PIECES` word
    pieces if it has none. Encoding raises `EncoderError` if the files are damaged or do not fit each other.

    Raises:
        EncoderError: A file is missing, or the pooling is another one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            contents = [(folder / name).read_bytes() for name in (MODEL, TOKENIZER, POOLING)]
        except OSError as error:
            raise EncoderError(
                f"{folder} holds no ONNX encoder ({error}): it needs {MODEL}, {TOKENIZER} and {POOLING}, "
                "as a sentence-transformers model has them."
            ) from error
        self._pool = _read_pooling(contents[-1], folder / POOLING)
        self.id = f"onnx:{content_digest(contents)}"
        self._model = Model(folder, max_pieces=MAX_PIECES, remedy="export the model again", optimize=True)

    @property
    def dim(self) -> int:
        """Length of a row; loads the model."""
        return len(self.encode_query(""))

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), dim)` float32, rows unit length, in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dim), np.float32)
        with ThreadPoolExecutor(usable_processors()) as pool:
            return np.stack(list(pool.map(self._row, self._model.tokenize(texts))))

    def encode_query(self, text: str) -> FloatArray:
        """Return `(dim,)` float32, unit length: the row that `encode_documents` gives."""
        return self.encode_documents([text]).ravel()

    def _row(self, encoding: "Encoding") -> FloatArray:
        """Return the row of a text, `(dim,)` float32, unit length.

        Texts run one by one: a model of 8-bit integers scales the numbers of all texts that run together, so
        that a row would depend on its neighbours.
        """
        _, session = self._model.loaded
        given = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        try:
            inputs = {each.name: np.array([given[each.name]], np.int64) for each in session.get_inputs()}
            row = self._pool(session.run(None, inputs)[0][0])
            length = float(np.linalg.norm(row))
            if not 0.0 < length < np.inf:
                raise ValueError("a row without a direction")
            return (row / length).astype(np.float32)
        # onnxruntime raises Exception itself
        except Exception as error:
            raise EncoderError(
                f"{self._folder / MODEL} cannot be run as an encoder ({error}): it must take input_ids, "
                "attention_mask and token_type_ids, and give the states of the word pieces first."
            ) from error


def _read_pooling(content: bytes, file: Path) -> Callable[[FloatArray], FloatArray]:
    """Return the pooling that a model's configuration asks for."""
    try:
        config = json.loads(content)
        wanted = [name for name, on in config.items() if name.startswith("pooling_mode_") and on is True]
    except (ValueError, AttributeError, RecursionError) as error:
        raise EncoderError(f"{file} is no JSON object ({error}): restore it.") from error
    if len(wanted) != 1 or wanted[0] not in POOLINGS:
        raise EncoderError(
            f"{file} asks for {', '.join(wanted) or 'no pooling'}: exactly one of {', '.join(POOLINGS)} "
            "must be true."
        )
    return POOLINGS[wanted[0]]

"""Embeddings from any OpenAI-compatible endpoint: OpenAI, Ollama, vLLM and the like."""

from collections.abc import Sequence

import numpy as np

from skillpager.errors import EncoderError
from skillpager.remote.endpoint import Endpoint, EndpointError, sendable
from skillpager.types import FloatArray

BATCH_SIZE = 64  # texts in one request
TIMEOUT = 60.0
MAX_RETRIES = 3  # fewer than for classifying: someone waits for the answer to a query
# OpenAI refuses texts of more than 8,192 tokens instead of cutting them; a token has at least one byte
MAX_TEXT_CHARS = 8000


class OpenAIEncoder:
    """An embedding model behind an endpoint. Thread-safe.

    A text is cut at `MAX_TEXT_CHARS` characters; an empty one is sent as a space, because endpoints refuse
    it. Methods raise `EncoderError` if the endpoint gives no usable answer, `MissingExtraError` without
    openai's client.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # the same model at another address counts as another encoder
        self.id = f"openai:{endpoint.id}"
        self._dim: int | None = None

    @property
    def dim(self) -> int:
        """Length of a row; costs one small request if nothing has been encoded yet."""
        return self._rows([" "]).shape[1] if self._dim is None else self._dim

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return `(len(texts), dim)` float32, rows unit length, in the order of `texts`."""
        starts = range(0, len(texts), BATCH_SIZE)
        batches = [self._rows(texts[start : start + BATCH_SIZE]) for start in starts]
        return np.concatenate(batches) if batches else np.empty((0, self.dim), dtype=np.float32)

    def encode_query(self, text: str) -> FloatArray:
        """Return `(dim,)` float32, unit length."""
        return self._rows([text]).ravel()

    def _rows(self, texts: Sequence[str]) -> FloatArray:
        complaint = f'Texts could not be embedded by the model "{self._endpoint.model}"'
        body = {
            "input": [sendable(text[:MAX_TEXT_CHARS]) or " " for text in texts],
            "encoding_format": "float",  # not every server knows base64
        }
        try:
            answer = self._endpoint.post("embeddings", body)
        except EndpointError as error:
            raise EncoderError(f"{complaint}: {error}.") from None
        try:
            rows = unit_rows(embeddings_in_order(answer, len(texts)))
        except ValueError as error:
            raise EncoderError(f"{complaint}: {self._endpoint.bad_answer(error)}.") from None
        dim = rows.shape[1]
        self._dim = self._dim or dim
        if dim != self._dim:
            raise EncoderError(
                f"{complaint}: the endpoint {self._endpoint.address} answers with {dim} numbers a "
                f"text and did with {self._dim} before, so another model now serves that name: restart, and "
                "index the skills again."
            )
        return rows


def embeddings_in_order(answer: object, count: int) -> list[list[float]]:
    """Return `count` embeddings of one length by their `index`; a `ValueError` if the answer has others."""
    rows: dict[int, list[float]] = {}
    match answer:
        case {"data": list(items)}:
            for item in items:
                match item:
                    case {"index": int(index), "embedding": list(numbers)}:
                        rows[index] = numbers
                    case _:
                        raise ValueError("an item without index and embedding")
        case {"error": {"message": str(message)}}:
            raise ValueError(f'an error under status 200: "{message}"')
        case _:
            raise ValueError("there are no embeddings in it")
    if len(items) != count or sorted(rows) != list(range(count)):
        raise ValueError(f"{len(items)} embeddings with {len(rows)} different indexes for {count} texts")
    lengths = {len(row) for row in rows.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"embeddings of different or no length: {sorted(lengths)}")
    return [rows[index] for index in range(count)]


def unit_rows(rows: Sequence[Sequence[float]]) -> FloatArray:
    """Return `(n, dim)` float32, each row divided by its length; a `ValueError` if that is 0 or no number."""
    try:
        numbers = np.asarray(rows, dtype=np.float64)
    except TypeError as error:
        raise ValueError("an embedding that does not consist of numbers") from error
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(numbers, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and norms.all()):
        raise ValueError("an embedding with only zeros, or with something that is not a number")
    return np.asarray(numbers / norms, np.float32)

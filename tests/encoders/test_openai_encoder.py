"""The remote encoder against a real local server: rows, order, retries, and every way to fail."""

import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from messages import raises
from openai_server import (
    KEY,
    Asked,
    OpenAIServer,
    Reply,
    always,
    embedding,
    embeddings,
    endpoint_at,
    error,
    openai_server,
)
from skillpager.encoders.openai import OpenAIEncoder
from skillpager.errors import EncoderError
from skillpager.factories import make_encoder
from skillpager.settings import Settings
from skillpager.types import Encoder, FloatArray

__all__ = ["openai_server"]


def encoder_of(server: OpenAIServer | str, **settings: Any) -> OpenAIEncoder:
    return OpenAIEncoder(endpoint_at(server, **settings))


def unit(text: str) -> FloatArray:
    """Return the row that the server's numbers for `text` must become."""
    numbers = np.array(embedding(text))
    row: FloatArray = (numbers / np.sqrt((numbers**2).sum())).astype(np.float32)
    return row


def failure_of(server: OpenAIServer | str, count: int = 2, **settings: Any) -> str:
    with pytest.raises(EncoderError) as caught:
        encoder_of(server, **settings).encode_documents([f"text {n}" for n in range(count)])
    assert KEY not in "".join(traceback.format_exception(caught.value))
    message = str(caught.value)
    assert message.startswith('Texts could not be embedded by the model "tiny": ')
    assert message.endswith(".")
    assert "\n" not in message
    return message


# ---- rows


def test_rows_are_unit_float32_in_the_order_of_the_texts(openai_server: OpenAIServer) -> None:
    texts = [f"text {n}" for n in range(150)]
    rows = encoder_of(openai_server).encode_documents(texts)
    assert rows.dtype == np.float32
    assert rows.shape == (150, 8)
    assert rows.flags.c_contiguous
    np.testing.assert_allclose(rows, np.stack([unit(text) for text in texts]), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert [len(asked.texts) for asked in openai_server.asked] == [64, 64, 22]


def test_a_request_names_model_format_and_key(openai_server: OpenAIServer) -> None:
    encoder_of(openai_server).encode_query("how?")
    (asked,) = openai_server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "tiny", "input": ["how?"], "encoding_format": "float"}
    assert asked.authorization == f"Bearer {KEY}"


def test_dim_asked_before_costs_one_probe(openai_server: OpenAIServer) -> None:
    encoder: Encoder = encoder_of(openai_server)
    assert (encoder.dim, encoder.dim) == (8, 8)
    assert encoder.encode_documents([]).shape == (0, 8)
    assert encoder.encode_documents([]).dtype == np.float32
    assert len(openai_server.asked) == 1


def test_texts_are_made_sendable(openai_server: OpenAIServer) -> None:
    encoder_of(openai_server).encode_documents(["", "a\ud800b", "x" * 20_000, "你好\x00"])
    assert openai_server.asked[0].texts == [" ", "a?b", "x" * 8000, "你好\x00"]


def test_the_id_tells_host_and_model() -> None:
    assert encoder_of("http://localhost:11434/v1").id == "openai:localhost:11434/tiny"


def test_threads_share_one_encoder(openai_server: OpenAIServer) -> None:
    openai_server.gate = threading.Barrier(4)
    encoder = encoder_of(openai_server)
    texts = [f"text {n}" for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(encoder.encode_query, texts))
    np.testing.assert_allclose(np.stack(rows), np.stack([unit(text) for text in texts]), atol=1e-6)


# ---- failures


def test_passing_failures_are_retried(openai_server: OpenAIServer) -> None:
    openai_server.script(error(500), Reply(reset=True))
    row = encoder_of(openai_server, max_retries=2).encode_query("how?")
    np.testing.assert_allclose(row, unit("how?"), atol=1e-6)
    assert len(openai_server.asked) == 3


def test_the_settings_name_address_key_and_variable(openai_server: OpenAIServer) -> None:
    openai_server.respond = always(error(401, f"Incorrect API key provided: {KEY}"))
    settings = Settings(embed_base_url=openai_server.base_url, embed_api_key=KEY)
    with pytest.raises(EncoderError, match=r"refused the API key.* SKILLPAGER_EMBED_API_KEY"):
        make_encoder("openai:tiny", settings).encode_query("how?")
    assert openai_server.asked[0].authorization == f"Bearer {KEY}"


def item(index: object, numbers: object) -> dict[str, object]:
    return {"object": "embedding", "index": index, "embedding": numbers}


BAD_ANSWERS = {
    "too few": ([item(0, [1.0, 2.0])], "1 embeddings with 1 different indexes for 2 texts"),
    "double index": ([item(0, [1.0]), item(0, [1.0])], "2 embeddings with 1 different indexes for 2 texts"),
    "foreign index": ([item(0, [1.0]), item(2, [1.0])], "2 embeddings with 2 different indexes for 2 texts"),
    "no index": ([item(0, [1.0]), {"embedding": [1.0]}], "without index and embedding"),
    "base64": ([item(0, "AACAPw=="), item(1, "AACAPw==")], "without index and embedding"),
    "ragged": ([item(0, [1.0]), item(1, [1.0, 2.0])], "different or no length: [1, 2]"),
    "zeros": ([item(0, [1.0, 0.0]), item(1, [0.0, 0.0])], "only zeros"),
    "null": ([item(0, [1.0, 0.0]), item(1, [None, 1.0])], "not a number"),
    "nested": ([item(0, [1.0, {}]), item(1, [1.0, 1.0])], "not consist of numbers"),
    "infinite": ([item(0, [1.0, 0.0]), item(1, [float("inf"), 1.0])], "not a number"),
    "huge": ([item(0, [1.0, 0.0]), item(1, [1e300, 1e300])], "not a number"),
    "no list": (7, "there are no embeddings in it"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
def test_a_wrong_answer_is_never_used(openai_server: OpenAIServer, name: str) -> None:
    data, reason = BAD_ANSWERS[name]
    openai_server.respond = always(Reply(body={"object": "list", "data": data}))
    message = failure_of(openai_server)
    assert f"the endpoint {openai_server.base_url} gave a bad answer" in message
    assert reason in message


def test_another_model_behind_the_same_name(openai_server: OpenAIServer) -> None:
    encoder = encoder_of(openai_server)
    encoder.encode_query("how?")

    def wider(asked: Asked) -> Reply:
        return embeddings([embedding(text, dim=12) for text in asked.texts])

    openai_server.respond = wider
    with raises(EncoderError):
        encoder.encode_documents(["a", "b"])
    with raises(EncoderError):
        encoder.encode_query("how?")
    assert encoder.dim == 8

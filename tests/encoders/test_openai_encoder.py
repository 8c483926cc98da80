"""The remote encoder against a real local server: rows, order, retries, and every way to fail."""

import socket
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from messages import raises
from openai_server import Asked, OpenAIServer, Reply, always, embedding, embeddings, error, openai_server
from skillpager.encoders.openai import OpenAIEncoder
from skillpager.errors import EncoderError, MissingExtraError, SettingsError
from skillpager.types import Encoder, FloatArray

__all__ = ["openai_server"]

KEY = "sk-test-0123456789"


def encoder_of(server: OpenAIServer | str, **settings: Any) -> OpenAIEncoder:
    base_url = server if isinstance(server, str) else server.base_url
    given: dict[str, Any] = {"base_url": base_url, "api_key": KEY, "sleep": lambda _: None}
    return OpenAIEncoder("tiny", **(given | settings))


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


def test_a_query_is_one_row(openai_server: OpenAIServer) -> None:
    row = encoder_of(openai_server).encode_query("how?")
    assert row.shape == (8,)
    assert row.dtype == np.float32
    np.testing.assert_allclose(row, unit("how?"), atol=1e-6)


def test_a_request_names_model_format_and_key(openai_server: OpenAIServer) -> None:
    encoder_of(openai_server).encode_query("how?")
    (asked,) = openai_server.asked
    assert asked.path == "/v1/embeddings"
    assert asked.body == {"model": "tiny", "input": ["how?"], "encoding_format": "float"}
    assert asked.authorization == f"Bearer {KEY}"


def test_dim_is_learnt_from_the_first_answer(openai_server: OpenAIServer) -> None:
    encoder: Encoder = encoder_of(openai_server)
    encoder.encode_query("how?")
    assert encoder.dim == 8
    assert len(openai_server.asked) == 1


def test_dim_asked_before_costs_one_probe(openai_server: OpenAIServer) -> None:
    encoder = encoder_of(openai_server)
    assert (encoder.dim, encoder.dim) == (8, 8)
    assert encoder.encode_documents([]).shape == (0, 8)
    assert encoder.encode_documents([]).dtype == np.float32
    assert len(openai_server.asked) == 1


def test_texts_are_made_sendable(openai_server: OpenAIServer) -> None:
    encoder_of(openai_server).encode_documents(["", "a\ud800b", "x" * 20_000, "你好\x00"])
    assert openai_server.asked[0].texts == [" ", "a?b", "x" * 8000, "你好\x00"]


def test_the_id_tells_host_and_model() -> None:
    assert encoder_of("http://localhost:11434/v1").id == "openai:localhost:11434/tiny"
    assert encoder_of("http://localhost:11434/v1/").id == "openai:localhost:11434/tiny"
    assert encoder_of("https://me:secret@gate.example/team/v1").id == "openai:gate.example/team/tiny"
    assert OpenAIEncoder("text-embedding-3-small").id == "openai:api.openai.com/text-embedding-3-small"


def test_no_key_is_needed_where_none_is_wanted(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    encoder_of(openai_server, api_key=None).encode_query("how?")
    assert openai_server.asked[0].authorization == "Bearer none"


def test_threads_share_one_encoder(openai_server: OpenAIServer) -> None:
    openai_server.gate = threading.Barrier(4)
    encoder = encoder_of(openai_server)
    texts = [f"text {n}" for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(encoder.encode_query, texts))
    np.testing.assert_allclose(np.stack(rows), np.stack([unit(text) for text in texts]), atol=1e-6)


# ---- failures


def test_passing_failures_are_retried(openai_server: OpenAIServer) -> None:
    openai_server.script(error(500), Reply(reset=True), Reply(429, {}, {"Retry-After": "9"}))
    waits: list[float] = []
    row = encoder_of(openai_server, sleep=waits.append).encode_query("how?")
    np.testing.assert_allclose(row, unit("how?"), atol=1e-6)
    assert waits == [1, 2, 9]


@pytest.mark.parametrize(
    ("reply", "parts"),
    [
        (
            error(401, f"Incorrect API key provided: {KEY}"),
            ["refused the API key", "SKILLPAGER_EMBED_API_KEY"],
        ),
        (error(403, f"no access for {KEY}"), ["denied access", "no access for ***", "OPENAI_API_KEY"]),
        (
            error(404, "model not found, try pulling it first"),
            ['model "tiny"', "try pulling it first", "/v1"],
        ),
        (error(400, "maximum context length is 512"), ["status 400", "maximum context length is 512"]),
    ],
)
def test_what_no_repetition_can_mend_fails_at_once(
    openai_server: OpenAIServer, reply: Reply, parts: list[str]
) -> None:
    openai_server.respond = always(reply)
    message = failure_of(openai_server, 200)
    assert [part for part in [*parts, openai_server.base_url] if part not in message] == []
    assert len(openai_server.asked) == 1


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    message = failure_of(f"http://127.0.0.1:{port}/v1")
    assert f"http://127.0.0.1:{port}/v1 cannot be reached" in message
    assert "is the server running" in message
    assert "(tried 4 times)" in message


def test_a_server_that_does_not_answer(openai_server: OpenAIServer) -> None:
    openai_server.respond = always(Reply(hang=True))
    assert "did not answer within 0.2 s" in failure_of(openai_server, timeout=0.2, max_retries=0)


def item(index: object, numbers: object) -> dict[str, object]:
    return {"object": "embedding", "index": index, "embedding": numbers}


BAD_ANSWERS = {
    "too few": ([item(0, [1.0, 2.0])], "1 embeddings with 1 different indexes for 2 texts"),
    "too many": ([item(n, [1.0]) for n in range(3)], "3 embeddings with 3 different indexes for 2 texts"),
    "double index": ([item(0, [1.0]), item(0, [1.0])], "2 embeddings with 1 different indexes for 2 texts"),
    "one twice": ([item(n, [1.0]) for n in (0, 1, 1)], "3 embeddings with 2 different indexes for 2 texts"),
    "foreign index": ([item(0, [1.0]), item(2, [1.0])], "2 embeddings with 2 different indexes for 2 texts"),
    "no index": ([item(0, [1.0]), {"embedding": [1.0]}], "without index and embedding"),
    "base64": ([item(0, "AACAPw=="), item(1, "AACAPw==")], "without index and embedding"),
    "ragged": ([item(0, [1.0]), item(1, [1.0, 2.0])], "different or no length: [1, 2]"),
    "no numbers": ([item(0, []), item(1, [])], "different or no length: [0]"),
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


def test_an_error_under_status_200(openai_server: OpenAIServer) -> None:
    openai_server.respond = always(Reply(body={"error": {"message": "upstream down"}}))
    assert "upstream down" in failure_of(openai_server)


def test_another_model_behind_the_same_name(openai_server: OpenAIServer) -> None:
    encoder = encoder_of(openai_server, batch_size=2)
    encoder.encode_query("how?")

    def wider(asked: Asked) -> Reply:
        return embeddings([embedding(text, dim=12) for text in asked.texts])

    openai_server.respond = wider
    with raises(EncoderError):
        encoder.encode_documents(["a", "b"])
    with raises(EncoderError):
        encoder.encode_query("how?")
    assert encoder.dim == 8


def test_the_key_is_never_shown(openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture) -> None:
    openai_server.respond = always(error(500, f"bad key {KEY}"))
    assert "bad key ***" in failure_of(openai_server)
    assert "trying again" in caplog.text
    assert KEY not in caplog.text
    assert KEY not in repr(encoder_of(openai_server))


def test_openai_itself_is_not_asked_without_a_key() -> None:
    with raises(EncoderError):
        OpenAIEncoder("text-embedding-3-small").encode_query("how?")


def test_wrong_settings() -> None:
    with raises(ValueError):
        OpenAIEncoder("tiny", batch_size=0)
    with raises(SettingsError):
        OpenAIEncoder("tiny", base_url="localhost:11434")
    with raises(SettingsError):
        OpenAIEncoder("tiny", api_key="two words")


def test_the_missing_extra_is_named(openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    encoder = encoder_of(openai_server)
    with raises(MissingExtraError):
        encoder.encode_query("how?")

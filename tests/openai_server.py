"""A real HTTP server that speaks the OpenAI protocol and fails on demand, for tests of remote parts.

It answers `/v1/chat/completions` and `/v1/embeddings` on a port of its own, counts what it is asked,
and plays scripted replies first:

    with OpenAIServer() as server:
        server.script(Reply(429, headers={"Retry-After": "7"}), Reply(500))
        ...  # two failures, then good answers
"""

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from skillpager.remote.endpoint import Endpoint

HANG_LIMIT = 20.0
KEY = "sk-test-0123456789"


@dataclass(frozen=True)
class Reply:
    """A scripted answer: a status with a body, a hang, or a connection that is reset."""

    status: int = 200
    body: object = None  # bytes are sent as they are, anything else as JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    reset: bool = False


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    path: str
    body: dict[str, Any]
    authorization: str | None

    @property
    def texts(self) -> list[str]:
        """What was to be classified or embedded."""
        if "input" in self.body:
            return list(self.body["input"])
        return [fragment["text"] for fragment in self.message["fragments"]]

    @property
    def prompt(self) -> str:
        """The first user message of a chat request."""
        return next(said["content"] for said in self.body["messages"] if said["role"] == "user")

    @property
    def message(self) -> dict[str, Any]:
        """The user message of a chat request, decoded."""
        decoded: dict[str, Any] = json.loads(self.body["messages"][-1]["content"])
        return decoded


def error(status: int, message: str = "no luck", **fields: str) -> Reply:
    """Return an error in OpenAI's own form."""
    return Reply(status, {"error": {"message": message, "type": "test", **fields}})


def always(reply: Reply) -> Callable[[Asked], Reply]:
    """Return a `respond` that says the same to every request."""
    return lambda _: reply


def completion(
    content: str | None,
    *,
    finish_reason: str = "stop",
    refusal: str | None = None,
    usage: Mapping[str, object] | None = None,
) -> Reply:
    """Return a chat answer with `content` as the model's words."""
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Reply(body={**body, "usage": usage} if usage else body)


def verdicts(asked: Asked) -> list[dict[str, object]]:
    """Type each fragment by its own first word, with a confidence that tells its index."""
    return [
        {"index": index, "type": text.split()[0], "confidence": 0.5 + index / 100}
        for index, text in enumerate(asked.texts)
    ]


def answers(items: object) -> Reply:
    """Return a chat answer whose content is well-formed JSON around `items`."""
    return completion(json.dumps({"answers": items}))


def embedding(text: str, dim: int = 8) -> list[float]:
    """Return numbers that depend on the text alone and are far from unit length."""
    digest = sha256(text.encode()).digest()
    return [float(byte) - 100 for byte in digest[:dim]]


def embeddings(rows: list[list[float]]) -> Reply:
    """Return an embeddings answer, last row first: order is told by `index` alone."""
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Reply(body={"object": "list", "model": "m", "data": data[::-1], "usage": usage})


class OpenAIServer:
    """A server on a free port of 127.0.0.1.

    Attributes:
        base_url: Where its API begins.
        asked: Every request, in order of arrival.
        most_at_once: Largest number of requests that were in work at the same time.
        respond: Makes the reply once the script is played; replace it for replies that depend on the request.
        gate: When set, requests wait here for each other before they are answered.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self.respond: Callable[[Asked], Reply] = good_reply
        self.gate: threading.Barrier | None = None
        self._script: deque[Reply] = deque()
        self._at_once = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self.base_url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> "OpenAIServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def script(self, *replies: Reply) -> None:
        """Play `replies` first, one a request."""
        self._script.extend(replies)

    def reply_to(self, asked: Asked) -> Reply:
        """Record a request and return what to answer; hangs where the script says so."""
        with self._lock:
            self.asked.append(asked)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            reply = self._script.popleft() if self._script else None
        try:
            if self.gate:
                self.gate.wait(HANG_LIMIT)
            reply = reply or self.respond(asked)
            if reply.hang:
                self._closing.wait(HANG_LIMIT)
            return reply
        finally:
            with self._lock:
                self._at_once -= 1


def good_reply(asked: Asked) -> Reply:
    """Return what a working endpoint answers."""
    if asked.path == "/v1/chat/completions":
        return answers(verdicts(asked))
    if asked.path == "/v1/embeddings":
        return embeddings([embedding(text) for text in asked.texts])
    return error(404, "no such path")


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """Give a running server, stopped after the test."""
    with OpenAIServer() as server:
        yield server


def endpoint_at(server: OpenAIServer | str, model: str = "tiny", **settings: Any) -> Endpoint:
    """Return a model at a server, or at an address."""
    given: dict[str, Any] = {
        "base_url": server if isinstance(server, str) else server.base_url,
        "api_key": KEY,
        "key_variable": "SKILLPAGER_LLM_API_KEY",
        "purpose": "The test",
        "timeout": 10.0,
        "max_retries": 1,
    }
    return Endpoint(model, **(given | settings))


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay quiet: clients of these tests hang up on purpose."""


def _handler_of(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # else head and body, written apart, cost each answer a delayed acknowledgement: 40 ms
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = server.reply_to(Asked(self.path, body, self.headers["Authorization"]))
            if reply.reset:
                self._reset()
            elif not reply.hang:
                self._send(reply)

        def _send(self, reply: Reply) -> None:
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def _reset(self) -> None:
            # lingering for no time makes the kernel send RST instead of FIN
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    return Handler

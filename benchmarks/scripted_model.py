"""A server that plays a model's API: Anthropic Messages and OpenAI Responses, streamed, from a script.

An agent that talks to it runs for real: it starts its MCP servers, calls the tools that the script names and
sends their results back. Every request is kept, so that a script sees what the agent puts before its model.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# a request of an agent holds its whole conversation
MAX_BODY_BYTES = 64_000_000
# what a host asks its model when it makes a conversation shorter; told by the text of its last message
SUMMARY_WORDS = ("summary of the conversation", "CONTEXT CHECKPOINT COMPACTION")
SUMMARY = "<summary>\nThe user has a task, and a skill was read for it.\n</summary>"
ASIDE = "ok"
# a host may send its first request before its servers are up; with these of its tools a model waits for them
WAITS: Mapping[str, Mapping[str, object]] = {"WaitForMcpServers": {}, "exec_command": {"cmd": "sleep 2"}}
MAX_WAITS = 20


@dataclass(frozen=True, slots=True)
class Call:
    """A turn of the model: it calls a tool of the server, and reports so many tokens of input."""

    tool: str
    arguments: Mapping[str, object]
    input_tokens: int = 1_000


@dataclass(frozen=True, slots=True)
class Say:
    """A turn of the model: it says something, which ends the agent's turn."""

    text: str
    input_tokens: int = 1_000


Turn = Call | Say


@dataclass(frozen=True, slots=True)
class Request:
    """A request of an agent.

    Attributes:
        path: Path of the address.
        body: The JSON object.
    """

    path: str
    body: Mapping[str, Any]

    @property
    def messages(self) -> list[Any]:
        """The conversation so far, in the form of the interface."""
        messages = self.body.get("input" if self.is_responses else "messages", [])
        return messages if isinstance(messages, list) else [messages]

    @property
    def is_responses(self) -> bool:
        """Whether it is one of OpenAI's Responses interface, not of Anthropic's Messages."""
        return self.path.endswith("/responses")

    @property
    def conversation(self) -> str:
        """All text of the conversation: of messages, tool calls and results."""
        return "\n".join(_texts(self.messages))

    @property
    def last(self) -> str:
        """The text of the last message or tool result; a host puts its own instructions behind it."""
        told = [message for message in self.messages if message.get("role") not in ("system", "developer")]
        return "\n".join(_texts(told[-1:]))

    @property
    def asks_for_summary(self) -> bool:
        """Whether the agent wants its conversation made shorter."""
        return any(word in self.last for word in SUMMARY_WORDS)

    def tool(self, name: str) -> dict[str, str] | None:
        """Return the name of a server's tool, with its namespace if it has one; None if it is missing."""
        for tool in self.body.get("tools", []):
            for inner in tool.get("tools", []):
                if inner.get("name") == name:
                    return {"name": name, "namespace": tool["name"]}
            if str(tool.get("name", "")).endswith(f"__{name}"):
                return {"name": tool["name"]}
        return None


Script = Callable[[list[Request]], Turn]


@dataclass
class ScriptedModel:
    """A model that follows a script.

    Attributes:
        script: Returns the next turn, given the requests so far in which the server's tools were offered.
        needs: The tool that tells such a request from those that an agent makes aside, such as for a title.
        requests: Those requests, in order.
        summaries: The requests for a summary, in order.
        waits: Number of requests that came before the server's tools were there.
    """

    script: Script
    needs: str
    requests: list[Request] = field(default_factory=list)
    summaries: list[Request] = field(default_factory=list)
    waits: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the events of the streamed answer to a request: name and data."""
        with self._lock:
            if request.asks_for_summary:
                self.summaries.append(request)
                turn: Turn = Say(SUMMARY)
            elif request.tool(self.needs) is None:
                turn = self._wait(request)
            else:
                self.requests.append(request)
                turn = self.script(self.requests)
            number = len(self.requests) + len(self.summaries) + self.waits
        block = _block(request, turn, f"call_{number}")
        yield from (_responses if request.is_responses else _messages)(block, turn, str(number))

    def _wait(self, request: Request) -> Turn:
        """Return the turn for a request without the server's tools: wait for them, or say something."""
        for tool in request.body.get("tools", []):
            arguments = WAITS.get(str(tool.get("name")))
            if arguments is not None and self.waits < MAX_WAITS:
                self.waits += 1
                return Call(str(tool["name"]), arguments)
        return Say(ASIDE)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Serve at a free port of this machine; give the address."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, model: ScriptedModel, *connection: Any) -> None:
        self._model = model
        super().__init__(*connection)  # answers the requests of the connection

    def do_HEAD(self) -> None:
        self._reply(b"", "application/json")

    def do_GET(self) -> None:
        self._reply(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            self.send_error(413)
            return
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
        except ValueError:
            self.send_error(400)
            return
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._reply(b'{"input_tokens": 1000}', "application/json")
            return
        request = Request(path, body if isinstance(body, dict) else {})
        if not path.endswith(("/messages", "/responses")):
            self._reply(b"{}", "application/json")
            return
        events = self._model.answer(request)
        if request.body.get("stream"):
            lines = (f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
            self._reply("".join(lines).encode(), "text/event-stream")
        else:
            whole = _whole(request, list(events))
            self._reply(json.dumps(whole).encode(), "application/json")

    def _reply(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


def _texts(value: object) -> Iterator[str]:
    """Yield the strings of a message that a reader sees: texts, arguments, results."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key in ("text", "content", "output", "arguments", "input"):
            yield from _texts(value.get(key))


def _block(request: Request, turn: Turn, identity: str) -> dict[str, Any]:
    """Return a turn as the block or item that the interface has for it."""
    responses = request.is_responses
    if isinstance(turn, Say):
        if not responses:
            return {"type": "text", "text": turn.text}
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        return {"type": "message", "id": f"msg_{identity}", "role": "assistant", "content": content}
    names = request.tool(turn.tool) or {"name": turn.tool}
    if not responses:
        return {"type": "tool_use", "id": f"toolu_{identity}", **names, "input": dict(turn.arguments)}
    arguments = json.dumps(dict(turn.arguments))
    call = {"type": "function_call", "id": f"fc_{identity}", "call_id": identity}
    return {**call, **names, "arguments": arguments}


def _messages(block: dict[str, Any], turn: Turn, number: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of Anthropic's Messages interface."""
    usage = {"input_tokens": turn.input_tokens, "output_tokens": 10}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    if isinstance(turn, Say):
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
    else:
        empty = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    reason = "end_turn" if isinstance(turn, Say) else "tool_use"
    stop = {"stop_reason": reason, "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 10}},
        {"type": "message_stop"},
    ]
    yield from ((event["type"], event) for event in events)


def _responses(item: dict[str, Any], turn: Turn, number: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of OpenAI's Responses interface."""
    usage = {"input_tokens": turn.input_tokens, "output_tokens": 10, "total_tokens": turn.input_tokens + 10}
    response = {"id": f"resp_{number}", "object": "response", "model": "scripted", "output": [item]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}},
    ]
    yield from ((event["type"], event) for event in events)


def _whole(request: Request, events: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """Return an answer that is not streamed, from the events of one that is."""
    if request.is_responses:
        last: dict[str, Any] = events[-1][1]["response"]
        return last
    data = dict(events)
    block = dict(data["content_block_start"]["content_block"])
    delta = data["content_block_delta"]["delta"]
    block |= {"text": delta["text"]} if "text" in delta else {"input": json.loads(delta["partial_json"])}
    return {**data["message_start"]["message"], "content": [block], **data["message_delta"]["delta"]}

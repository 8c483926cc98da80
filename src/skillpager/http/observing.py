"""What surrounds every request: it is counted and, where wanted, logged; its answer can do no harm."""

import asyncio
import json
import logging
import time
from datetime import UTC, datetime

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpager.http.metrics import Metrics
from skillpager.http.problems import EndingError, error_problem, fault_problem

# JSON lines, one a request; whoever starts the service gives it a handler
access_log = logging.getLogger("skillpager.http.access")

# path label of what no route takes
UNKNOWN_PATH = "unknown"

# what a page of the service loads comes from the service; nobody may frame or read it from elsewhere
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Observer:
    """The outermost layer: what goes wrong below it is answered, too."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        started = time.perf_counter()
        try:
            await self._app(scope, receive, answer.send)
        except asyncio.CancelledError:
            # the service ends and has waited long enough for the worker
            if not answer.status:
                await error_problem(EndingError())(scope, receive, answer.send)
        except Exception as fault:
            if not answer.status:
                await fault_problem(fault)(scope, receive, answer.send)
        finally:
            # without a status the client has gone before it was answered
            if answer.status:
                self._tell(scope, answer, time.perf_counter() - started)

    def _tell(self, scope: Scope, answer: "_Answer", seconds: float) -> None:
        path = getattr(scope.get("route"), "path_format", UNKNOWN_PATH)
        self._metrics.count_request(scope["method"], path, answer.status, seconds)
        if access_log.isEnabledFor(logging.INFO):
            access_log.info("%s", _line(scope, answer, seconds))


class _Answer:
    """Hands an answer on, with the headers that every answer has, and keeps its status and size."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0
        self.size = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message).update(SECURITY_HEADERS)
        else:
            self.size += len(message.get("body", b""))
        await self._send(message)


def _line(scope: Scope, answer: _Answer, seconds: float) -> str:
    """Return one request as JSON; what follows the question mark may be a query and is nobody's business."""
    client = scope.get("client")
    return json.dumps(
        {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "client": client[0] if client else None,
            "method": scope["method"],
            "path": scope["path"],
            "status": answer.status,
            "bytes": answer.size,
            "ms": round(seconds * 1000, 2),
        }
    )

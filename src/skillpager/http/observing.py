"""ASGI middleware: request metrics, access log, security headers, HEAD, answers to internal errors."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpager.http.problems import EndingError, error_problem, fault_problem
from skillpager.types import Page

# one JSON line per request; the command that starts the service adds the handler
access_log = logging.getLogger("skillpager.http.access")

# path label of requests that match no route
UNKNOWN_PATH = "unknown"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
# a page takes milliseconds, the first page of a skill seconds
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# web pages load files of the service only; other sites may not frame or read them
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Metrics:
    """Prometheus metrics of one service. Clients cannot add label values.

    Args:
        taken: Returns the number of requests in work or waiting.
    """

    def __init__(self, taken: Callable[[], int]) -> None:
        self._registry = registry = CollectorRegistry()
        labels = ["method", "path", "status"]
        self._requests = Counter("skillpager_http_requests", "Answered requests.", labels, registry=registry)
        self._seconds = Histogram(
            "skillpager_http_request_seconds",
            "Seconds from a request to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=registry,
        )
        self._pages = Counter("skillpager_pages", "Pages made.", ["strategy"], registry=registry)
        self._tokens = Counter("skillpager_page_tokens", "Tokens of all pages.", registry=registry)
        self._full = Counter(
            "skillpager_full_tokens", "Tokens of the whole skills in place of all pages.", registry=registry
        )
        busy = Gauge("skillpager_requests_taken", "Requests that are worked on or wait.", registry=registry)
        busy.set_function(taken)

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an answer; `path` is the route's template, not the client's text."""
        known = method if method in METHODS else "other"
        self._requests.labels(known, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_page(self, page: Page) -> None:
        """Count a page."""
        name = page.selection.strategy if page.selection else "none"
        self._pages.labels(name.partition(":")[0]).inc()
        self._tokens.inc(page.tokens)
        self._full.inc(page.full_tokens)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class Observer:
    """The outermost middleware; it also answers HEAD, and requests that ended in an unexpected exception."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = size = 0
        started = time.perf_counter()
        method = scope["method"]
        if method == "HEAD":
            # answered as GET; not in a copy, because the router notes the route in it
            scope["method"] = "GET"

        async def observed(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            elif method == "HEAD":
                message["body"] = b""
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except asyncio.CancelledError:
            # the service is stopping and the grace period for the worker is over
            if not status:
                await error_problem(EndingError())(scope, receive, observed)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as fault:  # a panic of a Rust extension is no Exception
            if not status:
                await fault_problem(fault)(scope, receive, observed)
        finally:
            # no status: the client disconnected before it was answered
            if status:
                seconds = time.perf_counter() - started
                path = getattr(scope.get("route"), "path_format", UNKNOWN_PATH)
                self._metrics.count_request(method, path, status, seconds)
                if access_log.isEnabledFor(logging.INFO):
                    access_log.info("%s", _log_line(scope, method, status, size, seconds))


def _log_line(scope: Scope, method: str, status: int, size: int, seconds: float) -> str:
    """Return one request as JSON, without the URL's query string, which may hold an agent's query."""
    client = scope.get("client")
    return json.dumps(
        {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "client": client[0] if client else None,
            "method": method,
            "path": scope["path"],
            "status": status,
            "bytes": size,
            "ms": round(seconds * 1000, 2),
        }
    )

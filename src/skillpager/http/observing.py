"""ASGI middleware: metrics, spans, access log, audit log, security headers, HEAD, answers to faults."""

import asyncio
import json
import logging
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillpager.http.audit import AuditLog
from skillpager.http.options import PROBES
from skillpager.http.problems import EndingError, error_problem, fault_problem
from skillpager.http.visits import visit_of
from skillpager.types import Page

if TYPE_CHECKING:
    from skillpager.http.telemetry import Telemetry

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
    """Prometheus metrics of a service, and those of OpenTelemetry. Clients cannot add label values.

    Args:
        shared: Folder in which the processes of the service count, so that each tells the sums of all.
        telemetry: Also counts, if the service sends metrics.
    """

    def __init__(self, shared: Path | None = None, telemetry: "Telemetry | None" = None) -> None:
        self._shared = shared
        self._telemetry = telemetry
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
        # of processes that live, as the supervisor removes the numbers of others
        self._taken = Gauge(
            "skillpager_requests_taken",
            "Requests that are worked on or wait.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        Gauge(
            "skillpager_workers", "Processes that run.", registry=registry, multiprocess_mode="livesum"
        ).set(1)
        Counter("skillpager_worker_starts", "Processes that were started.", registry=registry).inc()
        self._unwritten = Counter(
            "skillpager_audit_failures", "Lines that the audit log lacks.", registry=registry
        )

    def set_taken(self, taken: int) -> None:
        """Note how many requests are worked on or wait."""
        self._taken.set(taken)

    def count_unwritten(self) -> None:
        """Count a line that the audit log lacks."""
        self._unwritten.inc()

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an answer; `path` is the route's template, not the client's text."""
        known = method if method in METHODS else "other"
        self._requests.labels(known, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)
        if self._telemetry is not None:
            self._telemetry.count_request(known, path, status, seconds)

    def count_page(self, page: Page) -> None:
        """Count a page."""
        name = (page.selection.strategy if page.selection else "none").partition(":")[0]
        self._pages.labels(name).inc()
        self._tokens.inc(page.tokens)
        self._full.inc(page.full_tokens)
        if self._telemetry is not None:
            self._telemetry.count_page(name, page)

    def text(self) -> bytes:
        """Return all metrics in Prometheus' text format: those of all processes, where there are several."""
        if self._shared is None:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=str(self._shared))  # type: ignore[no-untyped-call]
        return generate_latest(registry)


class Observer:
    """The outermost middleware; it also answers HEAD, and requests that ended in an unexpected exception.

    Args:
        app: The application.
        metrics: Counts requests.
        audit: Notes requests, if wanted.
        telemetry: Makes spans of requests, if wanted.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        audit: AuditLog | None = None,
        telemetry: "Telemetry | None" = None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._audit = audit
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, visit = scope["method"], visit_of(scope)
        telemetry = self._telemetry
        with nullcontext() if telemetry is None else telemetry.request(scope, method, visit) as answered:
            status = await self._observe(scope, receive, send)
            if answered is not None:
                answered.route, answered.status = _route(scope), status

    async def _observe(self, scope: Scope, receive: Receive, send: Send) -> int:
        """Answer a request and return the status; 0 if its client left."""
        status = size = 0
        started = time.perf_counter()
        method, visit = scope["method"], visit_of(scope)
        if method == "HEAD":
            # answered as GET; not in a copy, because the router notes the route in it
            scope["method"] = "GET"

        async def observed(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update({**SECURITY_HEADERS, **visit.headers})
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
                path = _route(scope)
                self._metrics.count_request(method, path, status, seconds)
                if self._audit is not None and path not in PROBES:
                    client = _client(scope)
                    told = {"client": client, "method": method, "route": path, "status": status}
                    self._audit.write(visit, **told, size=size, seconds=seconds)
                if access_log.isEnabledFor(logging.INFO):
                    access_log.info("%s", _log_line(scope, method, status, size, seconds))
        return status


def _route(scope: Scope) -> str:
    """Return the template of a request's path."""
    return getattr(scope.get("route"), "path_format", UNKNOWN_PATH)


def _client(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def _log_line(scope: Scope, method: str, status: int, size: int, seconds: float) -> str:
    """Return one request as JSON, without the URL's query string, which may hold an agent's query."""
    return json.dumps(
        {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "client": _client(scope),
            "method": method,
            "path": scope["path"],
            "status": status,
            "bytes": size,
            "ms": round(seconds * 1000, 2),
        }
    )

"""What is counted about the HTTP service, in the text format of Prometheus."""

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from skillpager.types import Page

# a page takes milliseconds, the first of a skill seconds
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE = CONTENT_TYPE_LATEST
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Metrics:
    """Counters of one service; labels have few values, whatever clients send.

    Args:
        taken: Tells how many requests are worked on or wait.
    """

    def __init__(self, taken: Callable[[], int]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "skillpager_http_requests",
            "Answered requests.",
            ["method", "path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "skillpager_http_request_seconds",
            "Seconds from a request to its answer.",
            ["path"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._pages = Counter("skillpager_pages", "Pages made.", ["strategy"], registry=self._registry)
        self._tokens = Counter("skillpager_page_tokens", "Tokens of all pages.", registry=self._registry)
        self._full = Counter(
            "skillpager_full_tokens",
            "Tokens of the whole skills in place of all pages.",
            registry=self._registry,
        )
        busy = Gauge(
            "skillpager_requests_taken", "Requests that are worked on or wait.", registry=self._registry
        )
        busy.set_function(taken)

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an answer; `path` is a path template, not what the client wrote."""
        known = method if method in METHODS else "other"
        self._requests.labels(known, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def count_page(self, context: Page) -> None:
        """Count a page."""
        name = context.selection.strategy if context.selection else "none"
        self._pages.labels(name.partition(":")[0]).inc()
        self._tokens.inc(context.tokens)
        self._full.inc(context.full_tokens)

    def text(self) -> bytes:
        """Return all counts."""
        return generate_latest(self._registry)

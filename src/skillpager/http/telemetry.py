"""Measurements of the service: metrics for Prometheus."""

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter
from prometheus_fastapi_instrumentator import Instrumentator
from starlette.responses import PlainTextResponse

from skillpager.types import Page


class PageMetrics:
    """Prometheus counters of pages; `instrument` adds those of requests, and the route `/metrics`."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._pages = Counter("skillpager_pages", "Pages made.", ["strategy"], registry=registry)
        self._tokens = Counter("skillpager_page_tokens", "Tokens of all pages.", registry=registry)
        self._full = Counter(
            "skillpager_full_tokens", "Tokens of the whole skills in place of all pages.", registry=registry
        )

    def instrument(self, app: FastAPI) -> None:
        """Count the requests of `app`, and tell all counts at `/metrics`."""
        counts = Instrumentator(registry=self._registry, should_group_status_codes=False).instrument(app)
        counts.expose(
            app, tags=["service"], summary="Counts, for Prometheus", response_class=PlainTextResponse
        )

    def count_page(self, page: Page) -> None:
        """Count a page."""
        name = (page.selection.strategy if page.selection else "none").partition(":")[0]
        self._pages.labels(name).inc()
        self._tokens.inc(page.tokens)
        self._full.inc(page.full_tokens)

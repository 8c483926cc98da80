"""Measurements of the service: metrics for Prometheus, and traces and metrics by OpenTelemetry."""

import os
import uuid
from collections.abc import Callable

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter
from prometheus_fastapi_instrumentator import Instrumentator
from starlette.responses import PlainTextResponse

from skillpager.http.options import PROBES
from skillpager.types import Page

# at the end of the process, unsent spans and metrics are waited for this long
FLUSH_MILLISECONDS = 5000


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


def send_telemetry(app: FastAPI) -> Callable[[], None]:
    """Send traces and metrics of requests by OTLP; return what sends the rest at the end.

    The variables `OTEL_…` say where to. Nothing else here imports OpenTelemetry.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are stronger; the id tells processes apart
    name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "skillpager"}
    own = {**name, "service.version": app.version, "service.instance.id": str(uuid.uuid4())}
    resource = Resource.create(own)
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
    FastAPIInstrumentor.instrument_app(
        app,
        tracer_provider=spans,
        meter_provider=metrics,
        exclude_spans=["receive", "send"],
        excluded_urls=",".join(f"{path}$" for path in PROBES),
    )

    def close() -> None:
        spans.force_flush(FLUSH_MILLISECONDS)
        spans.shutdown()
        metrics.shutdown(FLUSH_MILLISECONDS)

    return close

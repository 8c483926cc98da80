"""OpenTelemetry: a span for each request and the work within it, and metrics, sent by OTLP over HTTP.

Nothing here is imported unless the service is started with `--otel`. The spans of the library's work come
from functions that are put around the methods of one library, one pager and one store: others stay
as they are.
Spans hold no query, no text and no token. The OpenTelemetry middleware for ASGI is not used because its spans
hold the query string.
"""

import functools
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from starlette.datastructures import Headers
from starlette.types import Scope

from skillpager.http.visits import Visit
from skillpager.library import Library
from skillpager.types import Page

SCOPE = "skillpager"
# the boundaries that OpenTelemetry's conventions give for http.server.request.duration, in seconds
SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
# at the end of the process, unsent spans and metrics are waited for so long
FLUSH_MILLISECONDS = 5000


@dataclass(slots=True)
class Answered:
    """What a span tells of an answer; it is filled in while the request is answered."""

    route: str = ""
    status: int = 0


class Telemetry:
    """Spans and metrics of one process; where to they are sent is set by the variables `OTEL_…`.

    Args:
        service_version: Version of the service.
    """

    def __init__(self, service_version: str) -> None:
        # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES are stronger; the id tells processes apart
        name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "skillpager"}
        own = {**name, "service.version": service_version, "service.instance.id": str(uuid.uuid4())}
        resource = Resource.create(own)
        self._spans = TracerProvider(resource=resource)
        self._spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._spans.get_tracer(SCOPE, version("skillpager"))
        self._metrics = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
        meter = self._metrics.get_meter(SCOPE, version("skillpager"))
        self._seconds = meter.create_histogram(
            "http.server.request.duration",
            unit="s",
            description="Duration of HTTP server requests.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._pages = meter.create_counter("skillpager.pages", unit="{page}", description="Pages made.")
        self._tokens = meter.create_counter(
            "skillpager.page.tokens", unit="{token}", description="Tokens of all pages."
        )
        self._full = meter.create_counter(
            "skillpager.full.tokens",
            unit="{token}",
            description="Tokens of the whole skills in place of all pages.",
        )

    @contextmanager
    def request(self, scope: Scope, method: str, visit: Visit) -> Iterator[Answered]:
        """Make a span of a request, within the trace that its W3C `traceparent` names.

        Args:
            scope: The request.
            method: Its method.
            visit: What is noted of it.

        Yields:
            What is to be told of the answer.
        """
        answered = Answered()
        parent = propagate.extract(Headers(scope=scope))
        token = context.attach(parent)
        try:
            with self._tracer.start_as_current_span(
                method,
                kind=trace.SpanKind.SERVER,
                attributes={"http.request.method": method, "url.scheme": scope.get("scheme", "http")},
            ) as span:
                yield answered
                span.update_name(f"{method} {answered.route}")
                span.set_attribute("http.route", answered.route)
                span.set_attribute("http.response.status_code", answered.status)
                if visit.token is not None:
                    span.set_attribute("enduser.id", visit.token.name)
                if answered.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    span.set_attribute("error.type", str(answered.status))
                    span.set_status(trace.StatusCode.ERROR)
        finally:
            context.detach(token)

    def count_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an answer; `path` is the route's template."""
        self._seconds.record(
            seconds,
            {"http.request.method": method, "http.route": path, "http.response.status_code": status},
        )

    def count_page(self, strategy: str, page: Page) -> None:
        """Count a page."""
        self._pages.add(1, {"skillpager.strategy": strategy})
        self._tokens.add(page.tokens)
        self._full.add(page.full_tokens)

    def watch(self, library: Library) -> None:
        """Make spans of the work of a library, its pager and its store."""
        pager = library.pager
        self._put_around(library, "route", "route")
        self._put_around(library, "page", "ask")
        self._put_around(pager, "page", "page")
        self._put_around(pager, "expand", "expand")
        self._put_around(pager, "index", "index")
        self._put_around(pager.store, "load", "store load")
        self._put_around(pager.store, "save", "store save")

    def close(self) -> None:
        """Send what is not sent yet."""
        self._spans.force_flush(FLUSH_MILLISECONDS)
        self._spans.shutdown()
        self._metrics.shutdown(FLUSH_MILLISECONDS)

    def _put_around(self, owner: object, method: str, name: str) -> None:
        """Make a span of each call of a method of one object."""
        work: Callable[..., Any] = getattr(owner, method)

        @functools.wraps(work)
        def watched(*arguments: Any, **options: Any) -> Any:
            # a message may quote a text: the class of an error is enough
            with self._tracer.start_as_current_span(
                name, record_exception=False, set_status_on_exception=False
            ) as span:
                try:
                    return work(*arguments, **options)
                except BaseException as error:
                    span.set_attribute("error.type", type(error).__name__)
                    span.set_status(trace.StatusCode.ERROR)
                    raise

        setattr(owner, method, watched)

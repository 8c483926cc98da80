"""A receiver of OpenTelemetry's protocol over HTTP: decodes what it gets with the protocol's own messages."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver:
    """What was received.

    Attributes:
        url: Where.
        bodies: Every body, decompressed.
        traces: The requests with spans.
        measured: The requests with metrics.
    """

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    traces: list[ExportTraceServiceRequest] = field(default_factory=list)
    measured: list[ExportMetricsServiceRequest] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        """All spans, by their beginning."""
        scopes = [scope for each in self.traces for part in each.resource_spans for scope in part.scope_spans]
        found = [span for scope in scopes for span in scope.spans]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    @property
    def metrics(self) -> dict[str, Metric]:
        """The newest value of each metric, by name."""
        parts = [part for each in self.measured for part in each.resource_metrics]
        return {each.name: each for part in parts for scope in part.scope_metrics for each in scope.metrics}


def plain(attributes: "list[KeyValue]") -> dict[str, object]:
    """Return attributes as a dict."""
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value") or "string_value") for each in attributes
    }


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive at a port of this machine."""
    received = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            received.bodies.append(body)
            assert self.headers["Content-Type"] == "application/x-protobuf"
            if self.path == "/v1/traces":
                received.traces.append(ExportTraceServiceRequest.FromString(body))
            else:
                assert self.path == "/v1/metrics"
                received.measured.append(ExportMetricsServiceRequest.FromString(body))
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()

"""Traces and metrics by OpenTelemetry's protocol, received and decoded by a receiver of it."""

import gzip
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from http_running import ASKED, child

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "s3cret-token"
HEADERS = {"Authorization": f"Bearer {SECRET}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
QUERY = str(ASKED["query"])
# as the documentation starts the service
LAUNCHER = str(Path(sys.executable).with_name("opentelemetry-instrument"))

# what was sent to each path
Received = dict[str, list[bytes]]


@contextmanager
def receiving() -> Iterator[tuple[str, Received]]:
    """Receive at a port of this machine; yield its address and what is received."""
    received: Received = defaultdict(list)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            received[self.path].append(gzip.decompress(body) if is_packed else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module", params=["http", None], ids=["new conventions", "old conventions"])
def received(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Received]:
    """What a service sent that answered four requests and ended."""
    folder = tmp_path_factory.mktemp("telemetry")
    changes = {"OTEL_SEMCONV_STABILITY_OPT_IN": request.param} if request.param else {}
    with receiving() as (url, sent):
        variables = {
            **changes,
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "skillpager",
            "OTEL_PYTHON_FASTAPI_EXCLUDED_URLS": "livez$,readyz$",
        }
        with child(folder, "--token", SECRET, launcher=[LAUNCHER], **variables) as service:
            service.client.post("/v1/page", json=ASKED, headers=HEADERS).raise_for_status()
            service.client.post("/v1/ask", json={"query": QUERY}, headers=HEADERS).raise_for_status()
            assert service.client.get("/v1/skills").status_code == 401
            service.client.get("/livez").raise_for_status()
            service.process.send_signal(signal.SIGTERM)
            assert service.end() == 0
        yield sent


def test_each_request_is_a_span_of_the_trace_of_its_client(received: Received) -> None:
    requests = [ExportTraceServiceRequest.FromString(body) for body in received["/v1/traces"]]
    parts = [part for request in requests for part in request.resource_spans]
    found = [span for part in parts for scope in part.scope_spans for span in scope.spans]
    served = [span for span in found if span.kind == Span.SPAN_KIND_SERVER]
    spans = sorted(served, key=lambda span: span.start_time_unix_nano)
    assert [span.name for span in spans] == ["POST /v1/page", "POST /v1/ask", "GET /v1/skills"]
    assert [span.trace_id.hex() == TRACE for span in spans] == [True, True, False]
    assert {span.parent_span_id.hex() for span in spans[:2]} == {PARENT}
    assert all('string_value: "skillpager"' in str(part.resource) for part in parts)
    assert b"http.server" in b"".join(received["/v1/metrics"])


def test_no_query_text_or_token_is_sent(received: Received) -> None:
    sent = b"".join(body for bodies in received.values() for body in bodies)
    for text in (QUERY, QUERY.replace(" ", "+"), QUERY.replace(" ", "%20"), SECRET, "pg_restore"):
        assert text.encode() not in sent
    assert b"postgres" not in sent

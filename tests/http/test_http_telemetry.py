"""Traces and metrics by OpenTelemetry's protocol, received and decoded by a receiver of it."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from cli_process import SAMPLES, environment, hide, run
from http_running import ASKED, child
from otlp_receiver import Receiver, plain, receiving
from skillpager.errors import install_command

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "s3cret-token"
HEADERS = {"Authorization": f"Bearer {SECRET}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
QUERY = str(ASKED["query"])


@pytest.fixture(scope="module", params=["http", None], ids=["new conventions", "old conventions"])
def received(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """What a service sent that answered four requests and ended."""
    folder = tmp_path_factory.mktemp("telemetry")
    changes = {"OTEL_SEMCONV_STABILITY_OPT_IN": request.param} if request.param else {}
    with receiving() as receiver:
        variables = {**changes, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
        with child(folder, "--otel", "--token", SECRET, **variables) as service:
            service.client.post("/v1/page", json=ASKED, headers=HEADERS).raise_for_status()
            service.client.post("/v1/ask", json={"query": QUERY}, headers=HEADERS).raise_for_status()
            assert service.client.get("/v1/skills").status_code == 401
            service.client.get("/livez").raise_for_status()
            service.process.send_signal(signal.SIGTERM)
            assert service.end() == 0
        yield receiver


def test_each_request_is_a_span_of_the_trace_of_its_client(received: Receiver) -> None:
    spans = [span for span in received.spans if span.kind == Span.SPAN_KIND_SERVER]
    assert [span.name for span in spans] == ["POST /v1/page", "POST /v1/ask", "GET /v1/skills"]
    assert [span.trace_id.hex() == TRACE for span in spans] == [True, True, False]
    assert {span.parent_span_id.hex() for span in spans[:2]} == {PARENT}
    resources = [resource.resource for request in received.traces for resource in request.resource_spans]
    assert {plain(list(each.attributes))["service.name"] for each in resources} == {"skillpager"}
    assert any("server" in name and "duration" in name for name in received.metrics)


def test_no_query_text_or_token_is_sent(received: Receiver) -> None:
    sent = b"".join(received.bodies)
    for text in (QUERY, QUERY.replace(" ", "+"), QUERY.replace(" ", "%20"), SECRET, "pg_restore"):
        assert text.encode() not in sent
    assert b"postgres" not in sent


def test_a_receiver_that_is_away_fails_no_request(tmp_path: Path) -> None:
    with child(tmp_path, "--otel", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as service:
        assert service.client.post("/v1/page", json=ASKED).is_success
        service.process.send_signal(signal.SIGTERM)
        assert service.end() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_without_the_extra_it_says_what_to_install(tmp_path: Path, workers: str) -> None:
    env = environment(
        tmp_path / "cache", PYTHONPATH=hide(tmp_path / "hidden", "opentelemetry.instrumentation.fastapi")
    )
    done = run("serve", SAMPLES, "--otel", "--workers", workers, "--port", "0", env=env)
    assert done.code == 1
    assert install_command("otel") in done.err
    assert len(done.err.splitlines()) == 1

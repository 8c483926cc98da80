"""Traces and metrics by OpenTelemetry's protocol, received and decoded by a receiver of it."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from cli_process import SAMPLES, environment, hide, run
from http_running import ASKED, child
from otlp_receiver import Receiver, plain, receiving
from skillpager.errors import install_command

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SECRET = "s3cret-token"
HEADERS = {"Authorization": f"Bearer {SECRET}", "traceparent": f"00-{TRACE}-{PARENT}-01"}
QUERY = str(ASKED["query"])


@pytest.fixture(scope="module", params=["1", "2"], ids=["one process", "two processes"])
def received(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    """What a service sent that answered five requests and ended."""
    folder = tmp_path_factory.mktemp("telemetry")
    options = ("--otel", "--token", SECRET, "--workers", request.param)
    with receiving() as receiver:
        with child(folder, *options, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url) as service:
            service.client.get("/v1/page", params=ASKED, headers=HEADERS).raise_for_status()
            service.client.post("/v1/ask", json={"query": QUERY}, headers=HEADERS).raise_for_status()
            service.client.get("/v1/skills/none/outline", headers=HEADERS)
            service.client.get("/v1/skills", headers={"Authorization": f"Bearer {SECRET}"})
            service.client.get("/v1/skills")
            service.process.send_signal(signal.SIGTERM)
            assert service.end() == 0
        yield receiver


def servers(received: Receiver) -> list[Span]:
    return [span for span in received.spans if span.kind == Span.SPAN_KIND_SERVER]


def test_each_request_is_a_span_with_its_route(received: Receiver) -> None:
    told = [(span.name, plain(list(span.attributes))) for span in servers(received)]
    assert [(name, of["http.response.status_code"]) for name, of in told] == [
        ("GET /v1/page", 200),
        ("POST /v1/ask", 200),
        ("GET /v1/skills/{name}/outline", 404),
        ("GET /v1/skills", 200),
        ("GET unknown", 401),
    ]
    assert told[0][1] == {
        "http.request.method": "GET",
        "http.route": "/v1/page",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "enduser.id": "default",
    }


def test_a_span_belongs_to_the_trace_of_its_client(received: Receiver) -> None:
    spans = servers(received)
    assert [span.trace_id.hex() == TRACE for span in spans] == [True, True, True, False, False]
    assert {span.parent_span_id.hex() for span in spans[:3]} == {PARENT}
    assert {span.parent_span_id for span in spans[3:]} == {b""}


def test_work_is_within_its_request(received: Receiver) -> None:
    def below(span: Span) -> dict[str, object]:
        inner = [each for each in received.spans if each.parent_span_id == span.span_id]
        return {each.name: below(each) for each in inner}

    page, ask, missing, *_ = map(below, servers(received))
    assert page == {"index": {"store load": {}, "store save": {}}, "page": {"index": {}}} or page == {
        "index": {"store load": {}, "store save": {}},
        "page": {},
    }
    assert "ask" in ask
    assert "route" in ask["ask"]  # type: ignore[operator]
    assert missing == {}


def test_metrics_count_requests_and_pages(received: Receiver) -> None:
    durations = received.metrics["http.server.request.duration"]
    assert durations.unit == "s"
    pages = received.metrics["skillpager.pages"].sum.data_points
    assert plain(list(pages[0].attributes)) == {"skillpager.strategy": "navigator"}
    assert received.metrics["skillpager.page.tokens"].sum.data_points[0].as_int > 0
    counted = {
        (plain(list(point.attributes))["http.route"], point.count)
        for request in received.measured
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "http.server.request.duration"
        for point in metric.histogram.data_points
    }
    assert {("/v1/page", 1), ("/v1/ask", 1)} <= counted


def test_each_process_says_which_it_is(received: Receiver) -> None:
    resources = [resource.resource for request in received.traces for resource in request.resource_spans]
    told = [plain(list(resource.attributes)) for resource in resources]
    assert {each["service.name"] for each in told} == {"skillpager"}
    assert all(len(str(each["service.instance.id"])) == 36 for each in told)


def test_no_query_text_or_token_is_sent(received: Receiver) -> None:
    sent = b"".join(received.bodies)
    for text in (QUERY, QUERY.replace(" ", "+"), SECRET, "pg_restore"):
        assert text.encode() not in sent
    assert b"postgres" not in sent.lower()


def test_an_error_is_told_by_its_class(tmp_path: Path) -> None:
    with receiving() as receiver:
        options = ("--otel", "--allow-models")
        with child(tmp_path, *options, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url) as service:
            asked = {**ASKED, "strategy": "reranker:no/such-model"}
            assert service.client.post("/v1/page", json=asked).status_code in (501, 502)
            service.process.send_signal(signal.SIGTERM)
            assert service.end() == 0
        (page,) = [span for span in receiver.spans if span.name == "page"]
    assert page.status.code == Status.STATUS_CODE_ERROR
    assert plain(list(page.attributes))["error.type"] in ("MissingExtraError", "StrategyError")
    assert b"no/such-model" not in b"".join(receiver.bodies)


def test_a_receiver_that_is_away_fails_no_request(tmp_path: Path) -> None:
    with child(tmp_path, "--otel", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9") as service:
        assert service.client.get("/v1/page", params=ASKED).is_success
        service.process.send_signal(signal.SIGTERM)
        assert service.end() == 0


def test_nothing_that_sends_is_imported_unless_it_is_asked_for(tmp_path: Path) -> None:
    program = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from skillpager import SkillPager\n"
        "from skillpager.http.options import ServerOptions\n"
        "from skillpager.http.server import create_app\n"
        "from skillpager.library import Library\n"
        f"create_app(Library(SkillPager(), [Path({str(SAMPLES)!r})]), ServerOptions())\n"
        "print(json.dumps([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))]))\n"
    )
    env = environment(tmp_path / "cache", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache", PYTHONPATH=hide(tmp_path / "hidden", "opentelemetry.sdk"))
    for workers in ("1", "2"):
        done = run("serve", SAMPLES, "--port", "0", "--otel", "--workers", workers, env=env)
        assert done.code == 1
        assert install_command("otel") in done.err
        assert len(done.err.splitlines()) == 1

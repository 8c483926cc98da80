"""Whatever is wrong with a request is told as `application/problem+json`, and never with a traceback."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from encoder_stubs import PanickingEncoder
from http_running import ASKED, Running, running
from skillpager import SkillPager
from skillpager.http.options import ServerOptions

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def service(pager: SkillPager) -> Iterator[Running]:
    with running(pager, ServerOptions(port=0)) as started:
        yield started


@pytest.fixture(scope="module")
def client(service: Running) -> httpx.Client:
    return service.client


def problem(answer: httpx.Response) -> dict[str, Any]:
    """Return a problem that is well formed."""
    assert answer.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = answer.json()
    assert told["type"] == "about:blank"
    assert told["status"] == answer.status_code
    assert told["title"]
    assert "Traceback" not in answer.text
    assert set(told) <= {"type", "title", "status", "detail", "error", "errors"}
    return told


@pytest.mark.parametrize(
    ("fields", "wrong", "message"),
    [
        ({"max_token": 5}, "max_token", "not permitted"),
        ({"max_tokens": "5"}, "max_tokens", "valid integer"),
        ({"max_nodes": 10**30}, "max_nodes", "less than or equal"),
        ({"sufficiency": 0}, "sufficiency", "greater than 0"),
        ({"style": "html"}, "style", "'marked', 'plain' or 'xml'"),
        ({"query": ""}, "query", "at least 1 character"),
        ({"query": "x" * 9000}, "query", "at most 8000"),
        ({"query": "\ud800"}, "query", "unicode"),
    ],
)
def test_a_wrong_field_is_named(
    client: httpx.Client, fields: dict[str, Any], wrong: str, message: str
) -> None:
    body = json.dumps({**ASKED, **fields})  # httpx would not send half a character
    told = problem(client.post("/v1/page", content=body, headers=JSON))
    assert told["status"] == 422
    assert [each["field"] for each in told["errors"]] == [wrong]
    assert told["errors"][0]["in"] == "body"
    assert message in told["errors"][0]["detail"]
    assert message in told["detail"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query": " \n"}, "The query is empty"),
        ({"strategy": "best"}, "Unknown strategy 'best': choose one of navigator"),
        # code that exists: the error of an attempt to load it would be another
        ({"strategy": "os:system"}, "Unknown strategy 'os:system': choose one of navigator"),
        ({"strategy": "density:much"}, "not 'much'"),
        ({"strategy": "density:nan"}, "nan"),
        ({"strategy": "mmr", "sufficiency": 0.9}, "does not estimate sufficiency"),
        ({"skill": None}, "skill: Input should be a valid string"),
    ],
)
def test_what_does_not_go_together_is_told_with_the_way_out(
    client: httpx.Client, fields: dict[str, Any], message: str
) -> None:
    told = problem(client.post("/v1/page", json={**ASKED, **fields}))
    assert told["status"] == 422
    assert message in told["detail"]


NO_JSON = (
    b'{"skill": ',
    b"\xff\xfe{}",
    b'{"skill": "a", "query": "\xe4"}',
    b"[" * 16000,
    b'{"skill": "a"} {}',
)
NO_REQUEST = (b"", b"[]", b"null", b'"text"', b"{}")


@pytest.mark.parametrize("body", [*NO_JSON, *NO_REQUEST])
def test_what_is_not_json_is_a_bad_request_and_json_that_is_no_request_is_refused(
    client: httpx.Client, body: bytes
) -> None:
    told = problem(client.post("/v1/page", content=body, headers=JSON))
    assert told["status"] == (400 if body in NO_JSON else 422)
    assert ("The body is not JSON" in told["detail"]) is (body in NO_JSON)
    assert told["detail"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
def test_a_body_that_does_not_say_it_is_json_is_refused(client: httpx.Client, kind: str) -> None:
    body = b'{"skill": "git-bisect", "query": "x"}'
    told = problem(client.post("/v1/page", content=body, headers={"Content-Type": kind}))
    assert (told["status"], "the header Content-Type: application/json" in told["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("/v1/skills/git-bisekt/outline", "UnknownSkillError", "did you mean 'git-bisect'"),
        ("/v1/skills/..%2f..%2fetc/outline", "UnknownSkillError", "ask for the list"),
        ("/v1/skills/%2Fetc%2Fpasswd/graph", "UnknownSkillError", "ask for the list"),
        ("/v1/nothing", None, "/v1/openapi.json"),
        ("/docs", None, "/v1/openapi.json"),
    ],
)
def test_what_is_not_there_is_not_found(
    client: httpx.Client, path: str, error: str | None, message: str
) -> None:
    told = problem(client.get(path))
    assert (told["status"], told.get("error")) == (404, error)
    assert message in told["detail"]


def test_paths_and_folders_are_no_names(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("One.\n")
    for name in (str(tmp_path), str(tmp_path / "SKILL.md"), "SKILL.md", "./git-bisect", "."):
        for path, fields in (("page", {"query": "x"}), ("expand", {"nodes": "n0"})):
            told = problem(client.post(f"/v1/{path}", json={"skill": name, **fields}))
            assert (told["status"], told["error"]) == (404, "UnknownSkillError")


@pytest.mark.parametrize(
    "nodes", ["n" + "9" * 5000, "L" + "9" * 5000, ["n1-n" + "9" * 400], "n0x", "-", "n99"]
)
def test_an_address_that_means_nothing_is_not_found(client: httpx.Client, nodes: str | list[str]) -> None:
    told = problem(client.post("/v1/expand", json={"skill": "git-bisect", "nodes": nodes}))
    assert (told["status"], told["error"]) == (404, "NodeNotFoundError")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("DELETE", "/v1/page", {"POST"}), ("POST", "/livez", {"GET"}), ("OPTIONS", "/v1/skills", {"GET"})],
)
def test_another_method_is_not_allowed(
    client: httpx.Client, method: str, path: str, allowed: set[str]
) -> None:
    answer = client.request(method, path)
    assert problem(answer)["status"] == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


def test_a_wrong_parameter_is_named(client: httpx.Client) -> None:
    told = problem(client.get("/v1/skills/git-bisect/outline?scope=all&scop=body"))
    named = {(each["in"], each["field"]) for each in told["errors"]}
    assert (told["status"], named) == (422, {("query", "scope"), ("query", "scop")})


def test_a_large_body_is_refused_with_and_without_an_announced_length(service: Running) -> None:
    url = service.client.base_url
    head = f"POST /v1/page HTTP/1.1\r\nHost: {url.host}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((url.host, url.port or 0)) as connection:
        connection.sendall(f"{head}Content-Length: {(1 << 20) + 1}\r\n\r\n".encode())
        told = b"".join(iter(lambda: connection.recv(4096), b""))  # the server closes the connection
    assert told.startswith(b"HTTP/1.1 413")
    assert b"over the limit of 1,048,576 bytes" in told
    with socket.create_connection((url.host, url.port or 0)) as connection:
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        connection.sendall(b"%x\r\n%s\r\n" % (1_100_000, b" " * 1_100_000))
        assert b"413" in connection.recv(4096).partition(b"\r\n")[0]


def test_a_fault_of_ours_is_told_as_one(
    pager: SkillPager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret detail")

    with running(pager) as service:
        monkeypatch.setattr(service.service.library, "index", fail)
        answer = service.client.post("/v1/page", json=ASKED)
    told = problem(answer)
    assert (told["status"], told["error"]) == (500, "FaultError")
    assert "secret" not in answer.text
    assert "secret detail" in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_panic_of_a_dependency_ends_one_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pager = SkillPager(encoder=PanickingEncoder(), store=tmp_path / "store")
    with running(pager, ServerOptions(port=0, threads=1)) as service:
        for _ in range(3):
            told = problem(service.client.post("/v1/page", json=ASKED))
            assert (told["status"], told["error"]) == (500, "FaultError")
        assert service.client.get("/v1/skills/git-bisect/outline").is_success
    pager.close()
    assert "secret" not in str(told)
    assert "secret detail" in caplog.text

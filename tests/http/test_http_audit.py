"""The audit log: who asked for what, without queries and tokens; renamed files and full disks."""

import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli_process import SAMPLES, environment, run
from http_running import ASKED, child, running
from skillpager import SkillPager
from skillpager.http.access import make_token
from skillpager.http.options import ServerOptions
from skillpager.http.rates import Rate

UPLOAD = {"markdown": "# Fixes\n\n1. Stop the server.\n", "query": "secret upload query"}
FIELDS = ["time", "token", "client", "method", "route", "skills", "status", "bytes", "ms"]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_request_is_one_line_without_query_and_token(tmp_path: Path, pager: SkillPager) -> None:
    log = tmp_path / "audit.jsonl"
    secret, entry = make_token("ci", ["read", "upload"])
    options = ServerOptions(port=0, tokens_text=entry, allow_uploads=True, audit_log=log, rate=Rate(7, 3600))
    headers = {"Authorization": f"Bearer {secret}"}
    with running(pager, options) as service:
        client = service.client
        client.post("/v1/page", json=ASKED, headers=headers)
        client.get("/v1/page", params={**ASKED, "skill": "no\nsuch"}, headers=headers)
        client.get("/v1/skills/git-bisect/outline", headers=headers)
        client.post("/v1/page", json=UPLOAD, headers=headers)
        client.post("/v1/ask", json={"query": ASKED["query"]}, headers=headers)
        client.get(f"/v1/{secret}", headers=headers)
        client.get("/metrics", headers=headers)
        client.get("/v1/skills")
        client.get("/v1/about", headers=headers)
        client.get("/v1/about", headers=headers)
        for probe in ("/livez", "/readyz", "/healthz"):
            client.get(probe)
    said = lines(log)
    assert [list(line) for line in said] == [FIELDS] * len(said)
    assert [(line["token"], line["route"], line["skills"], line["status"]) for line in said[:4]] == [
        ("ci", "/v1/page", ["postgres-backup"], 200),
        ("ci", "/v1/page", ["no\nsuch"], 404),
        ("ci", "/v1/skills/{name}/outline", ["git-bisect"], 200),
        ("ci", "/v1/page", [], 200),
    ]
    assert said[4]["skills"][0] == "postgres-backup"
    assert [(line["token"], line["status"]) for line in said[5:]] == [
        ("ci", 404),
        ("ci", 403),
        (None, 401),
        ("ci", 200),
        ("ci", 429),
    ]
    assert said[0]["bytes"] > 1000
    text = log.read_text()
    assert secret not in text
    assert ASKED["query"] not in text
    assert UPLOAD["query"] not in text
    assert log.stat().st_mode & 0o777 == 0o600


def test_queries_are_logged_where_the_owner_wants_them(tmp_path: Path, pager: SkillPager) -> None:
    log = tmp_path / "audit.jsonl"
    with running(pager, ServerOptions(port=0, audit_log=log, audit_queries=True)) as service:
        service.client.post("/v1/page", json=ASKED)
        service.client.get("/v1/route", params={"query": "q2"})
        service.client.get("/v1/skills")
    assert [line["query"] for line in lines(log)] == [ASKED["query"], "q2", None]


def test_all_processes_write_one_log_which_may_be_renamed(tmp_path: Path) -> None:
    log, old = tmp_path / "audit.jsonl", tmp_path / "audit.jsonl.1"
    with child(tmp_path, "--workers", "2", "--audit-log", log) as service:
        url = f"{service.client.base_url}/v1/strategies"
        for _ in range(20):
            httpx.get(url, timeout=60)
        log.rename(old)
        for _ in range(20):
            httpx.get(url, timeout=60)
        service.process.send_signal(signal.SIGTERM)
        assert service.end() == 0
    assert len(lines(old)) == 20
    assert len(lines(log)) == 20


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_said_once_and_counted_and_answers_go_on(
    tmp_path: Path, pager: SkillPager, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "audit.jsonl"
    log.symlink_to("/dev/full")
    with running(pager, ServerOptions(port=0, audit_log=log)) as service:
        assert [service.client.get("/v1/strategies").status_code for _ in range(3)] == [200] * 3
        assert "skillpager_audit_failures_total 3.0" in service.client.get("/metrics").text
    assert caplog.text.count("Lines of the audit log") == 1


def test_what_cannot_be_logged_to_is_one_error(tmp_path: Path) -> None:
    env = environment(tmp_path / "cache")
    for options, message in (
        (["--audit-log", str(tmp_path)], "the audit log cannot be written"),
        (["--audit-queries"], "name its file with --audit-log"),
    ):
        done = run("serve", SAMPLES, "--port", "0", *options, env=env)
        assert done.code == 1
        assert message in done.err
        assert len(done.err.splitlines()) == 1

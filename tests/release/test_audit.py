"""The audit of dependencies, with an advisory service on this machine that answers as OSV does."""

import json
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "release"))

import audit

VULNERABILITY = {
    "id": "PYSEC-2000-1",
    "summary": "It leaks.",
    "affected": [
        {
            "package": {"name": "oldlib", "ecosystem": "PyPI"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
        }
    ],
}


@contextmanager
def osv(vulnerable: str = "", status: int = 200, fails_for: str = "") -> Iterator[str]:
    """Serve the protocol of OSV and yield the URL; one package is vulnerable, for one the service fails."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            name = query["package"]["name"]
            body = json.dumps({"vulns": [VULNERABILITY]} if name == vulnerable else {}).encode()
            self.send_response(500 if name == fails_for else status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wheel(folder: Path, name: str, version: str) -> str:
    """Write an empty wheel and return the requirement that installs it."""
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return f"{name} @ {file.as_uri()}"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Arguments that audit a project with one dependency, one more in an extra, and an extra for its tests."""
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    file = tmp_path / "pyproject.toml"
    file.write_text(
        f"""[project]
name = "sample"
version = "1"
requires-python = ">=3.11"
dependencies = ["{wheel(tmp_path, "oldlib", "1.0")}"]
optional-dependencies.more = ["{wheel(tmp_path, "newlib", "2.0")}"]
optional-dependencies.test = []
""",
        encoding="utf-8",
    )
    return ["--project", str(file), "--out", str(tmp_path / "sbom")]


def test_clean_dependencies_pass_and_every_published_extra_is_listed(
    project: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with osv() as url:
        assert audit.main([*project, "--required", "--osv-url", url]) == audit.CLEAN
    said = capsys.readouterr()
    assert "2 versions audited: 0 known vulnerabilities" in said.out
    assert said.err == ""
    listed = {
        file.name: [
            f"{part['name']} {part['version']}" for part in json.loads(file.read_text())["components"]
        ]
        for file in (tmp_path / "sbom").iterdir()
    }
    assert listed == {
        "skillpager.cdx.json": ["oldlib 1.0"],
        "skillpager-more.cdx.json": ["newlib 2.0", "oldlib 1.0"],
    }


def test_a_vulnerability_fails_the_audit_with_its_name_and_the_way_out(
    project: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with osv("oldlib") as url:
        assert audit.main([*project, "--osv-url", url]) == audit.VULNERABLE
    assert capsys.readouterr().err == "oldlib 1.0: PYSEC-2000-1, fixed in 1.1\n"


@pytest.mark.parametrize(("required", "status"), [(True, 0), (False, 403), (True, 503), (False, 0)])
def test_without_the_service_a_warning_says_so_and_only_a_release_fails(
    project: list[str], capsys: pytest.CaptureFixture[str], required: bool, status: int
) -> None:
    with osv(status=status or 200) as url:
        if not status:
            url = "http://127.0.0.1:9/v1/query"  # nothing listens
        wanted = audit.NOT_AUDITED if required else audit.CLEAN
        assert audit.main([*project, "--osv-url", url, *(["--required"] if required else [])]) == wanted
    assert "dependencies were NOT audited" in capsys.readouterr().err


def test_every_version_is_audited_and_a_service_that_fails_halfway_does_not_pass(
    capsys: pytest.CaptureFixture[str],
) -> None:
    packages = {"oldlib": {"1.0", "0.9"}, "newlib": {"2.0"}}
    with osv("oldlib") as url:
        assert audit.audit(packages, url) == audit.VULNERABLE
    assert capsys.readouterr().out == "3 versions audited: 2 known vulnerabilities\n"
    with osv(fails_for="newlib") as url:
        assert audit.audit(packages, url) == audit.NOT_AUDITED
    assert "The audit failed" in capsys.readouterr().err

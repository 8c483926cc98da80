"""The routes of the explorer: files that anyone may have, documents that need the token."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conftest import SAMPLES
from http_running import running
from skillpager import SkillPager
from skillpager.http.explorer.document import render_skill
from skillpager.http.explorer.routes import ASSETS, INDEX, WEB
from skillpager.http.options import ServerOptions
from skillpager.output.outline import SIGNALS
from skillpager.pages.gaps import LEAST_COVERED

TOKEN = {"Authorization": "Bearer secret"}


@pytest.fixture(scope="module")
def client(pager: SkillPager) -> Iterator[httpx.Client]:
    with running(pager, ServerOptions(port=0, token="secret")) as service:
        yield service.client


@pytest.mark.parametrize("path", sorted(ASSETS))
def test_files_are_given_without_the_token_and_once(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.content) == (200, (WEB / (Path(path).name or INDEX)).read_bytes())
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-cache"
    if path.endswith(".js"):
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
    again = client.get(path, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_every_file_that_a_file_names_is_there_and_none_loads_from_elsewhere() -> None:
    page = (WEB / INDEX).read_text()
    named = set(re.findall(r'(?:href|src)="(/explorer/[^"]+)"', page))
    for file in WEB.iterdir():
        text = file.read_text()
        if file.suffix == ".js":
            named |= {f"/explorer/{name}" for name in re.findall(r'from "\./([^"]+)"', text)}
        found = re.findall(r"https?://[^\s\"')]+", text)
        assert set(found) <= {"http://www.w3.org/2000/svg"}, file
    assert named | {f"/explorer/{INDEX}", "/"} == set(ASSETS)
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=)", page)


def test_documents_need_the_token_and_are_given_once(
    client: httpx.Client, pager: SkillPager, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the budget is not what is asked here: collecting the garbage of all tests may spend it
    monkeypatch.setattr("skillpager.http.explorer.document.MIN_SECONDS", 60.0)
    monkeypatch.setattr("skillpager.http.explorer.document.MAX_SECONDS", 60.0)
    path = "/explorer/document/kubernetes-debugging"
    assert client.get(path).status_code == 401
    answer = client.get(path, headers=TOKEN)
    assert answer.json() == {"files": render_skill(pager.index(SAMPLES / "kubernetes-debugging"))}
    seen = {"If-None-Match": answer.headers["ETag"]}
    assert client.get(path, headers=TOKEN | seen).status_code == 304
    body = client.get(path, headers=TOKEN, params={"scope": "body"}).json()
    assert [file["path"] for file in body["files"]] == ["SKILL.md"]
    assert client.get("/explorer/words", headers=TOKEN).json() == {
        "signals": SIGNALS,
        "least_covered": LEAST_COVERED,
    }


@pytest.mark.parametrize("name", ["../../etc/passwd", "%2e%2e/postgres-backup", "no-such-skill", "/etc"])
def test_a_name_is_never_a_path(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/explorer/document/{name}", headers=TOKEN)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"

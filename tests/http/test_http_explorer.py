"""The routes of the explorer: files that anyone may have, words that need the token."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from http_running import running
from skillpager import SkillPager
from skillpager.display_text import LEAST_COVERED, SURELY_UNCOVERED
from skillpager.http.options import ServerOptions
from skillpager.http.routes import WEB
from skillpager.output.outline import SIGNALS

TOKEN = {"Authorization": "Bearer secret"}
INDEX = "index.html"
ASSETS = ["/", *(f"/explorer/{file.name}" for file in WEB.iterdir())]


@pytest.fixture(scope="module")
def client(pager: SkillPager) -> Iterator[httpx.Client]:
    with running(pager, ServerOptions(port=0, token="secret")) as service:
        yield service.client


@pytest.mark.parametrize("path", ASSETS)
def test_files_are_given_without_the_token(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.content) == (200, (WEB / (Path(path).name or INDEX)).read_bytes())
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-cache"
    if path.endswith(".js"):
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"


def test_every_file_that_a_file_names_is_there_and_none_loads_from_elsewhere() -> None:
    page = (WEB / INDEX).read_text()
    named = set(re.findall(r'(?:href|src)="(/explorer/[^"]+)"', page))
    for file in WEB.iterdir():
        text = file.read_text()
        if file.suffix == ".js":
            named |= {f"/explorer/{name}" for name in re.findall(r'from "\./([^"]+)"', text)}
        assert set(re.findall(r"https?://[^\s\"')]+", text)) <= {"http://www.w3.org/2000/svg"}, file
    assert named | {f"/explorer/{INDEX}", "/"} == set(ASSETS)
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=)", page)


def test_words_need_the_token(client: httpx.Client) -> None:
    assert client.get("/v1/explorer/words").status_code == 401
    told = client.get("/v1/explorer/words", headers=TOKEN).json()
    assert told == {"signals": SIGNALS, "covered": [SURELY_UNCOVERED, LEAST_COVERED]}


@pytest.mark.parametrize("path", ["../requests.py", "%2e%2e/requests.py", "no-such-file", "/etc/passwd"])
def test_no_other_file_is_given(client: httpx.Client, path: str) -> None:
    answer = client.get(f"/explorer/{path}", headers=TOKEN)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"

"""Routing and pages of a whole library over HTTP, as the library makes them."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from conftest import SAMPLES
from http_running import QUERY, running
from skillpager import SkillPager
from skillpager.http.options import ServerOptions
from skillpager.json_types import to_json
from skillpager.library import Library
from test_http_pages import plain


@pytest.fixture(scope="module")
def client(pager: SkillPager) -> Iterator[httpx.Client]:
    with running(pager, ServerOptions(port=0, max_tokens=900)) as service:
        # a route names nodes of skills that have been indexed: these are before all tests
        service.client.post("/v1/ask", json={"query": BOTH})
        yield service.client


def told(client: httpx.Client, path: str, **fields: object) -> Any:
    """Return the answer to a request by POST."""
    answer = client.post(path, json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_route_is_that_of_the_library(client: httpx.Client, pager: SkillPager) -> None:
    found = Library(pager, [SAMPLES]).route(QUERY, k=3)
    form = told(client, "/v1/route", query=QUERY, k=3)
    assert form == plain(to_json(found))
    assert form["skills"][0]["name"] == "postgres-backup"
    assert form["has_fit"]


# ---- one page from several skills


BOTH = "Find the commit that broke the build with git bisect, then restore one table from a dump."


def test_a_page_is_that_of_the_library(client: httpx.Client, pager: SkillPager) -> None:
    library = Library(pager, [SAMPLES])
    made = library.page(BOTH, max_tokens=700, show=lambda skill: f"read {skill.name}")
    form = told(client, "/v1/ask", query=BOTH, max_tokens=700, show="read")
    assert form == plain(to_json(made))
    assert sorted(part["name"] for part in form["parts"]) == ["git-bisect", "postgres-backup"]
    assert form["has_fit"]
    assert "read: read postgres-backup L" in form["text"]


def test_the_ceiling_of_the_service_is_that_of_every_page(client: httpx.Client) -> None:
    assert told(client, "/v1/ask", query=BOTH, fill=True)["tokens"] <= 900
    refused = client.post("/v1/ask", json={"query": BOTH, "max_tokens": 901})
    assert (refused.status_code, refused.json()["detail"]) == (
        422,
        "max_tokens is 901: the service allows 900 at most.",
    )


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ({"query": QUERY, "strategy": "os:system"}, 422, "Unknown strategy"),
        ({"query": QUERY, "max_skills": 0}, 422, "max_skills"),
        ({"query": QUERY, "folder": True}, 422, "folder: Extra inputs"),
        ({"query": " "}, 422, "The query is empty"),
    ],
)
def test_what_the_owner_forbids_or_is_wrong_is_refused(
    client: httpx.Client, fields: dict[str, object], status: int, says: str
) -> None:
    answer = client.post("/v1/ask", json=fields)
    assert (answer.status_code, says in answer.json()["detail"]) == (status, True), answer.text

"""The HTTP service gives the library's pages, outlines and graphs, as JSON."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from conftest import SAMPLES, write_skill
from http_running import ASKED, QUERY, running
from skillpager import SkillPager
from skillpager.http.options import ServerOptions
from skillpager.json_types import JsonObject, to_json
from skillpager.library import Library
from skillpager.strategies.registry import FAMILIES
from skillpager.types import Style


@pytest.fixture(scope="module")
def client(pager: SkillPager) -> Iterator[httpx.Client]:
    with running(pager) as service:
        yield service.client


def plain(value: JsonObject) -> Any:
    """Return a value as JSON gives it back."""
    return json.loads(json.dumps(value))


def ask(client: httpx.Client, **fields: object) -> Any:
    """Return a page."""
    answer = client.post("/v1/page", json={**ASKED, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_what_a_client_has_is_named_and_a_read_stays_within_its_ceiling(
    client: httpx.Client, pager: SkillPager
) -> None:
    page = ask(client)
    rest = ask(client, known=[node["id"] for node in page["nodes"]])
    assert rest["nodes"] == []
    known = {node for gap in rest["omitted"] if gap["known"] for node in gap["nodes"]}
    assert known == {node["id"] for node in page["nodes"]}
    asked = {"skill": ASKED["skill"], "nodes": "n0-n40", "max_tokens": 200}
    read = client.post("/v1/expand", json=asked).json()
    expected = pager.expand(SAMPLES / "postgres-backup", "n0-n40", max_tokens=200)
    assert read == plain(to_json(expected))
    assert 0 < read["tokens"] <= 200


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"max_nodes": 3},
        {"max_tokens": 300, "style": "xml"},
        {"sufficiency": 0.9},
        {"mmr_lambda": 0.5, "scope": "body"},
        {"strategy": "density:0.3", "style": "plain"},
        {"strategy": "topk", "max_nodes": 4},
        {"known": ["n26", "n27", "n28", "n32"], "show": "read"},
    ],
)
def test_arguments_mean_what_they_mean_in_the_library(
    client: httpx.Client, pager: SkillPager, arguments: dict[str, Any]
) -> None:
    expected = to_json(pager.page(SAMPLES / "postgres-backup", QUERY, **arguments))
    assert ask(client, **arguments) == plain(expected)


def test_explain_tells_the_reasons_of_the_library(client: httpx.Client, pager: SkillPager) -> None:
    reasons = pager.reasons(SAMPLES / "postgres-backup", QUERY)
    assert ask(client, explain=True)["reasons"] == plain(dict(reasons))
    assert "reasons" not in ask(client)
    # such a strategy estimates nothing
    assert ask(client, strategy="mmr", explain=True)["reasons"] == {}


@pytest.mark.parametrize("nodes", ["n3-n5", ["n3", "L40-52"], "n0 n7,n9"])
def test_expand_gives_what_the_library_expands(
    client: httpx.Client, pager: SkillPager, nodes: str | list[str]
) -> None:
    answer = client.post("/v1/expand", json={"skill": "postgres-backup", "nodes": nodes, "style": "plain"})
    expected = to_json(pager.expand(SAMPLES / "postgres-backup", nodes, style=Style.PLAIN))
    assert answer.json() == plain(expected)


@pytest.mark.parametrize(("form", "part"), [("outline", "headings"), ("graph", "edges")])
@pytest.mark.parametrize("scope", ["skill", "body"])
def test_what_is_inside_a_skill_is_told_as_everywhere(
    client: httpx.Client, pager: SkillPager, form: str, part: str, scope: str
) -> None:
    answer = client.get(f"/v1/skills/kubernetes-debugging/{form}", params={"scope": scope})
    index = pager.index(SAMPLES / "kubernetes-debugging", scope=scope)
    assert answer.json() == plain(to_json(index, "nodes", part))


def test_the_skills_are_those_of_the_library(pager: SkillPager, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "SKILL.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "samples").symlink_to(SAMPLES)
    with running(pager, folder=tmp_path) as service:
        told = service.client.get("/v1/skills").json()
    library = Library(pager, [tmp_path])
    assert told["skills"] == [plain(to_json(found)) for found in library.skills()]
    assert [(found["name"], "UTF-16" in found["problem"]) for found in told["left_out"]] == [("broken", True)]


def test_strategies_say_what_they_heed(client: httpx.Client) -> None:
    told = {each["name"]: each for each in client.get("/v1/strategies").json()["strategies"]}
    assert list(told) == list(FAMILIES)
    assert told["navigator"]["heeds"] == ["max_nodes", "max_tokens", "sufficiency", "fill"]
    assert told["mmr"]["heeds"] == ["max_nodes", "max_tokens", "mmr_lambda"]
    assert told["dpp"]["argument"] == {"name": "diversity", "kind": "a number", "sample": "0.5"}
    assert not any(each["problem"] for each in told.values())


def test_about_tells_what_is_allowed(client: httpx.Client, pager: SkillPager) -> None:
    with running(pager, ServerOptions(port=0, max_tokens=900)) as service:
        closed, opened = (each.get("/v1/about").json() for each in (client, service.client))
    assert (closed["max_tokens"], opened["max_tokens"]) == (None, 900)
    assert closed["encoder"].startswith("builtin")


def test_names_may_be_of_any_script_and_those_that_are_not_utf8_are_told_in_utf8(
    pager: SkillPager, tmp_path: Path
) -> None:
    odd = tmp_path / os.fsdecode(b"cab\xe9\n- x")
    odd.mkdir()
    (odd / "SKILL.md").write_text("One.\n")
    write_skill(tmp_path / "half", name='"half\\ud800"', description='"\\ud800"')
    write_skill(tmp_path / "script", name="备份-ä")
    with running(pager, folder=tmp_path) as service:
        told = service.client.get("/v1/skills").json()
        assert [found["name"] for found in told["skills"]] == ["cab-x", "half", "备份-ä"]
        for found in told["skills"]:
            assert ask(service.client, skill=found["name"])["complete"]
            outline = service.client.get(f"/v1/skills/{quote(found['name'])}/outline").json()
            assert outline["name"] == found["name"]
        for path in ("/v1/skills/%ff/outline", "/v1/skills/%ed%a0%80/outline"):
            assert service.client.get(path).status_code == 404
        for body in (b'{"skill": "\\ud800", "query": "x"}', b'{"skill": "half", "query": "\\ud800"}'):
            answer = service.client.post(
                "/v1/page", content=body, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 422

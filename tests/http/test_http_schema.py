"""The OpenAPI description is true: what it allows is answered as it says, and what it does not is refused."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from pydantic import ConfigDict, TypeAdapter

from http_running import ASKED, running
from skillpager import SkillPager
from skillpager.http.options import ServerOptions
from skillpager.http.problems import ProblemJson
from skillpager.http.requests import ExpandRequest, PageRequest, ScopeName, StyleName
from skillpager.http.routes import ExplainedPageJson, Skills, StrategiesJson
from skillpager.json_types import json_type
from skillpager.types import SCOPES, PageOptions, Style

TOKEN = "correct-horse"
EXAMPLES = 10
# what fits the description but not the rest of the request, such as a limit that a strategy does not
# know, is refused with 422: the one check that would have it accepted
UNCHECKED = "positive_data_acceptance"


@pytest.fixture(scope="module")
def client(pager: SkillPager) -> Iterator[httpx.Client]:
    options = ServerOptions(port=0, token=TOKEN, max_tokens=100_000)
    with running(pager, options) as service:
        service.client.headers["Authorization"] = f"Bearer {TOKEN}"
        # before it is ready it says so with 503, as a fault would be
        while not service.client.get("/readyz").is_success:
            time.sleep(0.05)
        yield service.client


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> Any:
    return client.get("/v1/openapi.json").json()


@pytest.mark.nightly
def test_schemathesis_finds_no_fault_and_no_untruth(client: httpx.Client, tmp_path: Path) -> None:
    options = ["--max-examples", str(EXAMPLES), "--generation-deterministic", "--no-color"]
    options += ["--phases", "examples,coverage,fuzzing", "--checks", "all", "--exclude-checks", UNCHECKED]
    options += ["--header", f"Authorization: Bearer {TOKEN}", "--output-truncate", "true"]
    done = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", f"{client.base_url}/v1/openapi.json", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Tested: 12" in done.stdout


def test_the_description_names_every_path(document: Any) -> None:
    paths = {path: set(operations) for path, operations in document["paths"].items()}
    service = {"/livez", "/readyz", "/metrics", "/v1/about", "/v1/strategies", "/v1/skills"}
    of_skill = {f"/v1/skills/{{name}}/{form}" for form in ("outline", "graph")}
    assert {path for path, operations in paths.items() if operations == {"get"}} == service | of_skill
    posted = {path for path, operations in paths.items() if operations == {"post"}}
    assert posted == {"/v1/expand", "/v1/route", "/v1/ask", "/v1/page"}
    assert len(paths) == len(service | of_skill | posted)


def test_the_examples_of_the_description_work(client: httpx.Client, document: Any) -> None:
    page = document["components"]["schemas"]["PageRequest"]["properties"]
    example = {name: page[name]["examples"][0] for name in ("query", "max_tokens")}
    skill = page["skill"]["examples"][0]
    assert client.post("/v1/page", json={**example, "skill": skill}).is_success
    for nodes in document["components"]["schemas"]["ExpandRequest"]["properties"]["nodes"]["examples"]:
        assert client.post("/v1/expand", json={"skill": skill, "nodes": nodes}).is_success


def test_the_fields_are_the_keyword_arguments_of_the_library() -> None:
    def arguments(method: Any) -> set[str]:
        return set(method.__annotations__) - {"return"}

    # a folder of the server is of no use to its clients; the default hint names the field `force`
    page = (arguments(PageOptions) - {"folder", "hint"}) | {"skill", "query"}
    assert set(PageRequest.model_fields) == page | {"explain"}
    assert set(ExpandRequest.model_fields) == arguments(SkillPager.expand)


def test_the_choices_are_those_of_the_library() -> None:
    assert get_args(ScopeName) == SCOPES
    assert get_args(StyleName) == tuple(Style)


@pytest.mark.parametrize(
    ("form", "path", "body"),
    [
        (json_type(Skills), "/v1/skills", None),
        (StrategiesJson, "/v1/strategies", None),
        (ProblemJson, "/v1/nothing", None),
        (ExplainedPageJson, "/v1/page", {**ASKED, "explain": True}),
    ],
)
def test_answers_hold_what_their_types_say_and_nothing_else(
    client: httpx.Client, form: Any, path: str, body: dict[str, Any] | None
) -> None:
    answer = client.request("POST" if body else "GET", path, json=body)
    # a TypedDict takes the configuration of what it stands in, here of a list
    adapter = TypeAdapter(list[form], config=ConfigDict(extra="forbid", strict=True))
    told = adapter.validate_json(b"[" + answer.content + b"]")[0]
    assert told == answer.json()
    assert body is None or set(told) == set(form.__annotations__)

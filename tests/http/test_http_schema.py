"""The OpenAPI description is true: what it allows is answered as it says, and what it does not is refused."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from pydantic import BaseModel

from http_running import ASKED, running
from skillpager import SkillPager
from skillpager.http import answers as http_answers
from skillpager.http.options import ServerOptions
from skillpager.http.requests import ExpandRequest, PageQuery, PageRequest, Scope, StyleName
from skillpager.parsing.skill import SCOPES
from skillpager.types import EdgeKind, NodeType, PageOptions, Style

TOKEN = "correct-horse"
EXAMPLES = 10
# what fits the description but not the rest of the request, such as a limit that a strategy does not
# know, is refused with 422: the one check that would have it accepted
UNCHECKED = "positive_data_acceptance"


@pytest.fixture(scope="module")
def client(pager: SkillPager) -> Iterator[httpx.Client]:
    options = ServerOptions(port=0, token=TOKEN, allow_uploads=True, max_tokens=100_000)
    with running(pager, options) as service:
        service.client.headers["Authorization"] = f"Bearer {TOKEN}"
        yield service.client


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> Any:
    return client.get("/v1/openapi.json").json()


@pytest.mark.timeout(300)  # about 15 seconds alone; it asks 500 times beside whatever else the machine does
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
    assert {path: set(operations) for path, operations in document["paths"].items()} == {
        "/healthz": {"get"},
        "/metrics": {"get"},
        "/v1/about": {"get"},
        "/v1/skills": {"get"},
        "/v1/skills/{name}/outline": {"get"},
        "/v1/skills/{name}/graph": {"get"},
        "/v1/skills/{name}/source": {"get"},
        "/v1/skills/{name}/nodes": {"get"},
        "/v1/page": {"get", "post"},
        "/v1/expand": {"post"},
        "/v1/strategies": {"get"},
    }


def test_the_examples_of_the_description_work(client: httpx.Client, document: Any) -> None:
    page = document["components"]["schemas"]["PageRequest"]["properties"]
    example = {name: page[name]["examples"][0] for name in ("query", "max_tokens")}
    skill = page["skill"]["anyOf"][0]["examples"][0]
    assert client.post("/v1/page", json={**example, "skill": skill}).is_success
    for nodes in document["components"]["schemas"]["ExpandRequest"]["properties"]["nodes"]["examples"]:
        assert client.post("/v1/expand", json={"skill": skill, "nodes": nodes}).is_success


def test_the_fields_are_the_keyword_arguments_of_the_library() -> None:
    def arguments(method: Any) -> set[str]:
        return set(method.__annotations__) - {"return"}

    page = arguments(PageOptions) | {"skill", "query"}
    assert set(PageRequest.model_fields) == page | {"markdown", "explain"}
    assert set(PageQuery.model_fields) == page | {"explain"}
    assert set(ExpandRequest.model_fields) == arguments(SkillPager.expand) | {"markdown"}


def test_the_choices_are_those_of_the_library() -> None:
    assert get_args(Scope) == SCOPES
    assert get_args(StyleName) == tuple(Style)
    assert get_args(http_answers.NodeTypeName) == tuple(NodeType)
    assert get_args(http_answers.EdgeAnswer.model_fields["kind"].annotation) == tuple(EdgeKind)


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (http_answers.SkillsAnswer, "/v1/skills"),
        (http_answers.OutlineAnswer, "/v1/skills/kubernetes-debugging/outline"),
        (http_answers.GraphAnswer, "/v1/skills/kubernetes-debugging/graph"),
        (http_answers.NodesAnswer, "/v1/skills/kubernetes-debugging/nodes"),
        (http_answers.SourceAnswer, "/v1/skills/kubernetes-debugging/source"),
        (http_answers.StrategiesAnswer, "/v1/strategies"),
        (http_answers.AboutAnswer, "/v1/about"),
        (http_answers.HealthAnswer, "/healthz"),
        (http_answers.ProblemAnswer, "/v1/nothing"),
    ],
)
def test_answers_hold_what_their_models_say_and_nothing_else(
    client: httpx.Client, model: type[BaseModel], path: str
) -> None:
    answer = client.get(path)
    told = model.model_validate_json(answer.content)
    assert set(answer.json()) == told.model_fields_set


def test_pages_hold_what_their_model_says_and_nothing_else(client: httpx.Client) -> None:
    answer = client.post("/v1/page", json={**ASKED, "explain": True})
    told = http_answers.PageAnswer.model_validate_json(answer.content)
    assert told.model_fields_set == set(http_answers.PageAnswer.model_fields)
    assert told.model_dump(mode="json") == answer.json()

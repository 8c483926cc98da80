"""The server that plays a model's API, and with it a page end to end in the agents that are installed here."""

import json
import re
import runpy
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cli_process import ROOT

BENCHMARKS = ROOT / "benchmarks"
TOOLS = {
    "/v1/messages": [{"name": "mcp__skillpager__load_skill", "input_schema": {}}],
    "/v1/responses": [{"type": "namespace", "name": "mcp__skillpager", "tools": [{"name": "load_skill"}]}],
}


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def events(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the events of a stream: name and data."""
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        assert name.startswith("event: ")
        assert data.startswith("data: ")
        yield name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def say(path: str, text: str, **more: object) -> dict[str, object]:
    """Return a request with one message."""
    messages = [{"role": "user", "content": text}]
    return {("input" if "responses" in path else "messages"): messages, "stream": True, **more}


@pytest.mark.parametrize("path", TOOLS)
def test_turns_of_a_script_are_streamed_in_the_form_of_the_interface(path: str) -> None:
    from scripted_model import Call, Request, Say, ScriptedModel, Turn

    def script(requests: list[Request]) -> Turn:
        return Call("load_skill", {"name": "a"}, 5_000) if len(requests) == 1 else Say("done")

    model = ScriptedModel(script, "load_skill")
    with model.serve() as url:
        first, second = (
            dict(events(httpx.post(url + path, json=say(path, "task", tools=TOOLS[path])).text))
            for _ in range(2)
        )
    assert [request.conversation for request in model.requests] == ["task", "task"]
    if "responses" in path:
        call = first["response.output_item.done"]["item"]
        assert (call["type"], call["namespace"], call["name"]) == (
            *("function_call", "mcp__skillpager", "load_skill"),
        )
        assert json.loads(call["arguments"]) == {"name": "a"}
        assert first["response.completed"]["response"]["usage"]["input_tokens"] == 5_000
        assert second["response.output_item.done"]["item"]["content"][0]["text"] == "done"
    else:
        call = first["content_block_start"]["content_block"]
        assert (call["type"], call["name"]) == ("tool_use", "mcp__skillpager__load_skill")
        assert json.loads(first["content_block_delta"]["delta"]["partial_json"]) == {"name": "a"}
        assert first["message_start"]["message"]["usage"]["input_tokens"] == 5_000
        assert first["message_delta"]["delta"]["stop_reason"] == "tool_use"
        assert second["content_block_delta"]["delta"]["text"] == "done"
        assert second["message_delta"]["delta"]["stop_reason"] == "end_turn"


PAGE = (
    "[Page of a skill.]\n[… L13-102: How it works]\npg_restore --dbname=scratch --table=orders --no-owner\n"
)


def test_session_is_judged_by_what_the_agent_sent() -> None:
    from host_sessions import QUERY, SKILL, follow_script, judge, omitted_lines
    from scripted_model import Call, Request, Say

    lines = "\n".join((SKILL / "SKILL.md").read_text(encoding="utf-8").splitlines()[12:20])
    told = [QUERY, QUERY + PAGE, "summary" + lines, "summary[… L106-122, sent earlier]", "summary" + PAGE]
    requests = [Request("/v1/messages", say("/v1/messages", text)) for text in told]
    assert omitted_lines(requests[1]) == "13-20"
    turns = [follow_script(requests[: number + 1]) for number in range(5)]
    assert [type(turn) for turn in turns] == [Call, Call, Call, Call, Say]
    assert set(judge(requests, requests[:1]).values()) == {True}
    assert judge(requests, [])["the conversation is compacted"] is False
    assert set(judge(requests[:1], []).values()) == {False}
    assert judge([*requests[:2], requests[0]], [])["omitted lines are read, word for word"] is False


def test_tables_of_the_documentation_are_those_of_the_script() -> None:
    hosts = runpy.run_path(str(BENCHMARKS / "hosts.py"), run_name="hosts")
    text = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    written = text.partition("<!-- hosts -->\n")[2].partition("<!-- /hosts -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in written.splitlines()]
    empty = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in hosts["hosts_table"]([]).splitlines()
    ]
    assert [row[0] for row in rows] == [row[0] for row in empty]
    versions = {program.agent: program.version for program in hosts["PROGRAMS"]}
    titles = {host.title: host.name for host in hosts["HOSTS"]}
    for title, version, asked, *_ in rows[2:]:
        if asked != "not run":
            assert re.match(re.escape(version), versions[titles[title]]), title

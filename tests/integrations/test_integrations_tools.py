"""pydantic-ai and OpenAI Agents: real agents with scripted models call the tools."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.items import ToolCallOutputItem
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from adapter_cases import NAME, NAMES, QUERY, SKILL, waiting_pager
from conftest import SAMPLES
from golden import QUERIES
from skillpager import SkillPager
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.integrations import openai_agents, pydantic_ai
from skillpager.integrations.tools import SkillTools
from skillpager.types import Page

Call = tuple[str, dict[str, str]]

TOOLS = ["list_skills", "load_skill", "read_skill_nodes"]
FEW = ["git-bisect", NAME, "zhongwen-boke-fabu"]
UNKNOWN = "There is no skill named 'postgres' among 10: did you mean 'postgres-backup'?"


async def run_pydantic_ai(pager: SkillPager, calls: list[Call], **options: Any) -> list[str]:
    """Return what the tools answered when a pydantic-ai agent made the calls."""
    parts = [ToolCallPart(name, arguments) for name, arguments in calls]

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert [tool.name for tool in info.function_tools] == TOOLS
        done = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[parts[done] if done < len(parts) else TextPart("done")])

    agent = Agent(FunctionModel(answer), tools=pydantic_ai.skill_tools([SAMPLES], pager=pager, **options))
    result = await agent.run("go")
    answers = [part for message in result.all_messages() for part in message.parts]
    return [str(part.content) for part in answers if isinstance(part, ToolReturnPart | RetryPromptPart)]


class Script(agents.Model):
    """A model of the OpenAI Agents SDK that makes the given calls."""

    def __init__(self, calls: list[Call]) -> None:
        self.calls = calls

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> agents.ModelResponse:
        items = [] if isinstance(input, str) else input
        done = sum(item.get("type") == "function_call_output" for item in items)
        return agents.ModelResponse(output=[self.turn(done)], usage=agents.Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError

    def turn(self, done: int) -> ResponseFunctionToolCall | ResponseOutputMessage:
        if done < len(self.calls):
            name, arguments = self.calls[done]
            return ResponseFunctionToolCall(
                name=name, arguments=json.dumps(arguments), call_id=f"call-{done}", type="function_call"
            )
        text = ResponseOutputText(text="done", annotations=[], type="output_text")
        return ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )


async def run_openai_agents(pager: SkillPager, calls: list[Call], **options: Any) -> list[str]:
    """Return what the tools answered when an agent of the OpenAI Agents SDK made the calls."""
    tools = openai_agents.skill_tools([SAMPLES], pager=pager, **options)
    assert [tool.name for tool in tools] == TOOLS
    agent = agents.Agent(name="operator", tools=list(tools), model=Script(calls))
    result = await agents.Runner.run(agent, "go", run_config=agents.RunConfig(tracing_disabled=True))
    return [str(item.output) for item in result.new_items if isinstance(item, ToolCallOutputItem)]


RUNS = pytest.mark.parametrize("run", [run_pydantic_ai, run_openai_agents])


def page(pager: SkillPager, name: str, **options: Any) -> Page:
    """Return the page that the tools must answer with."""
    return pager.page(SAMPLES / name, QUERIES[name], show=f"read_skill_nodes {name}", **options)


@RUNS
def test_the_page_is_the_librarys_and_names_the_tool_that_reads_on(run: Any, pager: SkillPager) -> None:
    calls = [("load_skill", {"name": name, "query": QUERIES[name]}) for name in FEW]
    pages = asyncio.run(run(pager, calls, max_nodes=12))
    assert pages == [page(pager, name, max_nodes=12).text for name in FEW]
    assert any("read: read_skill_nodes postgres-backup L" in text for text in pages)


@RUNS
def test_skills_are_listed_and_omitted_nodes_read(run: Any, pager: SkillPager) -> None:
    gap = page(pager, NAME).omitted[0]
    address = f"{gap.nodes[0]}-{gap.nodes[-1]}"
    listed, read = asyncio.run(
        run(pager, [("list_skills", {}), ("read_skill_nodes", {"name": NAME, "nodes": address})])
    )
    assert [line.partition(": ")[0] for line in listed.splitlines()] == NAMES
    assert read == pager.expand(SKILL, address).text


@RUNS
def test_the_model_is_told_what_it_got_wrong_and_can_go_on(run: Any, pager: SkillPager) -> None:
    answers = asyncio.run(
        run(
            pager,
            [
                ("load_skill", {"name": "postgres", "query": QUERY}),
                ("read_skill_nodes", {"name": NAME, "nodes": "n900"}),
                ("load_skill", {"name": NAME, "query": QUERY}),
                ("read_skill_nodes", {"name": NAME, "nodes": " "}),
            ],
        )
    )
    assert answers[0] == UNKNOWN
    assert "There is no node 'n900'" in answers[1]
    assert answers[2] == page(pager, NAME).text
    assert "No node is named" in answers[3]


@RUNS
@pytest.mark.parametrize("name", ["../postgres-backup", str(SKILL), "# Markdown\n\ntext"])
def test_a_model_can_name_skills_and_nothing_else(run: Any, name: str, pager: SkillPager) -> None:
    [answer] = asyncio.run(run(pager, [("load_skill", {"name": name, "query": QUERY})]))
    assert answer.startswith("There is no skill named")


@RUNS
def test_an_empty_query_pages_for_the_name(run: Any, pager: SkillPager) -> None:
    [answer] = asyncio.run(run(pager, [("load_skill", {"name": NAME, "query": " "})]))
    assert answer == pager.page(SKILL, NAME, show=f"read_skill_nodes {NAME}").text


@RUNS
def test_what_a_model_cannot_mend_ends_the_run(run: Any, pager: SkillPager) -> None:
    with pytest.raises((SkillPagerError, agents.AgentsException)) as raised:
        asyncio.run(run(pager, [("load_skill", {"name": NAME, "query": QUERY})], max_tokens=-1))
    chain = [raised.value, raised.value.__cause__]
    assert any(isinstance(error, SettingsError) and "max_tokens is -1" in str(error) for error in chain)


@RUNS
def test_tools_leave_the_event_loop_free(run: Any, tmp_path: Path) -> None:
    pager, encoder = waiting_pager(tmp_path)

    async def all_of_it() -> None:
        running = asyncio.create_task(run(pager, [("load_skill", {"name": NAME, "query": QUERY})]))
        await asyncio.sleep(0.1)
        encoder.free.set()
        [text] = await running
        assert "pg_restore" in text

    asyncio.run(all_of_it())


def test_schemas_describe_every_argument_and_allow_no_other(pager: SkillPager) -> None:
    theirs = [tool.function_schema.json_schema for tool in pydantic_ai.skill_tools([SAMPLES], pager=pager)]
    ours = [tool.params_json_schema for tool in openai_agents.skill_tools([SAMPLES], pager=pager)]
    for schema in (*theirs, *ours):
        assert schema["additionalProperties"] is False
        assert all(argument["description"] for argument in schema["properties"].values())
    names = [sorted(schema["properties"]) for schema in ours]
    assert (
        names
        == [sorted(schema["properties"]) for schema in theirs]
        == [[], ["force", "name", "query"], ["name", "nodes"]]
    )


def test_a_description_is_one_line_of_the_list(pager: SkillPager, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text('---\nname: a\ndescription: "x\\nb: y\\e[2J"\n---\nText.\n')
    assert SkillTools([tmp_path], pager, {}).list_skills() == "a: x b: y\ufffd[2J"

"""Skills that only the user may start: the server offers them to the user, and not to the model."""

from pathlib import Path

import pytest

from mcp import Client, MCPError
from mcp_clients import answer, error_of, form_of, server_of, text_of, with_client
from skillpager import SkillPager
from skillpager.library import Library
from skillpager.mcp.server import instructions_of
from test_mcp_offers import skills_in

NAME = "deploy"
TEXT = """---
name: deploy
description: Deploy the service to production.
disable-model-invocation: true
---

# Deploy

Run `make deploy` after the tests have passed.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three skills, and one that only the user may start."""
    found = skills_in(tmp_path, 3)
    (found / NAME).mkdir()
    (found / NAME / "SKILL.md").write_text(TEXT, encoding="utf-8")
    return found


def test_nothing_that_a_model_reads_names_them(hashing_pager: SkillPager, folder: Path) -> None:
    server = server_of(hashing_pager, folder)

    async def ask(client: Client) -> None:
        assert client.instructions is not None
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        offered = [
            client.instructions,
            str(tools["load_skill"].input_schema),
            text_of(await client.call_tool("list_skills", {})),
            text_of(await client.call_tool("search_skills", {"query": "What it is for; deploy the service"})),
            str((await client.list_resources()).resources),
        ]
        assert [NAME in text for text in offered] == [False] * 5
        assert ["skill-0000" in text for text in offered] == [True] * 5

    with_client(server, ask)
    assert NAME not in instructions_of(Library(hashing_pager, [folder]))


def test_a_name_given_all_the_same_is_refused_with_the_reason(
    hashing_pager: SkillPager, folder: Path
) -> None:
    server = server_of(hashing_pager, folder)
    said = error_of(answer(server, "load_skill", name=NAME, query="deploy the service"))
    assert said == (
        "The skill 'deploy' is for the user to start: its front matter says `disable-model-invocation: true`. "
        "Ask the user to start it, or do the task without it."
    )
    assert NAME not in error_of(answer(server, "load_skill", name="deplo"))

    async def read(client: Client) -> None:
        with pytest.raises(MCPError, match="for the user to start"):
            await client.read_resource(f"skill://{NAME}")

    with_client(server, read)


def test_the_user_starts_them_and_the_model_reads_on(hashing_pager: SkillPager, folder: Path) -> None:
    async def ask(client: Client) -> None:
        prompts = (await client.list_prompts()).prompts
        assert NAME in [prompt.name for prompt in prompts]
        started = await client.get_prompt(NAME)
        assert "make deploy" in str(started.messages[0].content)
        page = await client.call_tool("load_skill", {"name": NAME, "query": "deploy the service"})
        assert "make deploy" in text_of(page)
        read = await client.call_tool("read_skill_nodes", {"name": NAME, "lines": "9-9"})
        assert form_of(read)["skill"] == NAME

    with_client(server_of(hashing_pager, folder), ask)

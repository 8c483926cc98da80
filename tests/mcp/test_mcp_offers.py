"""What the server says of itself and its skills: instructions, prompts, resources, files."""

from pathlib import Path

import pytest
from mcp.types import TextContent, TextResourceContents

from conftest import SAMPLES
from mcp import Client, MCPError
from mcp_clients import answer, error_of, server_of, text_of, with_client
from skillpager import SkillPager
from skillpager.display_text import chance_words
from skillpager.library import Library
from skillpager.mcp.server import FIND, MAX_BYTES, USE, SkillServer, instructions_of, make_server

NAMES = sorted(path.name for path in SAMPLES.iterdir())
NAME = "deploy"
TEXT = """---
name: deploy
description: Deploy the service to production.
disable-model-invocation: true
---

# Deploy

Run `make deploy` after the tests have passed.
"""


@pytest.fixture(scope="module")
def server(pager: SkillPager) -> SkillServer:
    """A server of the sample skills."""
    return server_of(pager, SAMPLES)


def skills_in(folder: Path, count: int, description: str = "What it is for.") -> Path:
    for number in range(count):
        name = f"skill-{number:04}"
        (folder / name).mkdir()
        head = f"---\nname: {name}\ndescription: {description}\n---\n"
        (folder / name / "SKILL.md").write_text(f"{head}\n# Title\n\nStep {number}.\n", encoding="utf-8")
    return folder


# ---- instructions and tools


@pytest.mark.parametrize("count", [0, 12, 40, 600])
def test_instructions_name_skills_as_far_as_there_is_room(
    tmp_path: Path, hashing_pager: SkillPager, count: int
) -> None:
    text = instructions_of(Library(hashing_pager, [skills_in(tmp_path, count, "What it is for. " * 9)]))
    assert len(text.encode()) <= MAX_BYTES
    assert text.startswith(USE)
    assert (FIND in text) == (count > 12)
    assert text.count("skill-0") == (0 if count == 600 else count)
    assert text.endswith(" There are 600 skills.") == (count == 600)
    assert ("What it is for." in text) == (0 < count <= 12)


def test_many_skills_are_counted_and_not_read_at_the_start(tmp_path: Path, hashing_pager: SkillPager) -> None:
    library = Library(hashing_pager, [skills_in(tmp_path, 300, "What it is for.")])
    assert str(make_server(library).instructions).endswith(f"{FIND} There are about 300 skills.")
    assert library._listing is None


def test_tools_are_listed_while_skills_are_still_searched(pager: SkillPager) -> None:
    library = Library(pager, [SAMPLES])

    async def ask(client: Client) -> None:
        assert client.instructions == f"{USE} {FIND}"
        assert len((await client.list_tools()).tools) == 5

    with library._searching:  # as a search that takes long
        with_client(make_server(library), ask)


# ---- prompts, resources


def test_each_skill_is_a_prompt_and_a_resource(server: SkillServer) -> None:
    query = "restore one table from a dump"

    async def ask(client: Client) -> None:
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == [*NAMES, "enrich_skill"]
        got = await client.get_prompt("postgres-backup", {"task": query})
        (message,) = got.messages
        assert isinstance(message.content, TextContent)
        page = await client.call_tool("load_skill", {"name": "postgres-backup", "query": query})
        assert message.content.text == text_of(page)

        resources = (await client.list_resources()).resources
        assert [resource.name for resource in resources] == NAMES
        read = await client.read_resource(resources[2].uri)
        (contents,) = read.contents
        assert isinstance(contents, TextResourceContents)
        assert contents.text.startswith("# Git bisect")

        for wrong in (client.get_prompt("nix"), client.read_resource("skill://nix")):
            with pytest.raises(MCPError) as told:
                await wrong
            assert "There is no skill named 'nix'" in str(told.value)
        with pytest.raises(MCPError) as told:
            await client.read_resource("file:///etc/passwd")
        assert "is no skill" in str(told.value)

    with_client(server, ask)


# ---- files, estimates


def test_files_of_a_skill_are_read_in_parts_and_nothing_else(
    tmp_path: Path, hashing_pager: SkillPager
) -> None:
    folder = skills_in(tmp_path, 1) / "skill-0000"
    rows = [f"echo step {number} of the script\n" for number in range(4_000)]
    (folder / "run.sh").write_text("".join(rows))
    server = server_of(hashing_pager, tmp_path, ceiling=1_000)
    asked: dict[str, object] = {"name": "skill-0000", "file": "run.sh"}
    read: list[str] = []
    for _ in range(3):
        text, _, call = text_of(answer(server, "read_skill_nodes", **asked)).partition("\n[… cut here")
        read += text.splitlines(keepends=True)
        assert 'read_skill_nodes(name="skill-0000", file="run.sh", lines="' in call
        asked["lines"] = call.rpartition('lines="')[2].partition('"')[0]
    assert read == rows[: len(read)]
    last = answer(server, "read_skill_nodes", name="skill-0000", file="run.sh", lines="3999-9000")
    assert text_of(last) == "".join(rows[3998:])
    for wrong, told in (
        ({"file": "../skill-0000/run.sh"}, "hidden or leads upwards"),
        ({"file": "run.py"}, "there are run.sh"),
        ({"file": "run.sh", "ids": "n1"}, "Give exactly one of"),
        ({"file": "run.sh", "lines": "5000"}, "which has 4000"),
        ({"file": "run.sh", "lines": "x"}, "which has 4000"),
    ):
        assert told in error_of(answer(server, "read_skill_nodes", name="skill-0000", **wrong))


def test_the_estimate_is_told_in_the_text_where_there_is_room(server: SkillServer, pager: SkillPager) -> None:
    asked = {"name": "postgres-backup", "query": "restore one table from a dump"}
    text = text_of(answer(server, "load_skill", **asked))
    chance = pager.page(SAMPLES / asked["name"], asked["query"]).sufficiency
    assert chance is not None
    last = f"[Page holds all that is needed with an estimated chance of {chance_words(chance)}]"
    assert text.splitlines()[-1] == last
    budget = pager.token_counter.count(text) - 1
    tight = text_of(answer(server, "load_skill", **asked, budget_tokens=budget))
    assert "chance of" not in tight
    assert text.startswith(tight)


# ---- skills that only the user may start


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
        offered = [
            client.instructions,
            text_of(await client.call_tool("list_skills", {})),
            text_of(await client.call_tool("search_skills", {"query": "What it is for; deploy the service"})),
            str((await client.list_resources()).resources),
        ]
        assert [NAME in text for text in offered] == [False] * 4
        assert ["skill-0000" in text for text in offered] == [True] * 4

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
        assert "make deploy" in text_of(read)

    with_client(server_of(hashing_pager, folder), ask)

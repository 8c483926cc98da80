"""What the server says of itself and its skills: instructions, prompts, resources, files, ceilings."""

from pathlib import Path

import pytest
from mcp.types import CompleteResult, ResourceTemplateReference, TextContent, TextResourceContents

from conftest import SAMPLES
from mcp import Client, MCPError
from mcp_clients import answer, error_of, form_of, server_of, text_of, with_client
from skillpager import SkillPager
from skillpager.library import Library
from skillpager.mcp.options import MOST_CHARS, ToolOptions
from skillpager.mcp.server import FIND, MAX_BYTES, USE, SkillServer, instructions_of, make_server

NAMES = sorted(path.name for path in SAMPLES.iterdir())


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
    named = text.count("skill-0")
    assert named == count or f", {count - named} more." in text
    assert (FIND in text) == (count > 12)
    assert named >= min(count, 100)
    assert ("What it is for." in text) == (0 < count <= 12)


def test_tools_are_listed_while_skills_are_still_searched(pager: SkillPager) -> None:
    library = Library(pager, [SAMPLES])

    async def ask(client: Client) -> None:
        assert client.instructions == f"{USE} {FIND}"
        load = next(tool for tool in (await client.list_tools()).tools if tool.name == "load_skill")
        assert "enum" not in load.input_schema["properties"]["name"]

    with library._searching:  # as a search that takes long
        with_client(make_server(library), ask)


def test_names_are_choices_as_long_as_they_are_few(tmp_path: Path, hashing_pager: SkillPager) -> None:
    async def ask(client: Client) -> None:
        load = next(tool for tool in (await client.list_tools()).tools if tool.name == "load_skill")
        assert load.input_schema["properties"]["name"] == {
            "type": "string",
            "description": "A name that list_skills or search_skills shows. Without it: those the query needs.",
        }

    with_client(server_of(hashing_pager, skills_in(tmp_path, 65)), ask)


# ---- prompts, resources, completions


def test_each_skill_is_a_prompt_and_a_resource(server: SkillServer) -> None:
    query = "restore one table from a dump"

    async def ask(client: Client) -> None:
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == NAMES
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


def test_names_of_the_template_are_completed(server: SkillServer) -> None:
    async def ask(client: Client) -> None:
        (template,) = (await client.list_resource_templates()).resource_templates
        reference = ResourceTemplateReference(uri=template.uri_template)
        completed = await client.complete(reference, {"name": "name", "value": "k"})
        assert isinstance(completed, CompleteResult)
        assert completed.completion.values == [name for name in NAMES if name.startswith("k")]

    with_client(server, ask)


# ---- files, estimates, numbers as text


def test_files_of_a_skill_are_read_in_parts_and_nothing_else(
    tmp_path: Path, hashing_pager: SkillPager
) -> None:
    folder = skills_in(tmp_path, 1) / "skill-0000"
    rows = [f"echo step {number} of the script\n" for number in range(4_000)]
    (folder / "run.sh").write_text("".join(rows))
    server = server_of(hashing_pager, tmp_path, ceiling=1_000, structured=False)
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


def test_a_reply_with_a_file_has_the_form_of_the_schema(tmp_path: Path, hashing_pager: SkillPager) -> None:
    folder = skills_in(tmp_path, 1) / "skill-0000"
    (folder / "run.sh").write_text("echo 1\n")
    result = answer(server_of(hashing_pager, tmp_path), "read_skill_nodes", name="skill-0000", file="run.sh")
    form = form_of(result)
    assert (form["kind"], form["complete"], form["nodes"], form["omitted"]) == ("file", True, [], [])
    assert form["text"] == text_of(result) == "echo 1\n"
    assert f"[Skill folder: {folder}]\n" in text_of(
        answer(server_of(hashing_pager, tmp_path), "load_skill", name="skill-0000")
    )


def test_the_estimate_is_told_in_the_text_where_there_is_room(server: SkillServer) -> None:
    asked = {"name": "postgres-backup", "query": "restore one table from a dump"}
    result = answer(server, "load_skill", **asked)
    chance = round(100 * form_of(result)["sufficiency"])
    last = text_of(result).splitlines()[-1]
    assert last in (
        f"[Page holds all that is needed with an estimated chance of {chance} %]",
        "[Page holds all that is needed with an estimated chance of over 99 %]",
    )
    tight = text_of(answer(server, "load_skill", **asked, budget_tokens=form_of(result)["tokens"] - 1))
    assert "chance of" not in tight
    assert text_of(result).startswith(tight)


# ---- ceilings


@pytest.mark.parametrize(
    ("client", "version", "tokens", "chars"),
    [
        ("", "", 12_000, MOST_CHARS),
        ("codex-mcp-client", "0.169.0", 12_000, MOST_CHARS),
        ("claude-code", "2.1.197", 20_000, None),
        ("claude-code", "2.1.91", 20_000, None),
        ("claude-code", "3.0", 20_000, None),
        ("claude-code", "2.1.90", 12_000, MOST_CHARS),
        ("claude-code", "odd", 12_000, MOST_CHARS),
    ],
)
def test_the_ceiling_follows_the_host(client: str, version: str, tokens: int, chars: int | None) -> None:
    ceiling = ToolOptions().ceiling_for(client, version)
    assert (ceiling.tokens, ceiling.chars) == (tokens, chars)
    assert ToolOptions(ceiling=5_000).ceiling_for(client, version).tokens == 5_000
    assert ToolOptions(ceiling=5_000).meta == {"anthropic/maxResultSizeChars": 40_000}


def test_no_reply_has_more_characters_than_an_unknown_host_shows(
    tmp_path: Path, hashing_pager: SkillPager
) -> None:
    folder = skills_in(tmp_path, 1) / "skill-0000"
    # words that are one token each, so that characters run out first
    (folder / "words.txt").write_text("international understanding administration\n" * 3_000)
    text = text_of(
        answer(server_of(hashing_pager, tmp_path), "read_skill_nodes", name="skill-0000", file="words.txt")
    )
    assert MOST_CHARS / 4 < len(text) <= MOST_CHARS

"""The tools of the MCP server, through the SDK's in-memory client."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import SAMPLES
from golden import FOLDER, QUERIES, check
from mcp import Client
from mcp_clients import ERAS, answer, answers, error_of, server_of, text_of, with_client
from skillpager import SkillPager
from skillpager.mcp.server import SkillServer
from skillpager.mcp.tools import TOOLS
from test_mcp_offers import server

__all__ = ["server"]
QUERY = QUERIES["postgres-backup"]


# ---- what is offered


def test_five_tools_with_exact_schemas_and_short_descriptions(server: SkillServer) -> None:
    async def ask(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(tools) == [
            "list_skills",
            "search_skills",
            "load_skill",
            "read_skill_nodes",
            "get_skill_outline",
        ]
        for tool in tools.values():
            assert tool.input_schema["additionalProperties"] is False
            assert tool.output_schema is None
            assert tool.description is not None
            assert len(tool.description) < 100
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            assert tool.meta == {"anthropic/maxResultSizeChars": 96_000}
        load = tools["load_skill"].input_schema
        assert load["required"] == []
        assert {name: form["type"] for name, form in load["properties"].items()} == {
            "name": "string",
            "query": "string",
            "budget_tokens": "integer",
            "fill": "boolean",
            "mode": "string",
            "resend": "boolean",
            "force": "boolean",
            "context": "string",
        }
        assert load["properties"]["mode"]["enum"] == ["auto", "page", "outline", "full"]
        read = tools["read_skill_nodes"].input_schema
        assert list(read["properties"]) == ["name", "ids", "section", "lines", "file"]
        assert {"title", "anyOf"}.isdisjoint(read["properties"]["name"].keys() | load["properties"].keys())

    for era in ERAS:
        with_client(server, ask, era=era)


# ---- what they answer


def test_skills_are_listed_with_their_descriptions(server: SkillServer) -> None:
    text = text_of(answer(server, "list_skills"))
    assert re.findall(r"^- ([\w-]+): ", text, re.MULTILINE) == sorted(path.name for path in SAMPLES.iterdir())
    assert "- git-bisect: Find the commit that introduced a bug" in text
    assert str(SAMPLES) not in text


@pytest.mark.parametrize("name", QUERIES)
def test_pages_are_the_golden_ones_but_for_how_to_read_on(pager: SkillPager, name: str) -> None:
    limited = SkillPager(settings=replace(pager.settings, max_nodes=12))  # as the golden pages are
    text = text_of(answer(server_of(limited, SAMPLES), "load_skill", name=name, query=QUERIES[name]))
    call = re.escape(f'read_skill_nodes(name="{name}", ids="') + r'(\S+)"\)'
    as_golden = re.sub(call, rf"skillpager show examples/skills/{name} \1", text)
    as_golden = as_golden.replace(f" in {SAMPLES / name}. ", ". ")
    as_golden = re.sub(
        r"\n\[Page holds all that is needed with an estimated chance of [^\]]+\]\n\Z", "", as_golden
    )
    check(f"{name}.page.md", as_golden)
    golden = (FOLDER / f"{name}.page.md").read_text(encoding="utf-8")
    assert bool(re.search(call, text)) == ("skillpager show" in golden)


def test_a_budget_bounds_the_page(server: SkillServer, pager: SkillPager) -> None:
    for budget in (150, 400, 900):
        text = text_of(
            answer(server, "load_skill", name="postgres-backup", query=QUERY, budget_tokens=budget)
        )
        assert pager.token_counter.count(text) <= budget
    asked = {"name": "git-bisect", "query": "skip a commit"}
    page = answer(server, "load_skill", **asked, budget_tokens=5000)
    assert text_of(page) == text_of(answer(server, "load_skill", **asked))
    for limits in ({"budget_tokens": 5000}, {}):
        filled = text_of(answer(server, "load_skill", **asked, **limits, fill=True))
        assert filled == pager.whole(SAMPLES / "git-bisect").text


def test_a_budget_for_which_nothing_fits_is_told_with_one_for_which_something_does(
    server: SkillServer,
) -> None:
    asked = {"name": "git-bisect", "query": "skip a commit"}
    said = error_of(answer(server, "load_skill", **asked, budget_tokens=5))
    told = re.fullmatch(
        r"Nothing fits: the smallest page with any content has (\d+) tokens\. Raise budget_tokens to \1\.",
        said,
    )
    assert told
    least = int(told[1])
    assert error_of(answer(server, "load_skill", **asked, budget_tokens=least - 1)) == said
    assert text_of(answer(server, "load_skill", **asked, budget_tokens=least))


def test_without_a_query_the_skill_comes_whole_if_it_fits_else_its_outline(
    server: SkillServer, pager: SkillPager
) -> None:
    whole = answer(server, "load_skill", name="git-bisect")
    assert text_of(whole) == pager.whole(SAMPLES / "git-bisect").text
    outline = answer(server, "load_skill", name="postgres-backup", budget_tokens=2000)
    assert text_of(outline) == text_of(answer(server, "get_skill_outline", name="postgres-backup"))
    assert pager.token_counter.count(text_of(outline)) <= 2000


def test_modes_are_what_they_say(server: SkillServer, pager: SkillPager) -> None:
    call = {"name": "postgres-backup", "query": QUERY}
    full = text_of(answer(server, "load_skill", **call, mode="full"))
    assert full == pager.whole(SAMPLES / "postgres-backup").text
    outline = text_of(answer(server, "load_skill", **call, mode="outline"))
    assert outline == text_of(answer(server, "get_skill_outline", name="postgres-backup"))
    page = text_of(answer(server, "load_skill", **call, mode="page"))
    assert page == text_of(answer(server, "load_skill", **call))
    assert "needs a query" in error_of(answer(server, "load_skill", name="postgres-backup", mode="page"))


def test_a_whole_skill_beyond_the_budget_ends_with_a_mark(server: SkillServer, pager: SkillPager) -> None:
    result = answer(server, "load_skill", name="postgres-backup", mode="full", budget_tokens=600)
    assert pager.token_counter.count(text_of(result)) <= 600
    mark = re.fullmatch(r"\[… (L\d+-\d+): [^\[\]]+\]", text_of(result).splitlines()[-1])
    assert mark
    rest = text_of(answer(server, "read_skill_nodes", name="postgres-backup", ids=mark[1]))
    for node in pager.index(SAMPLES / "postgres-backup").nodes:
        assert (node.text.strip() in text_of(result)) or (node.text.strip() in rest)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({"ids": "n4-n6, n30"}, ["n4", "n5", "n6", "n30"]),
        ({"ids": "n12"}, ["n12"]),
        ({"lines": "30-33"}, ["n12"]),
        ({"lines": "L31"}, ["n12"]),
        ({"lines": "SKILL.md:30-33"}, ["n12"]),
        ({"section": "how it  WORKS"}, [f"n{number}" for number in range(1, 9)]),
        ({"section": "Restore one table > Options of pg_restore"}, ["n35", "n36", "n37"]),
    ],
)
def test_nodes_are_read_by_id_line_and_section(
    server: SkillServer, pager: SkillPager, where: dict[str, str], ids: list[str]
) -> None:
    result = answer(server, "read_skill_nodes", name="postgres-backup", **where)
    assert text_of(result) == pager.expand(SAMPLES / "postgres-backup", ids).text


def test_an_outline_is_the_map_and_names_calls_that_read_on(server: SkillServer, pager: SkillPager) -> None:
    for name in QUERIES:
        result = answer(server, "get_skill_outline", name=name)
        text, read = text_of(result), f'read_skill_nodes(name="{name}", ids='
        assert text == pager.outline(
            SAMPLES / name,
            show=f'{read}"{{ids}}")',
            list_nodes=f'get_skill_outline(name="{name}", nodes=true)',
            list_file=f'get_skill_outline(name="{name}", file="{{ids}}")',
            folder=True,
        )
        (address,) = re.findall(rf'`{re.escape(read)}"(\S+)"\)`', text)
        assert text_of(answer(server, "read_skill_nodes", name=name, ids=address))
        for file in re.findall(r'file="(\S+)"\)`', text):
            outline = text_of(answer(server, "get_skill_outline", name=name, file=file))
            assert outline.splitlines()[1] == file
            assert text_of(answer(server, "read_skill_nodes", name=name, ids=file)).count("\n") > 3


def test_an_outline_lists_every_node_on_request(server: SkillServer, pager: SkillPager) -> None:
    result = answer(server, "get_skill_outline", name="postgres-backup", nodes=True)
    assert text_of(result) == pager.outline(SAMPLES / "postgres-backup", nodes=True)


def test_a_skill_without_text_says_so(hashing_pager: SkillPager, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "SKILL.md").write_text("---\nname: empty\ndescription: d\n---\n", encoding="utf-8")
    server = server_of(hashing_pager, tmp_path)
    for arguments in ({}, {"query": "anything"}, {"mode": "full"}):
        text = text_of(answer(server, "load_skill", name="empty", **arguments))
        assert text == "This skill has no text besides its description.\n"
    assert text_of(answer(server, "get_skill_outline", name="empty")).startswith("empty: 0 nodes")


# ---- what is wrong


BISECT = {"name": "git-bisect"}


@pytest.mark.parametrize("tool", [tool.__name__ for tool in TOOLS])
@pytest.mark.parametrize("era", ERAS)
def test_unknown_arguments_are_refused(server: SkillServer, tool: str, era: str) -> None:
    message = error_of(answer(server, tool, era=era, **{"name": "git-bisect", "path": "/etc/passwd"}))
    assert "here is no argument 'path'" in message
    assert "The arguments are" in message


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("get_skill_outline", {}, "The argument 'name' is missing. The arguments are name, nodes, file."),
        ("load_skill", {"name": 3}, "Name is 3, but it must be a valid string"),
        ("load_skill", {**BISECT, "budget_tokens": "9k"}, "Budget_tokens is '9k', but it must be"),
        ("load_skill", {**BISECT, "mode": "all"}, "'auto', 'page', 'outline' or 'full'"),
        (
            "load_skill",
            {"name": "git-bisct"},
            "There is no skill named 'git-bisct' among 10: did you mean 'git-bisect'?",
        ),
        ("load_skill", {"name": str(SAMPLES / "git-bisect")}, "There is no skill named '/"),
        ("load_skill", {"name": "../skills/git-bisect"}, "There is no skill named '../"),
        ("load_skill", {**BISECT, "mode": "full", "budget_tokens": 5}, "Nothing fits: the smallest page"),
        ("load_skill", {**BISECT, "mode": "outline", "budget_tokens": 5}, "Nothing fits into"),
        ("read_skill_nodes", BISECT, "Give exactly one of ids, section, lines"),
        ("read_skill_nodes", {**BISECT, "ids": "n1", "lines": "3"}, "Give exactly one of"),
        ("read_skill_nodes", {**BISECT, "ids": " "}, "No node is named"),
        ("read_skill_nodes", {**BISECT, "lines": "one"}, "'one' is not a range of lines"),
        ("read_skill_nodes", {**BISECT, "lines": "9" * 5_000}, "is not a range of lines"),
        (
            "read_skill_nodes",
            {**BISECT, "file": "SKILL.md", "lines": "9" * 5_000},
            "are no lines of 'SKILL.md'",
        ),
        ("load_skill", {"query": "q" * 8_001}, "it must have at most 8000 characters"),
        ("read_skill_nodes", {**BISECT, "lines": "900"}, "There are no lines 'L900-900'"),
        ("find_skills", {"query": "x"}, "There is no tool 'find_skills': there are list_skills, "),
        ("search_skills", {"query": " "}, "The query is empty: say in a sentence"),
        ("search_skills", {"query": "x", "k": 0}, "K is 0, but it must be greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_named_with_the_way_out(
    server: SkillServer, tool: str, arguments: dict[str, Any], message: str
) -> None:
    told = error_of(answers(server, (tool, arguments))[0])
    assert message in told
    assert "skillpager " not in told  # no command: the tools are what there is


def test_null_stands_for_what_is_not_given(server: SkillServer) -> None:
    result = answer(server, "load_skill", name="git-bisect", query=None, budget_tokens=None, mode=None)
    assert text_of(result) == text_of(answer(server, "load_skill", name="git-bisect"))
    assert "no argument 'path'" in error_of(answer(server, "load_skill", name="git-bisect", path=None))


def test_a_fault_of_ours_is_told_without_its_traceback(
    pager: SkillPager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server = server_of(pager, SAMPLES)
    monkeypatch.setattr("skillpager.output.outline.outline_map", lambda *_, **__: 1 / 0)
    told = error_of(answer(server, "get_skill_outline", name="git-bisect"))
    assert told == "This is a fault of SkillPager; its log says more."
    assert "ZeroDivisionError" in caplog.text


# ---- marks


def test_marks_name_only_tools_that_are_registered_and_what_they_name_can_be_read(
    server: SkillServer, pager: SkillPager
) -> None:
    for name, query in QUERIES.items():
        text = text_of(answer(server, "load_skill", name=name, query=query, budget_tokens=700))
        assert set(re.findall(r"\b(\w+_skill\w*)\(", text)) <= {"read_skill_nodes"}
        assert "skillpager " not in text
        addresses = re.findall(r"^\[… ((?:\S+:)?L\d+(?:-\d+)?)[:\]]", text, re.MULTILINE)
        assert addresses or text == pager.whole(SAMPLES / name).text
        for address in addresses:
            assert text_of(answer(server, "read_skill_nodes", name=name, ids=address))


def test_what_a_user_set_to_plain_is_marked_all_the_same(pager: SkillPager) -> None:
    plain = SkillPager(settings=replace(pager.settings, style="plain"))
    asked = {"name": "postgres-backup", "query": QUERY}
    text = text_of(answer(server_of(plain, SAMPLES), "load_skill", **asked))
    assert text == text_of(answer(server_of(pager, SAMPLES), "load_skill", **asked))
    assert re.search(r"^\[… L13-\d+: .*\]$", text, re.MULTILINE)

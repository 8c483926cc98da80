"""The tools of the MCP server, through the SDK's in-memory client."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import SAMPLES
from golden import FOLDER, QUERIES
from mcp import Client
from mcp_clients import ERAS, answer, answers, error_of, form_of, server_of, text_of, with_client
from skillpager import SkillPager
from skillpager.mcp.server import SkillServer
from skillpager.mcp.tools import TOOLS

QUERY = QUERIES["postgres-backup"]


@pytest.fixture(scope="module")
def server(pager: SkillPager) -> SkillServer:
    """A server of the sample skills."""
    return server_of(pager, SAMPLES)


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
            assert tool.output_schema is not None
            assert tool.description is not None
            assert len(tool.description) < 100
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint
            assert tool.meta == {"anthropic/maxResultSizeChars": 160_000}
        load = tools["load_skill"].input_schema
        assert load["properties"]["name"]["enum"] == sorted(path.name for path in SAMPLES.iterdir())
        assert load["required"] == []
        assert {name: form["type"] for name, form in load["properties"].items()} == {
            "name": "string",
            "query": "string",
            "budget_tokens": "integer",
            "fill": "boolean",
            "mode": "string",
            "resend": "boolean",
        }
        assert load["properties"]["mode"]["enum"] == ["auto", "page", "outline", "full"]
        read = tools["read_skill_nodes"].input_schema
        assert list(read["properties"]) == ["name", "ids", "section", "lines", "file"]

    for era in ERAS:
        with_client(server, ask, era=era)


# ---- what they answer


def test_skills_are_listed_with_their_descriptions(server: SkillServer) -> None:
    result = answer(server, "list_skills")
    form = form_of(result)
    assert [skill["name"] for skill in form["skills"]] == sorted(path.name for path in SAMPLES.iterdir())
    assert "- git-bisect: Find the commit that introduced a bug" in text_of(result)
    assert form["text"] == text_of(result)
    assert form["complete"]
    assert str(SAMPLES) not in text_of(result)


@pytest.mark.parametrize("name", QUERIES)
def test_pages_are_the_golden_ones_but_for_how_to_read_on(pager: SkillPager, name: str) -> None:
    limited = SkillPager(settings=replace(pager.settings, max_nodes=12))  # as the golden pages are
    text = text_of(answer(server_of(limited, SAMPLES), "load_skill", name=name, query=QUERIES[name]))
    call = f'read_skill_nodes(name="{name}", ids="L2-9")'
    as_golden = text.replace(call, f"skillpager show examples/skills/{name} L2-9")
    as_golden = as_golden.replace(f"[Skill folder: {SAMPLES / name}]\n", "")
    as_golden = re.sub(
        r"\n\[Page holds all that is needed with an estimated chance of [^\]]+\]\n\Z", "", as_golden
    )
    golden = (FOLDER / f"{name}.page.md").read_text(encoding="utf-8")
    assert as_golden == golden
    assert (call in text) == ("skillpager show" in golden)


def test_a_page_says_what_it_holds_and_what_not(server: SkillServer, pager: SkillPager) -> None:
    result = answer(server, "load_skill", name="postgres-backup", query=QUERY)
    form = form_of(result)
    page = pager.page(SAMPLES / "postgres-backup", QUERY)
    assert page.selection is not None
    assert (form["text"], form["skill"], form["kind"]) == (text_of(result), "postgres-backup", "page")
    assert [node["id"] for node in form["nodes"]] == [node.id for node in page.nodes]
    scores = {pick.node.id: round(pick.marginal, 3) for pick in page.selection.picks}
    assert {node["id"]: node["score"] for node in form["nodes"] if "score" in node} == scores
    first = page.nodes[0]
    assert form["nodes"][0] | {"score": 0} == {
        "id": first.id,
        "type": str(first.type),
        "file": "SKILL.md",
        "start_line": first.span.start_line,
        "end_line": first.span.end_line,
        "tokens": first.tokens,
        "score": 0,
    }
    gaps = [(gap["start_line"], gap["end_line"], gap["nodes"], gap["known"]) for gap in form["omitted"]]
    assert gaps == [
        (gap.start_line, gap.end_line, "-".join(dict.fromkeys((gap.nodes[0], gap.nodes[-1]))), False)
        for gap in page.omitted
    ]
    assert len(gaps) > 1
    assert not form["complete"]
    assert form["tokens"] == pager.token_counter.count(text_of(result))
    assert form["full_tokens"] == page.full_tokens
    assert form["sufficiency"] == round(page.sufficiency or 0, 3)


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
        assert form_of(answer(server, "load_skill", **asked, **limits, fill=True))["complete"]


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
    assert form_of(answer(server, "load_skill", **asked, budget_tokens=least))["nodes"]


def test_a_page_without_estimates_names_none(pager: SkillPager) -> None:
    lexical = SkillPager(settings=replace(pager.settings, strategy="bm25"))
    form = form_of(
        answer(server_of(lexical, SAMPLES), "load_skill", name="git-bisect", query="skip a commit")
    )
    assert form["score_kind"] != "need"
    assert form.keys().isdisjoint({"covered", "sufficiency", "least_tokens"})


def test_a_page_for_a_query_that_the_skill_does_not_cover_says_so_first(server: SkillServer) -> None:
    result = answer(server, "load_skill", name="postgres-backup", query="Bake a cake with cherries.")
    covered = form_of(result)["covered"]
    assert covered < 0.5
    told = re.match(
        r"\[This skill seems not to cover the query \(chance (?:under )?(\d+) %\)\.\]\n", text_of(result)
    )
    assert told
    assert abs(int(told[1]) - 100 * covered) <= 1


def test_without_a_query_the_skill_comes_whole_if_it_fits_else_its_outline(
    server: SkillServer, pager: SkillPager
) -> None:
    whole = answer(server, "load_skill", name="git-bisect")
    assert text_of(whole) == pager.whole(SAMPLES / "git-bisect").text
    assert (form_of(whole)["kind"], form_of(whole)["complete"]) == ("full", True)
    outline = answer(server, "load_skill", name="postgres-backup", budget_tokens=2000)
    assert form_of(outline)["kind"] == "outline"
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
    (gap,) = form_of(result)["omitted"]
    lines = f"L{gap['start_line']}-{gap['end_line']}"
    assert re.fullmatch(rf"\[… {lines}: [^\[\]]+\]", text_of(result).splitlines()[-1])
    rest = answer(server, "read_skill_nodes", name="postgres-backup", ids=lines)
    shown = [node["id"] for result in (result, rest) for node in form_of(result)["nodes"]]
    assert shown == [node.id for node in pager.index(SAMPLES / "postgres-backup").nodes]


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
    assert [node["id"] for node in form_of(result)["nodes"]] == ids
    assert text_of(result) == pager.expand(SAMPLES / "postgres-backup", ids).text
    assert form_of(result)["complete"]


def test_an_outline_is_the_map_and_names_calls_that_read_on(server: SkillServer, pager: SkillPager) -> None:
    for name in QUERIES:
        result = answer(server, "get_skill_outline", name=name)
        text, read = text_of(result), f'read_skill_nodes(name="{name}", ids='
        assert text == pager.outline(
            SAMPLES / name,
            show=f'{read}"{{ids}}")',
            list_nodes=f'get_skill_outline(name="{name}", nodes=true)',
            folder=True,
        )
        (address,) = re.findall(rf'`{re.escape(read)}"(\S+)"\)`', text)
        assert form_of(answer(server, "read_skill_nodes", name=name, ids=address))["nodes"]
        assert form_of(result) == {
            "text": text,
            "skill": name,
            "kind": "outline",
            "complete": "folded" not in text,
            "tokens": pager.token_counter.count(text),
            "full_tokens": pager.index(SAMPLES / name).full_tokens,
            "nodes": [],
            "omitted": [],
        }


def test_an_outline_lists_every_node_on_request(server: SkillServer, pager: SkillPager) -> None:
    result = answer(server, "get_skill_outline", name="postgres-backup", nodes=True)
    assert text_of(result) == pager.outline(SAMPLES / "postgres-backup", nodes=True)
    listed = [node["id"] for node in form_of(result)["nodes"]]
    assert listed == [node.id for node in pager.index(SAMPLES / "postgres-backup").nodes]


def test_a_list_of_nodes_goes_on_where_it_is_told(server: SkillServer, pager: SkillPager) -> None:
    text = text_of(answer(server, "get_skill_outline", name="postgres-backup", start="n48"))
    whole = pager.outline(SAMPLES / "postgres-backup", nodes=True).splitlines()
    place = next(row for row, line in enumerate(whole) if line.strip().startswith("n48 "))
    assert text.splitlines() == [whole[0], *whole[place:]]


def test_a_skill_without_text_says_so(hashing_pager: SkillPager, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "SKILL.md").write_text("---\nname: empty\ndescription: d\n---\n", encoding="utf-8")
    server = server_of(hashing_pager, tmp_path)
    for arguments in ({}, {"query": "anything"}, {"mode": "full"}):
        result = answer(server, "load_skill", name="empty", **arguments)
        assert text_of(result) == "This skill has no text besides its description.\n"
        assert form_of(result)["complete"]
    assert text_of(answer(server, "get_skill_outline", name="empty")).startswith("empty: 0 nodes")


# ---- what is wrong


@pytest.mark.parametrize("tool", [tool.__name__ for tool in TOOLS])
@pytest.mark.parametrize("era", ERAS)
def test_unknown_arguments_are_refused(server: SkillServer, tool: str, era: str) -> None:
    message = error_of(answer(server, tool, era=era, **{"name": "git-bisect", "path": "/etc/passwd"}))
    assert "here is no argument 'path'" in message
    assert "The arguments are" in message


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("get_skill_outline", {}, "The argument 'name' is missing. The arguments are name, nodes, "),
        ("load_skill", {"name": 3}, "Name is 3, but it must be a valid string"),
        (
            "load_skill",
            {"name": "git-bisect", "budget_tokens": "9k"},
            "Budget_tokens is '9k', but it must be",
        ),
        ("load_skill", {"name": "git-bisect", "fill": "perhaps"}, "Fill is 'perhaps', but it must be"),
        (
            "load_skill",
            {"name": "git-bisect", "budget_tokens": 0},
            "Budget_tokens is 0, but it must be greater",
        ),
        ("load_skill", {"name": "git-bisect", "mode": "all"}, "'auto', 'page', 'outline' or 'full'"),
        (
            "load_skill",
            {"name": "git-bisct"},
            "There is no skill named 'git-bisct' among 10: did you mean git-bisect?",
        ),
        ("load_skill", {"name": str(SAMPLES / "git-bisect")}, "There is no skill named '/"),
        ("load_skill", {"name": "../skills/git-bisect"}, "There is no skill named '../"),
        (
            "load_skill",
            {"name": "git-bisect", "query": "x", "budget_tokens": 5},
            "Nothing fits: the smallest page with any content has ",
        ),
        (
            "load_skill",
            {"name": "git-bisect", "mode": "full", "budget_tokens": 5},
            "Nothing fits: the smallest page",
        ),
        (
            "load_skill",
            {"name": "git-bisect", "mode": "outline", "budget_tokens": 5},
            "Nothing fits into",
        ),
        ("read_skill_nodes", {"name": "git-bisect"}, "Give exactly one of ids, section, lines"),
        ("read_skill_nodes", {"name": "git-bisect", "ids": "n1", "lines": "3"}, "Give exactly one of"),
        (
            "read_skill_nodes",
            {"name": "git-bisect", "ids": "n99"},
            "There is no node 'n99' in skill 'git-bisect'",
        ),
        ("read_skill_nodes", {"name": "git-bisect", "ids": " "}, "No node is named"),
        ("read_skill_nodes", {"name": "git-bisect", "lines": "one"}, "'one' is not a range of lines"),
        ("read_skill_nodes", {"name": "git-bisect", "lines": "900"}, "No node stands at 'L900-900'"),
        ("read_skill_nodes", {"name": "git-bisect", "section": "By foot"}, "There is no section 'By foot'"),
        ("get_skill_outline", {"name": "git-bisect", "start": "n99"}, "There is no node 'n99'"),
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
    assert form_of(result)["kind"] == "full"
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
    server: SkillServer,
) -> None:
    for name, query in QUERIES.items():
        text = text_of(answer(server, "load_skill", name=name, query=query, budget_tokens=700))
        assert set(re.findall(r"\b(\w+_skill\w*)\(", text)) <= {"read_skill_nodes"}
        assert "skillpager " not in text
        addresses = re.findall(r"^\[… ((?:\S+:)?L\d+(?:-\d+)?)[:\]]", text, re.MULTILINE)
        assert addresses or form_of(answer(server, "load_skill", name=name, query=query))["complete"]
        for address in addresses:
            assert text_of(answer(server, "read_skill_nodes", name=name, ids=address))


def test_text_only_sends_no_structured_content_and_promises_none(pager: SkillPager) -> None:
    server = server_of(pager, SAMPLES, structured=False)

    async def ask(client: Client) -> None:
        assert {tool.output_schema for tool in (await client.list_tools()).tools} == {None}

    with_client(server, ask)
    result = answer(server, "load_skill", name="git-bisect")
    assert result.structured_content is None
    assert text_of(result).startswith("# Git bisect")


def test_what_a_user_set_to_plain_is_marked_all_the_same(pager: SkillPager) -> None:
    plain = SkillPager(settings=replace(pager.settings, style="plain"))
    asked = {"name": "postgres-backup", "query": QUERY}
    text = text_of(answer(server_of(plain, SAMPLES), "load_skill", **asked))
    assert text == text_of(answer(server_of(pager, SAMPLES), "load_skill", **asked))
    assert re.search(r"^\[… L13-\d+: How it works; ", text, re.MULTILINE)

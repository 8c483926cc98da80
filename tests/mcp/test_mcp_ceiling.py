"""Every reply stays below the ceiling, and what it leaves out can be read by what it says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult

from mcp_clients import answer, error_of, server_of, text_of
from skillpager import SkillPager
from skillpager.mcp.server import SkillServer
from skillpager.mcp.tools import DEFAULT_CEILING, LEAST_CEILING
from skillpager.tokens import default_counter

NODES = 3_000
LONG_LINES = 4_000
_CALL = re.compile(r"go on with: (\w+)\((.*)\)\]$", re.MULTILINE)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a skill of 3,000 nodes, one of a node of 4,000 lines, and one of a single long line."""
    folder = tmp_path_factory.mktemp("skills")
    sections = (
        f"## Part {number // 10}\n\n{_sentence(number)}\n\n"
        if number % 10 == 0
        else f"{_sentence(number)}\n\n"
        for number in range(NODES)
    )
    code = "".join(f"echo step {number} of the script\n" for number in range(LONG_LINES))
    texts = {
        "huge": "# Huge\n\n" + "".join(sections),
        "script": f"# Script\n\nRun it.\n\n```bash\n{code}```\n\n## After it\n\n{_sentence(1)}\n",
        "line": f"# Line\n\n`{'word ' * 60_000}`\n",
    }
    for name, text in texts.items():
        (folder / name).mkdir()
        head = f"---\nname: {name}\ndescription: d\n---\n"
        (folder / name / "SKILL.md").write_text(head + text, encoding="utf-8")
    return folder


def _sentence(number: int) -> str:
    return f"Turn valve {number} by a quarter, wait for gauge {number % 7}, and note the pressure in table {number}."


def size(result: CallToolResult) -> int:
    """Return the tokens of a result."""
    return default_counter().count(text_of(result))


def tells_the_rest(result: CallToolResult, name: str) -> bool:
    """Return whether a text names the call that goes on, or marks gaps and names the call that reads them."""
    text = text_of(result)
    if "go on with: " in text or f'get_skill_outline(name="{name}", nodes=true)' in text:
        return True
    legend = f'[Page of a skill. […] = omitted lines; read: read_skill_nodes(name="{name}", ids="'
    return legend in text and re.search(r"^\[… L.+\]$", text, re.MULTILINE) is not None


def next_call(result: CallToolResult) -> tuple[str, dict[str, Any]] | None:
    """Return the last call that a text tells to go on with."""
    found = _CALL.findall(text_of(result))
    if not found:
        return None
    tool, arguments = found[-1]
    return tool, arguments_of(arguments)


def arguments_of(text: str) -> dict[str, Any]:
    """Return the arguments of a call as a text has them."""
    arguments: dict[str, Any] = json.loads("{" + re.sub(r"(\w+)=(?=\")", r'"\1": ', text) + "}")
    return arguments


def read_on(server: SkillServer, name: str, arguments: dict[str, Any]) -> list[CallToolResult]:
    """Return the results of a call and of all that follow from it."""
    results = [answer(server, name, **arguments)]
    while call := next_call(results[-1]):
        results.append(answer(server, call[0], **call[1]))
        assert len(results) < 300
    return results


CALLS: list[tuple[str, dict[str, object]]] = [
    ("load_skill", {}),
    ("load_skill", {"mode": "full"}),
    ("load_skill", {"mode": "outline"}),
    ("load_skill", {"budget_tokens": 1_000_000, "mode": "full"}),
    ("load_skill", {"query": "Turn valve 1234 by a quarter"}),
    ("load_skill", {"query": "Turn valve 1234 by a quarter", "budget_tokens": 1_000_000}),
    ("load_skill", {"query": "Bake a cake with cherries"}),
    ("get_skill_outline", {}),
    ("get_skill_outline", {"nodes": True}),
    ("read_skill_nodes", {"lines": "1-100000"}),
]


@pytest.mark.parametrize("name", ["huge", "script", "line"])
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_no_reply_is_above_the_ceiling(
    library: Path, fast_pager: SkillPager, name: str, tool: str, arguments: dict[str, object]
) -> None:
    for ceiling in (DEFAULT_CEILING, LEAST_CEILING):
        result = answer(server_of(fast_pager, library, ceiling=ceiling), tool, name=name, **arguments)
        if result.is_error:
            assert re.search(
                r"n\d+ is longer than one reply: read its lines with read_skill", error_of(result)
            )
            assert name != "huge"
            continue
        assert size(result) <= ceiling
        assert tells_the_rest(result, name) or (name != "huge" and tool == "get_skill_outline")


def test_reading_on_reads_every_node_once(library: Path, fast_pager: SkillPager) -> None:
    server = server_of(fast_pager, library)
    every = list(range(NODES))
    results = read_on(server, "read_skill_nodes", {"name": "huge", "ids": "n0-n2999"})
    assert [
        int(valve) for result in results for valve in re.findall(r"valve (\d+)", text_of(result))
    ] == every
    results = read_on(server, "get_skill_outline", {"name": "huge", "nodes": True})
    listed = re.findall(r"^ *n(\d+) ", text_of(results[0]), re.MULTILINE)
    read = [number for result in results[1:] for number in re.findall(r"valve (\d+)", text_of(result))]
    assert [int(number) for number in listed + read] == every


def test_a_node_beyond_the_ceiling_is_read_by_its_lines(library: Path, fast_pager: SkillPager) -> None:
    server = server_of(fast_pager, library)
    said = error_of(answer(server, "read_skill_nodes", name="script", ids="n1-n2"))
    call = re.search(r"read its lines with (\w+)\((.*)\)\.$", said)
    assert call
    results = read_on(server, call[1], arguments_of(call[2]))
    assert len(results) == 3
    assert all(size(result) <= DEFAULT_CEILING for result in results)
    steps = re.findall(r"echo step (\d+) of the script", "".join(map(text_of, results)))
    assert [int(step) for step in steps] == list(range(LONG_LINES))


def test_a_line_beyond_the_ceiling_is_refused(library: Path, fast_pager: SkillPager) -> None:
    server = server_of(fast_pager, library)
    asked = {"name": "line", "file": "SKILL.md"}
    said = error_of(answer(server, "read_skill_nodes", **asked, lines="7"))
    assert said.startswith("The first line alone is over 12,000 tokens, the most of a reply")
    assert 'lines="7-7"' in text_of(answer(server, "read_skill_nodes", **asked))


def test_a_list_of_many_skills_is_read_to_its_end(tmp_path: Path, fast_pager: SkillPager) -> None:
    names = [f"skill-{number:03}" for number in range(120)]
    for name in names:
        (tmp_path / name).mkdir()
        head = f"---\nname: {name}\ndescription: {'What it is for. ' * 60}\n---\ntext\n"
        (tmp_path / name / "SKILL.md").write_text(head, encoding="utf-8")
    results = read_on(server_of(fast_pager, tmp_path), "list_skills", {})
    assert len(results) > 1
    assert all(size(result) <= DEFAULT_CEILING for result in results)
    listed = "".join(text_of(result) for result in results)
    assert re.findall(r"^- (skill-\d+): ", listed, re.MULTILINE) == names


def test_errors_are_short_whatever_was_asked(library: Path, fast_pager: SkillPager) -> None:
    server = server_of(fast_pager, library)
    for tool, arguments in (
        ("load_skill", {"name": "x" * 100_000}),
        ("x" * 100_000, {}),
        ("load_skill", {"name": "huge", "y" * 100_000: 1}),
        ("load_skill", {"name": "huge", "mode": "z" * 100_000}),
        ("read_skill_nodes", {"name": "huge", "ids": "q" * 100_000}),
        ("read_skill_nodes", {"name": "huge", "section": "q" * 100_000}),
        ("read_skill_nodes", {"name": "huge", "lines": "q" * 100_000}),
    ):
        assert len(error_of(answer(server, tool, **arguments))) <= 2_000

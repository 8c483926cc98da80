"""Every reply stays below the ceiling, and what it leaves out can be read by what it says."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult

from conftest import SAMPLES
from golden import QUERIES
from mcp_clients import answer, error_of, form_of, server_of, text_of
from skillpager import NodeType, SkillPager
from skillpager.mcp.options import DEFAULT_CEILING, LEAST_CEILING
from skillpager.mcp.server import SkillServer
from skillpager.settings import Settings
from skillpager.tokens import default_counter
from skillpager.types import Classification, FloatArray, Fragment

NODES = 3_000
LONG_LINES = 4_000
_CALL = re.compile(r"go on with: (\w+)\((.*)\)\]$", re.MULTILINE)


class AllSteps:
    """Calls every fragment a step: the types of thousands of nodes would take the shipped model a minute."""

    id = "all-steps"
    embedding = None

    def classify(self, fragments: Sequence[Fragment], rows: FloatArray | None) -> list[Classification]:
        """Return one verdict per fragment."""
        return [Classification(NodeType.STEP, 1.0) for _ in fragments]


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


@pytest.fixture(scope="module")
def large_pager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillPager]:
    """A pager that indexes thousands of nodes within seconds."""
    settings = Settings(cache_dir=tmp_path_factory.mktemp("cache"))
    made = SkillPager(encoder="hashing", classifier=AllSteps(), settings=settings)
    yield made
    made.close()


def size(result: CallToolResult) -> int:
    """Return the tokens of all that a result sends."""
    counter = default_counter()
    form = result.structured_content
    return counter.count(text_of(result)) + (
        counter.count(json.dumps(form, ensure_ascii=False)) if form is not None else 0
    )


def tells_the_rest(result: CallToolResult, name: str) -> bool:
    """Return whether a text names the call that goes on, or marks every gap and names the call that reads it."""
    text = text_of(result)
    if "go on with: " in text or f'get_skill_outline(name="{name}", nodes=true)' in text:
        return True
    legend = f'[Page of a skill. […] = omitted lines; read: read_skill_nodes(name="{name}", ids="L2-9")]\n'
    marks = [mark.partition(":")[0] for mark in re.findall(r"^\[… (L.+)\]$", text, re.MULTILINE)]
    if legend not in text or not marks:
        return False
    if result.structured_content is None:
        return True
    gaps = [(gap["start_line"], gap["end_line"]) for gap in form_of(result)["omitted"]]
    return marks == [f"L{first}" if first == last else f"L{first}-{last}" for first, last in gaps]


def next_call(result: CallToolResult) -> tuple[str, dict[str, Any]] | None:
    """Return the last call that a text tells to go on with."""
    found = _CALL.findall(text_of(result))
    if not found:
        return None
    tool, arguments = found[-1]
    return tool, json.loads("{" + re.sub(r"(\w+)=(?=\")", r'"\1": ', arguments) + "}")


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


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_no_reply_on_a_huge_skill_is_above_the_ceiling(
    library: Path, large_pager: SkillPager, tool: str, arguments: dict[str, object], structured: bool
) -> None:
    assert len(large_pager.index(library / "huge").nodes) == NODES
    for ceiling in (DEFAULT_CEILING, LEAST_CEILING):
        server = server_of(large_pager, library, ceiling=ceiling, structured=structured)
        result = answer(server, tool, name="huge", **arguments)
        assert size(result) <= ceiling
        every_node = 'get_skill_outline(name="huge", nodes=true)'
        if structured:  # a map without folded sections is complete, all else is cut
            whole_map = every_node in text_of(result) and not re.search("folded|not shown", text_of(result))
            assert form_of(result)["complete"] == whole_map
        assert tells_the_rest(result, "huge")


@pytest.mark.parametrize("name", ["script", "line"])
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
def test_no_reply_on_a_huge_node_is_above_the_ceiling(
    library: Path, large_pager: SkillPager, name: str, tool: str, arguments: dict[str, object]
) -> None:
    for ceiling in (DEFAULT_CEILING, LEAST_CEILING):
        result = answer(server_of(large_pager, library, ceiling=ceiling), tool, name=name, **arguments)
        assert size(result) <= ceiling
        too_long = "[line 7 of SKILL.md is too long for one reply: read it in the file]" in text_of(result)
        assert form_of(result)["complete"] or too_long or tells_the_rest(result, name)


@pytest.mark.parametrize("name", QUERIES)
def test_no_reply_on_a_sample_is_above_a_low_ceiling(pager: SkillPager, name: str) -> None:
    server = server_of(pager, SAMPLES, ceiling=1500)
    for arguments in ({}, {"mode": "full"}, {"mode": "outline"}, {"query": QUERIES[name]}):
        assert size(answer(server, "load_skill", name=name, **arguments)) <= 1500


def test_reading_on_reads_every_node_once(library: Path, large_pager: SkillPager) -> None:
    server = server_of(large_pager, library, ceiling=DEFAULT_CEILING)
    results = read_on(server, "read_skill_nodes", {"name": "huge", "ids": "n0-n2999"})
    read = [node["id"] for result in results for node in form_of(result)["nodes"]]
    assert read == [f"n{number}" for number in range(NODES)]
    assert [form_of(result)["complete"] for result in results] == [False] * (len(results) - 1) + [True]
    results = read_on(server, "get_skill_outline", {"name": "huge", "nodes": True})
    assert read == [node["id"] for result in results for node in form_of(result)["nodes"]]


def test_a_node_beyond_the_ceiling_is_read_by_its_lines(library: Path, large_pager: SkillPager) -> None:
    results = read_on(server_of(large_pager, library), "read_skill_nodes", {"name": "script", "ids": "n1"})
    assert len(results) > 3
    assert all(size(result) <= DEFAULT_CEILING for result in results)
    text = "".join(_CALL.sub("", text_of(result)) for result in results)
    steps = [int(number) for number in re.findall(r"echo step (\d+) of the script", text)]
    assert steps == list(range(LONG_LINES))
    assert all(form_of(result)["nodes"] == [] for result in results)  # none of them holds a whole node


def test_what_follows_a_node_beyond_the_ceiling_is_not_forgotten(
    library: Path, large_pager: SkillPager
) -> None:
    result = answer(server_of(large_pager, library), "read_skill_nodes", name="script", ids="n1-n2")
    calls = _CALL.findall(text_of(result))
    assert [tool for tool, _ in calls] == ["read_skill_nodes"] * 2
    assert calls[1][1] == 'name="script", ids="n2"'
    assert form_of(result)["omitted"][-1]["nodes"] == "n2"


def test_a_line_beyond_the_ceiling_is_named(library: Path, large_pager: SkillPager) -> None:
    result = answer(server_of(large_pager, library), "read_skill_nodes", name="line", ids="n0")
    assert text_of(result).startswith("[line 7 of SKILL.md is too long for one reply: read it in the file]")
    assert size(result) < 500


def test_a_list_of_many_skills_is_read_to_its_end(tmp_path: Path, large_pager: SkillPager) -> None:
    names = [f"skill-{number:03}" for number in range(120)]
    for name in names:
        (tmp_path / name).mkdir()
        head = f"---\nname: {name}\ndescription: {'What it is for. ' * 60}\n---\ntext\n"
        (tmp_path / name / "SKILL.md").write_text(head, encoding="utf-8")
    results = read_on(server_of(large_pager, tmp_path), "list_skills", {})
    assert len(results) > 1
    assert all(size(result) <= DEFAULT_CEILING for result in results)
    assert [skill["name"] for result in results for skill in form_of(result)["skills"]] == names


def test_errors_are_short_whatever_was_asked(library: Path, large_pager: SkillPager) -> None:
    server = server_of(large_pager, library)
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


def test_a_long_node_is_read_by_the_lines_of_an_editor(tmp_path: Path, hashing_pager: SkillPager) -> None:
    rows = [f"row {number}\f of a long block of text\n" for number in range(LONG_LINES)]
    text = "".join(["# Title\n\n```text\n", *rows, "```\n"])
    (tmp_path / "long").mkdir()
    (tmp_path / "long" / "SKILL.md").write_text(text, encoding="utf-8")
    server = server_of(hashing_pager, tmp_path, ceiling=LEAST_CEILING, structured=False)
    reply = text_of(answer(server, "read_skill_nodes", name="long", lines=f"104-{LONG_LINES}"))
    assert reply.startswith("".join(rows[100:110]))
    call = _CALL.search(reply)
    assert call is not None
    shown = reply[: reply.index("\n[… cut here")].count("\n")
    assert f'lines="{104 + shown}-{LONG_LINES + 4}"' in call[2]

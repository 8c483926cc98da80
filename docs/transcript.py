"""Print a session of an agent with the MCP server, for docs/hosts.md: `python docs/transcript.py`.

What the agent says is written here. What it is told is what the server answers to a client of the SDK,
shortened where a line is `…`.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
from mcp.types import TextContent

from mcp import Client
from skillpager import SkillPager
from skillpager.library import Library
from skillpager.mcp.server import make_server

SKILLS = Path(__file__).parent.parent / "examples" / "skills"
NAME = "kubernetes-debugging"
QUERY = "a Service has no endpoints"
HELPFUL = "## Service and endpoints"
# what goes wrong then, and the section about it, which a mark names
FAILURE = "Connection timed out"
REMEDIES = "## Network policies"
MARK = re.compile(rf"^\[… (\S*L\S+): .*{re.escape(REMEDIES.strip('# '))}.*\]$", re.MULTILINE)

# tells by a line, the heading it stands under and the fences since that whether to show it
Keep = Callable[[str, str, int], bool]


async def session() -> str:
    """Return what is said and answered.

    Raises:
        ValueError: No mark of the page names the section that helps: another session must be thought of.
    """
    pager = SkillPager()
    server = make_server(Library(pager, [SKILLS]))
    async with Client(server) as client:
        page = await _answer(client, "load_skill", name=NAME, query=QUERY)
        marks = MARK.findall(page)
        if not marks:
            raise ValueError(f"no mark of the page names {REMEDIES!r}:\n{page}")
        lines = marks[-1]
        read = await _answer(client, "read_skill_nodes", name=NAME, ids=lines)
    said = [
        f"user   {QUERY}",
        _call("load_skill", name=NAME, query=QUERY),
        _shortened(page, _helps),
        f"agent  The endpoints are there now; curl says: {FAILURE}. A mark names a section for that.",
        _call("read_skill_nodes", name=NAME, ids=lines),
        _shortened(read, _remedies),
        f"tokens {_tokens(pager, page, read)}",
    ]
    return "\n\n".join(said) + "\n"


def _tokens(pager: SkillPager, page: str, read: str) -> str:
    """Compare what was read with what a host would have loaded."""
    count = pager.token_counter.count
    main = count((SKILLS / NAME / "SKILL.md").read_text(encoding="utf-8"))
    whole = pager.index(SKILLS / NAME).full_tokens
    return f"page {count(page):,}, page fault {count(read):,}; SKILL.md {main:,}, all files {whole:,}"


def _helps(line: str, section: str, fences: int) -> bool:
    """Keep marks, names of files, and the section that helps up to its first block of code."""
    return line.startswith("[") or (section == HELPFUL and fences < 2)


def _remedies(line: str, section: str, _: int) -> bool:
    """Keep the section that was asked for."""
    return section == REMEDIES and bool(line)


async def _answer(client: Client, tool: str, **arguments: str) -> str:
    (block,) = (await client.call_tool(tool, arguments)).content
    assert isinstance(block, TextContent)
    return block.text


def _call(tool: str, **arguments: str) -> str:
    given = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    return f"agent  {tool}({given})"


def _shortened(answer: str, keep: Keep) -> str:
    return "\n".join(_lines(answer, keep))


def _lines(answer: str, keep: Keep) -> Iterator[str]:
    """Yield the lines to keep, and `…` for those between them."""
    section, fences, cut = "", 0, False
    for line in answer.rstrip().splitlines():
        if line.startswith("#") and not fences % 2:
            section, fences = line, 0
        if keep(line, section, fences):
            yield line
            cut = False
        elif line and not cut:
            yield "…"
            cut = True
        fences += line.startswith("```")


if __name__ == "__main__":
    print(anyio.run(session), end="")

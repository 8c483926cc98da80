"""The tools of the MCP server.

A name means a skill of the library, never a path. Every reply stays within a ceiling of tokens; where it
leaves something out, a mark names the tool call that reads it.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from skillpager.errors import NodeNotFoundError, SettingsError
from skillpager.json_types import JsonObject
from skillpager.library import Library
from skillpager.mcp import replies, schemas
from skillpager.mcp.memory import Memory
from skillpager.mcp.replies import ReadOn, Reply
from skillpager.pages.addresses import find_nodes, find_section
from skillpager.parsing.skill import SCOPES
from skillpager.types import SkillIndex, Style

# Claude Code cuts a result off at 25,000 tokens (claude-code#10456); its tokenizer may count more than ours
DEFAULT_CEILING = 20_000
# the marks alone of a page with many gaps take some hundred tokens
LEAST_CEILING = 1_000

_LINES = re.compile(r"((?:[^\s:,]+:)?)L?(\d+)(?:-L?(\d+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options of the server.

    Attributes:
        ceiling: Most tokens of a reply, its JSON form included.
        structured: Whether the JSON form is sent with the text.
        resend: Whether to send again the nodes that a session was sent.
        scope: `skill` or `body`; None for that of the settings.
    """

    ceiling: int = DEFAULT_CEILING
    structured: bool = True
    resend: bool = False
    scope: str | None = None


class SkillTools:
    """The tools over the skills of a library. Thread-safe.

    Raises:
        SettingsError: The ceiling is too low for a page, or the scope is unknown.
    """

    def __init__(self, library: Library, options: ToolOptions) -> None:
        if options.ceiling < LEAST_CEILING:
            raise SettingsError(
                f"The ceiling is {options.ceiling} tokens: it must be {LEAST_CEILING} or more."
            )
        if options.scope not in (None, *SCOPES):
            raise SettingsError(f"Unknown scope {options.scope!r}: choose one of {', '.join(SCOPES)}.")
        self._library = library
        self._pager = library.pager
        self._options = options
        # gaps must be marked, and the style `plain` has no marks
        self._style = Style.XML if library.pager.settings.style == Style.XML else Style.MARKED

    def call(self, name: str, values: Mapping[str, object], memory: Memory) -> Reply:
        """Return the reply of a tool of `TOOLS` to its arguments.

        `memory` is that of the session; the caller adds to it what the reply holds, once that is on its way.

        Raises:
            SettingsError: The tool is unknown, or an argument is not valid.
            SkillPagerError: The skill cannot be found or read.
        """
        if name not in TOOLS:
            raise SettingsError(f"There is no tool {name[:80]!r}: there are {', '.join(TOOLS)}.")
        tool = TOOLS[name]
        return tool.answer(self, schemas.checked(tool.arguments, values), memory)

    def list_skills(self, asked: schemas.ListSkills, _memory: Memory) -> Reply:
        """Return the skills on offer, by name."""
        skills = [skill for skill in self._library.skills() if skill.name >= (asked.start or "")]
        counter, read_on = self._pager.token_counter, _call("list_skills", "start")
        return self._within(lambda limit: replies.list_reply(skills, limit, counter, read_on))

    def load_skill(self, asked: schemas.LoadSkill, memory: Memory) -> Reply:
        """Return the page of a skill for a query, the whole skill, or its outline."""
        index = self._index(asked.name)
        query = (asked.query or "").strip()
        if asked.mode == "page" and not query:
            raise SettingsError('The mode "page" needs a query: say what you are about to do.')
        if query and asked.mode in ("page", "auto"):
            return self._page(asked, query, index, memory)
        whole = None if asked.mode == "outline" else self._whole(asked, index, memory)
        if whole is None or (whole.cut and asked.mode == "auto"):
            return self._map(asked.name, index, asked.budget_tokens)
        return replace(whole, key=index.key)

    def read_skill_nodes(self, asked: schemas.ReadNodes, _memory: Memory) -> Reply:
        """Return nodes of a skill, including those that the session was sent before."""
        index = self._index(asked.name)
        if [asked.ids, asked.section, asked.lines].count(None) != 2:
            raise SettingsError("Give exactly one of ids, section and lines: it says which nodes to read.")
        first_line = 0
        if asked.section is not None:
            ordinals = find_section(index, asked.section)
        elif asked.lines is not None:
            match = _LINES.fullmatch(asked.lines.strip())
            if not match:
                raise NodeNotFoundError(
                    f'{asked.lines[:80]!r} is not a range of lines, such as "30-57" or "api.md:30-57".'
                )
            first_line = int(match[2])
            ordinals = find_nodes(index, [f"{match[1]}L{match[2]}-{match[3] or match[2]}"])
        else:
            ordinals = find_nodes(index, [asked.ids or ""])
        nodes = [index.nodes[ordinal] for ordinal in ordinals]
        counter = self._pager.token_counter
        read_nodes = _call("read_skill_nodes", "ids", asked.name)
        read_lines = _call("read_skill_nodes", "lines", asked.name)

        def make(limit: int) -> Reply:
            ids = [node.id for node in nodes]
            page = self._pager.expand(index, ids, max_tokens=limit, style=self._style)
            if page.nodes:
                return replies.nodes_reply(page, index, nodes, counter, read_nodes)
            return replies.long_node_reply(
                index, nodes, first_line, limit, counter, read_lines=read_lines, read_nodes=read_nodes
            )

        return replace(self._within(make), key=index.key)

    def get_skill_outline(self, asked: schemas.GetOutline, _memory: Memory) -> Reply:
        """Return a map of a skill, or all its headings and nodes."""
        index = self._index(asked.name)
        if not asked.nodes and asked.start is None:
            return self._map(asked.name, index, None)
        start = find_nodes(index, [asked.start])[0] if asked.start else 0
        counter, read_on = self._pager.token_counter, _call("get_skill_outline", "start", asked.name)
        return self._within(lambda limit: replies.nodes_outline_reply(index, start, limit, counter, read_on))

    def _page(self, asked: schemas.LoadSkill, query: str, index: SkillIndex, memory: Memory) -> Reply:
        key = self._pager.pool(index).key
        style, show, known = self._style, _show(asked.name), self._known(asked, key, memory)

        def page(limit: int | None) -> Reply:
            made = self._pager.page(
                index,
                query,
                max_tokens=limit,
                fill=asked.fill or None,
                style=style,
                show=show,
                known=known,
            )
            return replies.page_reply(made, index, "page", asked=limit == asked.budget_tokens)

        def make(limit: int) -> Reply:
            if asked.budget_tokens is not None:
                return page(min(limit, asked.budget_tokens))
            free = page(None)  # under a limit, strategies that do not stop by themselves would fill the page
            return free if self._pager.token_counter.count(free.text) <= limit else page(limit)

        return replace(self._within(make), key=key)

    def _whole(self, asked: schemas.LoadSkill, index: SkillIndex, memory: Memory) -> Reply:
        style, show, known = self._style, _show(asked.name), self._known(asked, index.key, memory)

        def make(limit: int) -> Reply:
            most = min(limit, asked.budget_tokens or limit)
            made = self._pager.whole(index, max_tokens=most, style=style, show=show, known=known)
            return replies.page_reply(made, index, "full", asked=asked.mode == "full" and most != limit)

        return self._within(make)

    def _map(self, name: str, index: SkillIndex, budget: int | None) -> Reply:
        counter, show, list_nodes = self._pager.token_counter, _show(name), _list_nodes(name)
        return self._within(
            lambda limit: replies.map_reply(index, min(limit, budget or limit), counter, show, list_nodes)
        )

    def _index(self, name: str) -> SkillIndex:
        return self._library.index(name, scope=self._options.scope)

    def _within(self, make: Callable[[int], Reply]) -> Reply:
        options = self._options
        return replies.within(make, options.ceiling, self._pager.token_counter, structured=options.structured)

    def _known(self, asked: schemas.LoadSkill, key: str, memory: Memory) -> Collection[str]:
        return () if self._options.resend or asked.resend else memory.sent(key)


@dataclass(frozen=True, slots=True)
class SkillTool:
    """A tool: its description for a model, its arguments, and the method of `SkillTools` that answers."""

    description: str
    arguments: type[schemas.Arguments]
    output_schema: JsonObject
    answer: Callable[[SkillTools, Any, Memory], Reply]

    @property
    def input_schema(self) -> JsonObject:
        """JSON schema of the arguments."""
        return schemas.input_schema(self.arguments)


def _call(tool: str, argument: str, name: str | None = None) -> ReadOn:
    """Return a function from an address to the tool call that reads it."""
    skill = "" if name is None else f"name={json.dumps(name, ensure_ascii=False)}, "
    return lambda address: f"{tool}({skill}{argument}={json.dumps(address, ensure_ascii=False)})"


def _show(name: str) -> str:
    """Return the tool call that the legend of a page names, with a placeholder for the lines."""
    return _call("read_skill_nodes", "ids", name)("{ids}")


def _list_nodes(name: str) -> str:
    """Return the tool call that lists every node."""
    return f"get_skill_outline(name={json.dumps(name, ensure_ascii=False)}, nodes=true)"


TOOLS: dict[str, SkillTool] = {
    "list_skills": SkillTool(
        "List the skills and what each is for.",
        schemas.ListSkills,
        schemas.SKILLS_SCHEMA,
        SkillTools.list_skills,
    ),
    "load_skill": SkillTool(
        "Load the part of a skill that a task needs. Marks show omitted lines, the legend how to read them.",
        schemas.LoadSkill,
        schemas.READING_SCHEMA,
        SkillTools.load_skill,
    ),
    "read_skill_nodes": SkillTool(
        "Read parts of a skill verbatim; give one of ids, section or lines.",
        schemas.ReadNodes,
        schemas.READING_SCHEMA,
        SkillTools.read_skill_nodes,
    ),
    "get_skill_outline": SkillTool(
        "Get a map of a skill: its headings with lines, tokens, and the types of their nodes.",
        schemas.GetOutline,
        schemas.READING_SCHEMA,
        SkillTools.get_skill_outline,
    ),
}

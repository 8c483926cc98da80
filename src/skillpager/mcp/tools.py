"""The tools of the MCP server: what each answers, whatever the transport.

Names resolve among the skills of a library and nowhere else. Every reply stays below a ceiling, and what
it leaves out is marked with the call, of a tool that is here, which reads it.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from skillpager.errors import NodeNotFoundError, SettingsError
from skillpager.library import Library
from skillpager.mcp.memory import Memory
from skillpager.mcp.replies import (
    LongNode,
    ReadOn,
    Reply,
    list_reply,
    nodes_reply,
    outline_reply,
    page_reply,
    within,
)
from skillpager.mcp.schemas import (
    READING_SCHEMA,
    SKILLS_SCHEMA,
    GetOutline,
    ListSkills,
    LoadSkill,
    ReadNodes,
    checked,
    input_schema,
)
from skillpager.output.json import JsonObject
from skillpager.pages.addresses import find_nodes, find_section
from skillpager.parsing.skill import SCOPES
from skillpager.types import SkillIndex, Style

# below the 25,000 tokens at which Claude Code cuts a result off (claude-code#10456), by a tokenizer that
# may count more than ours
DEFAULT_CEILING = 20_000
# the marks of a page of many parts take some hundred tokens
LEAST_CEILING = 1_000

_LINES = re.compile(r"((?:[^\s:,]+:)?)L?(\d+)(?:-L?(\d+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """How a server answers.

    Attributes:
        ceiling: Most tokens of a reply, its JSON form included.
        structured: Whether the JSON form is sent beside the text.
        resend: Whether to send again what a session was sent.
        scope: `skill` or `body`; None for the settings'.
    """

    ceiling: int = DEFAULT_CEILING
    structured: bool = True
    resend: bool = False
    scope: str | None = None


class SkillTools:
    """Answers the calls of tools. Thread-safe.

    Args:
        library: The skills on offer.
        options: How to answer.

    Raises:
        SettingsError: The ceiling is too low for a page, or there is no such scope.
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
        # what is left out must be marked, which `plain` does not do
        self._style = Style.XML if library.pager.settings.style == Style.XML else Style.MARKED

    def call(self, name: str, values: Mapping[str, object], memory: Memory) -> Reply:
        """Return the answer of the tool of this name.

        Args:
            name: One of `TOOLS`.
            values: Its arguments.
            memory: What the session was sent.

        Raises:
            SettingsError: There is no such tool, or an argument is not valid.
            SkillPagerError: The skill cannot be found or read.
        """
        if name not in TOOLS:
            raise SettingsError(f"There is no tool {name[:80]!r}: there are {', '.join(TOOLS)}.")
        return TOOLS[name].answer(self, values, memory)

    def list_skills(self, asked: ListSkills) -> Reply:
        """Return the skills on offer, by name."""
        skills = [skill for skill in self._library.skills() if skill.name >= (asked.start or "")]
        counter = self._pager.token_counter
        return self._within(lambda limit: list_reply(skills, limit, counter, _call("list_skills", "start")))

    def load_skill(self, asked: LoadSkill, memory: Memory) -> Reply:
        """Return the page of a skill for a query, the whole skill, or its outline."""
        index = self._index(asked.name)
        query = (asked.query or "").strip()
        if asked.mode == "page" and not query:
            raise SettingsError('The mode "page" needs a query: say what you are about to do.')
        if query and asked.mode in ("page", "auto"):
            return self._page(asked, query, index, memory)
        whole = None if asked.mode == "outline" else self._whole(asked, index, memory)
        if whole is None or (whole.cut and asked.mode == "auto"):
            return self._outline(asked.name, index, 0, asked.budget_tokens)
        return self._sent(whole, index.key, memory)

    def read_skill_nodes(self, asked: ReadNodes, memory: Memory) -> Reply:
        """Return nodes of a skill, whether or not the session was sent them."""
        index = self._index(asked.name)
        nodes = [index.nodes[ordinal] for ordinal in _ordinals(index, asked)]
        ids = [node.id for node in nodes]
        read_nodes = _call("read_skill_nodes", "ids", asked.name)
        read_lines = _call("read_skill_nodes", "lines", asked.name)
        long = LongNode(nodes[0], _first_line(asked), nodes[1:], read_lines, read_nodes)

        def make(limit: int) -> Reply:
            context = self._pager.expand(index, ids, max_tokens=limit, style=self._style)
            if not context.nodes:
                return long.reply(index, limit, self._pager.token_counter)
            return nodes_reply(context, index, nodes, self._pager.token_counter, read_nodes)

        return self._sent(self._within(make), index.key, memory)

    def get_skill_outline(self, asked: GetOutline) -> Reply:
        """Return the headings and nodes of a skill."""
        index = self._index(asked.name)
        start = find_nodes(index, [asked.start])[0] if asked.start else 0
        return self._outline(asked.name, index, start, None)

    # ---- the modes of load_skill

    def _page(self, asked: LoadSkill, query: str, index: SkillIndex, memory: Memory) -> Reply:
        key = self._pager.pool(index).key
        known = self._known(asked, key, memory)
        show = _show(asked.name)

        def page(limit: int | None) -> Reply:
            context = self._pager.page(
                index, query, max_tokens=limit, style=self._style, show=show, known=known
            )
            return page_reply(context, index, "page")

        def make(limit: int) -> Reply:
            if asked.budget_tokens is not None:
                return page(min(limit, asked.budget_tokens))
            free = page(None)  # it ends by itself; within a limit that the whole skill fits it would be that
            return free if self._pager.token_counter.count(free.text) <= limit else page(limit)

        return self._sent(self._within(make), key, memory)

    def _whole(self, asked: LoadSkill, index: SkillIndex, memory: Memory) -> Reply:
        known = self._known(asked, index.key, memory)
        show = _show(asked.name)

        def make(limit: int) -> Reply:
            most = min(limit, asked.budget_tokens or limit)
            context = self._pager.whole(index, max_tokens=most, style=self._style, show=show, known=known)
            return page_reply(context, index, "full")

        return self._within(make)

    def _outline(self, name: str, index: SkillIndex, start: int, budget: int | None) -> Reply:
        counter, read_on = self._pager.token_counter, _call("get_skill_outline", "start", name)
        return self._within(
            lambda limit: outline_reply(index, start, min(limit, budget or limit), counter, read_on)
        )

    # ---- what they share

    def _index(self, name: str) -> SkillIndex:
        return self._library.index(name, scope=self._options.scope)

    def _within(self, make: Callable[[int], Reply]) -> Reply:
        options = self._options
        return within(make, options.ceiling, self._pager.token_counter, structured=options.structured)

    def _known(self, asked: LoadSkill, key: str, memory: Memory) -> frozenset[str]:
        return frozenset() if self._options.resend or asked.resend else frozenset(memory.sent(key))

    def _sent(self, reply: Reply, key: str, memory: Memory) -> Reply:
        memory.add(key, (node.id for node in reply.nodes))
        return reply


@dataclass(frozen=True, slots=True)
class SkillTool:
    """A tool as it is offered.

    Attributes:
        description: What it is for, for a model.
        input_schema: JSON schema of its arguments.
        output_schema: JSON schema of its structured content.
        answer: Checks the arguments and answers.
    """

    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    answer: Callable[[SkillTools, Mapping[str, object], Memory], Reply]


def _call(tool: str, argument: str, name: str | None = None) -> ReadOn:
    """Return what makes the call of a tool of an address."""
    skill = "" if name is None else f"name={json.dumps(name, ensure_ascii=False)}, "
    return lambda address: f"{tool}({skill}{argument}={json.dumps(address, ensure_ascii=False)})"


def _show(name: str) -> str:
    """Return the call that the marks of a page name, with a place for the ids."""
    return _call("read_skill_nodes", "ids", name)("{ids}")


def _ordinals(index: SkillIndex, asked: ReadNodes) -> list[int]:
    """Return the nodes that are asked for.

    Raises:
        SettingsError: Not exactly one way to name them is used.
        NodeNotFoundError: Nothing is there.
    """
    given = [each for each in (asked.ids, asked.section, asked.lines) if each is not None]
    if len(given) != 1:
        raise SettingsError("Give exactly one of ids, section and lines: it says which nodes to read.")
    if asked.section is not None:
        return find_section(index, asked.section)
    return find_nodes(index, [_address(asked.lines) if asked.lines is not None else given[0]])


def _address(lines: str) -> str:
    match = _LINES.fullmatch(lines.strip())
    if not match:
        raise NodeNotFoundError(
            f'{lines[:80]!r} is no range of lines: write such as "30-57" or "api.md:30-57".'
        )
    return f"{match[1]}L{match[2]}-{match[3] or match[2]}"


def _first_line(asked: ReadNodes) -> int:
    match = _LINES.fullmatch((asked.lines or "").strip())
    return int(match[2]) if match else 0


TOOLS: dict[str, SkillTool] = {
    "list_skills": SkillTool(
        "List the skills, each with what it is for.",
        input_schema(ListSkills),
        SKILLS_SCHEMA,
        lambda tools, values, _: tools.list_skills(checked(ListSkills, values)),
    ),
    "load_skill": SkillTool(
        "Load the part of a skill that a task needs. Marks show what is left out and how to read it.",
        input_schema(LoadSkill),
        READING_SCHEMA,
        lambda tools, values, memory: tools.load_skill(checked(LoadSkill, values), memory),
    ),
    "read_skill_nodes": SkillTool(
        "Read parts of a skill word for word, named by one of ids, section or lines.",
        input_schema(ReadNodes),
        READING_SCHEMA,
        lambda tools, values, memory: tools.read_skill_nodes(checked(ReadNodes, values), memory),
    ),
    "get_skill_outline": SkillTool(
        "List the headings and parts of a skill: id, type, lines, tokens, first words.",
        input_schema(GetOutline),
        READING_SCHEMA,
        lambda tools, values, _: tools.get_skill_outline(checked(GetOutline, values)),
    ),
}

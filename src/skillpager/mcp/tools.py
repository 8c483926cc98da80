"""The tools of the MCP server.

A name means a skill of the library, never a path. Every reply stays within a ceiling of tokens; where it
leaves something out, a mark names the tool call that reads it.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from skillpager.errors import NodeNotFoundError, SettingsError
from skillpager.json_types import JsonObject
from skillpager.library import Library
from skillpager.library.routing.route_text import skill_tokens
from skillpager.library.several.assemble import common_tag
from skillpager.mcp import library_replies, replies, schemas
from skillpager.mcp.memory import Memory
from skillpager.mcp.options import Ceiling, ToolOptions
from skillpager.mcp.replies import ReadOn, Reply
from skillpager.pages.addresses import find_nodes, find_section
from skillpager.pages.gaps import folder_line
from skillpager.parsing.folder import read_own_file
from skillpager.parsing.lines import split_lines
from skillpager.parsing.skill import own_folder
from skillpager.types import SkillIndex, Style

_LINES = re.compile(r"((?:[^\s:,]+:)?)L?(\d+)(?:-L?(\d+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a reply is for.

    Attributes:
        memory: What the session was sent, and which skills its user started.
        ceiling: How much its host shows of a reply.
        by_user: Whether the user asks, who may start every skill, and not the model.
    """

    memory: Memory
    ceiling: Ceiling
    by_user: bool = False


class SkillTools:
    """The tools over the skills of a library. Thread-safe."""

    def __init__(self, library: Library, options: ToolOptions) -> None:
        self._library = library
        self._pager = library.pager
        self._options = options
        # gaps must be marked, and the style `plain` has no marks
        self._style = Style.XML if library.pager.settings.style == Style.XML else Style.MARKED

    def call(self, name: str, values: Mapping[str, object], caller: Caller) -> Reply:
        """Return the reply of a tool of `TOOLS` to its arguments.

        The server adds what the reply holds to the session's memory, once that is on its way.

        Raises:
            SettingsError: The tool is unknown, or an argument is not valid.
            SkillPagerError: The skill cannot be found or read.
        """
        if name not in TOOLS:
            raise SettingsError(f"There is no tool {name[:80]!r}: there are {', '.join(TOOLS)}.")
        tool = TOOLS[name]
        return tool.answer(self, schemas.checked(tool.arguments, values), caller)

    def list_skills(self, asked: schemas.ListSkills, caller: Caller) -> Reply:
        """Return the skills on offer, by name."""
        skills = [
            skill for skill in self._library.skills(for_model=True) if skill.name >= (asked.start or "")
        ]
        counter, read_on = self._pager.token_counter, _call("list_skills", "start")
        return self._within(lambda limit: replies.list_reply(skills, limit, counter, read_on), caller)

    def search_skills(self, asked: schemas.SearchSkills, caller: Caller) -> Reply:
        """Return the skills that a query needs, best first, or the nearest ones if none seems to fit."""
        route = self._library.route(asked.query, k=asked.k, for_model=True)
        counter, settings = self._pager.token_counter, self._pager.settings
        scope = self._options.scope or settings.scope
        tokens = [
            skill_tokens(routed.skill, counter, scope=scope, max_bytes=settings.max_bytes)
            for routed in route.skills
        ]
        return self._within(lambda limit: library_replies.search_reply(route, tokens, limit, counter), caller)

    def load_skill(self, asked: schemas.LoadSkill, caller: Caller) -> Reply:
        """Return the page of a skill for a query, the whole skill, or its outline.

        Without a name it is the page of the skills that the query needs. A skill that only the user may start
        is refused until the user has. The other tools read on where its page ends, so they take its name.
        """
        query, name = (asked.query or "").strip(), asked.name
        if name is None:
            return self._routed(asked, query, caller)
        started = caller.by_user or caller.memory.is_started(name)
        index = self._library.index(name, scope=self._options.scope, for_model=not started)
        if asked.mode == "page" and not query:
            raise SettingsError('The mode "page" needs a query: say what you are about to do.')
        if query and asked.mode in ("page", "auto"):
            return self._page(name, asked, query, index, caller)
        whole = None if asked.mode == "outline" else self._whole(name, asked, index, caller)
        if whole is None or (whole.cut and asked.mode == "auto"):
            return self._map(name, index, asked.budget_tokens, caller)
        return whole.of(index.key)

    def _routed(self, asked: schemas.LoadSkill, query: str, caller: Caller) -> Reply:
        """Return the page of the skills that a query needs, or that none seems to fit."""
        if not query or asked.mode in ("full", "outline"):
            raise SettingsError(
                "Without a name load_skill makes a page for a query: say in query what you are about to do, "
                "and leave out mode; or name a skill that list_skills shows."
            )
        counter, ceiling = self._pager.token_counter, caller.ceiling.tokens

        def page(limit: int | None) -> Reply:
            made = self._library.page(
                query,
                max_tokens=limit,
                fill=asked.fill or None,
                scope=self._options.scope,
                style=self._style,
                show=lambda skill: _show(skill.name),
                folder=True,
                known=lambda key: self._known(asked, key, caller.memory),
            )
            return library_replies.library_page_reply(
                made,
                limit=ceiling if limit is None else limit,
                counter=counter,
                tag=common_tag([self._index(part.skill.name) for part in made.parts]),
                asked=limit is not None and limit == asked.budget_tokens,
            )

        return self._within_budget(page, asked.budget_tokens, caller)

    def read_skill_nodes(self, asked: schemas.ReadNodes, caller: Caller) -> Reply:
        """Return nodes of a skill, including those that the session was sent before."""
        if asked.file is not None and asked.ids is asked.section is None:
            return self._file(asked, asked.file, caller)
        index = self._index(asked.name)
        if asked.file is not None or [asked.ids, asked.section, asked.lines].count(None) != 2:
            raise SettingsError(
                "Give exactly one of ids, section, lines and file: it says what to read. Only file may have "
                "lines beside it."
            )
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

        return self._within(make, caller).of(index.key)

    def _file(self, asked: schemas.ReadNodes, path: str, caller: Caller) -> Reply:
        """Return a file of a skill's folder, or lines of it."""
        skill = self._library.skill(asked.name)
        if skill.published is not None:
            raise NodeNotFoundError(
                f"{path[:80]!r} is not in the library: of a published skill it has the Markdown files alone."
            )
        text = read_own_file(skill.path, path)
        count = len(split_lines(text))
        lines = range(1, count + 1)
        if asked.lines is not None:
            match = _LINES.fullmatch(asked.lines.strip())
            first = int(match[2]) if match and not match[1] else 0
            if match is None or not 1 <= first <= count:
                raise NodeNotFoundError(
                    f"{asked.lines[:80]!r} are no lines of {path[:80]!r}, which has {count}: name lines "
                    f'such as "1-{count}".'
                )
            lines = range(first, min(int(match[3] or first), count) + 1)
        counter = self._pager.token_counter
        read_on = _call("read_skill_nodes", "lines", asked.name, path)
        return self._within(
            lambda limit: replies.file_reply(
                asked.name, path, text, lines, limit=limit, counter=counter, read_on=read_on
            ),
            caller,
        )

    def get_skill_outline(self, asked: schemas.GetOutline, caller: Caller) -> Reply:
        """Return a map of a skill, or all its headings and nodes."""
        index = self._index(asked.name)
        if not asked.nodes and asked.start is None:
            return self._map(asked.name, index, None, caller)
        start = find_nodes(index, [asked.start])[0] if asked.start else 0
        counter, read_on = self._pager.token_counter, _call("get_skill_outline", "start", asked.name)
        return self._within(
            lambda limit: replies.nodes_outline_reply(index, start, limit, counter, read_on), caller
        )

    def _page(
        self, name: str, asked: schemas.LoadSkill, query: str, index: SkillIndex, caller: Caller
    ) -> Reply:
        key = self._pager.pool(index).key
        style, show, known = self._style, _show(name), self._known(asked, key, caller.memory)
        counter, ceiling = self._pager.token_counter, caller.ceiling.tokens

        def page(limit: int | None) -> Reply:
            made = self._pager.page(
                index,
                query,
                max_tokens=limit,
                fill=asked.fill or None,
                style=style,
                show=show,
                folder=True,
                known=known,
            )
            by_caller = limit == asked.budget_tokens
            most = ceiling if limit is None else limit
            return replies.page_reply(made, index, "page", limit=most, counter=counter, asked=by_caller)

        return self._within_budget(page, asked.budget_tokens, caller).of(key)

    def _whole(self, name: str, asked: schemas.LoadSkill, index: SkillIndex, caller: Caller) -> Reply:
        style, show, known = self._style, _show(name), self._known(asked, index.key, caller.memory)

        def make(limit: int) -> Reply:
            most = min(limit, asked.budget_tokens or limit)
            made = self._pager.whole(index, max_tokens=most, style=style, show=show, folder=True, known=known)
            by_caller = asked.mode == "full" and most != limit
            return replies.page_reply(
                made, index, "full", limit=most, counter=self._pager.token_counter, asked=by_caller
            )

        return self._within(make, caller)

    def _map(self, name: str, index: SkillIndex, budget: int | None, caller: Caller) -> Reply:
        counter, show, list_nodes = self._pager.token_counter, _show(name), _list_nodes(name)
        folder = folder_line(index.skill, own_folder(index.skill))

        def make(limit: int) -> Reply:
            most = min(limit, budget or limit)
            return replies.map_reply(index, most, counter, show=show, list_nodes=list_nodes, folder=folder)

        return self._within(make, caller)

    def _index(self, name: str) -> SkillIndex:
        return self._library.index(name, scope=self._options.scope)

    def _within(self, make: Callable[[int], Reply], caller: Caller) -> Reply:
        counter = self._pager.token_counter
        return replies.within(make, caller.ceiling, counter, structured=self._options.structured)

    def _within_budget(
        self, page: Callable[[int | None], Reply], budget: int | None, caller: Caller
    ) -> Reply:
        """Return a page under the caller's budget; without one the page that ends by itself, if it fits."""
        counter = self._pager.token_counter

        def make(limit: int) -> Reply:
            if budget is not None:
                return page(min(limit, budget))
            free = page(None)  # under a limit, strategies that do not stop by themselves would fill the page
            return free if counter.count(free.text) <= limit else page(limit)

        return self._within(make, caller)

    def _known(self, asked: schemas.LoadSkill, key: str, memory: Memory) -> Collection[str]:
        return () if self._options.resend or asked.resend else memory.sent(key)


@dataclass(frozen=True, slots=True)
class SkillTool:
    """A tool: its description for a model, its arguments, and the method of `SkillTools` that answers."""

    description: str
    arguments: type[schemas.Arguments]
    output_schema: JsonObject
    answer: Callable[[SkillTools, Any, Caller], Reply]


def _call(tool: str, argument: str, name: str | None = None, file: str | None = None) -> ReadOn:
    """Return a function from an address to the tool call that reads it."""
    skill = "" if name is None else f"name={json.dumps(name, ensure_ascii=False)}, "
    skill += "" if file is None else f"file={json.dumps(file, ensure_ascii=False)}, "
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
    "search_skills": SkillTool(
        "Find skills for a task: the best ones with their chances, or that none seems to fit.",
        schemas.SearchSkills,
        schemas.SEARCH_SCHEMA,
        SkillTools.search_skills,
    ),
    "load_skill": SkillTool(
        "Load the part of a skill that a task needs; without a name, of those skills that the query needs.",
        schemas.LoadSkill,
        schemas.READING_SCHEMA,
        SkillTools.load_skill,
    ),
    "read_skill_nodes": SkillTool(
        "Read parts of a skill verbatim, or a file of its folder; give one of ids, section, lines, file.",
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

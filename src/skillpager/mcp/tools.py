"""The tools of the MCP server; the SDK derives their schemas and descriptions from signatures and docstrings.

A name means a skill of the library, never a path. Every reply stays within a ceiling of tokens; where it
leaves something out, a mark names the tool call that reads it.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from skillpager.errors import NodeNotFoundError, SettingsError
from skillpager.library import Library, LibraryPage, RefusalReason
from skillpager.mcp import replies
from skillpager.mcp.options import Ceiling, Memory, ToolOptions
from skillpager.mcp.replies import (
    Form,
    GapForm,
    Kind,
    Limit,
    NamedSkill,
    NodeForm,
    ReadingForm,
    ReadOn,
    SearchedSkill,
    SearchForm,
    SkillsForm,
    cut_mark,
    gap_form,
    node_forms,
    reading,
)
from skillpager.output.formatting import chance_words, snippet
from skillpager.pages.gaps import folder_line, notice_of, omissions_of, skill_tag, tag_of
from skillpager.parsing.folder import read_own_file
from skillpager.parsing.lines import split_lines
from skillpager.parsing.skill import own_folder
from skillpager.types import Node, Omission, Page, SkillIndex, Style

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

DEFAULT_SEARCHED = 5
# most skills that one search returns
MAX_SEARCHED = 50
# characters of a description in a list: all that the Agent Skills specification allows
DESCRIPTION_CHARS = 1024
# the same in the answer to a search, which is read to choose
SEARCHED_CHARS = 300

_LINES = re.compile(r"((?:[^\s:,]+:)?)L?(\d+)(?:-L?(\d+))?", re.IGNORECASE)

SkillName = Annotated[str, Field(description="A name that list_skills shows.")]
Query = Annotated[str, Field(description="What you are about to do, in a sentence.")]
Mode = Literal["auto", "page", "outline", "full"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: its methods are the tools, their docstrings the descriptions that a model reads.

    They raise `SettingsError` for arguments that are not valid, and `SkillPagerError` for a skill that cannot
    be found or read.

    Attributes:
        library: The skills on offer.
        pager: Makes their pages.
        options: Options of the server.
        memory: What the session was sent, and which skills its user started.
        ceiling: How much its host shows of a reply.
        by_user: Whether the user asks, who may start every skill, and not the model.
        sending: Ids of the nodes in the reply, by index key, for `memory` when the reply is on its way.
    """

    library: Library
    pager: "SkillPager"
    options: ToolOptions
    memory: Memory
    ceiling: Ceiling
    by_user: bool = False
    sending: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def list_skills(
        self, start: Annotated[str, Field(description="To read on: begin with this name.")] = ""
    ) -> SkillsForm:
        """List the skills and what each is for."""
        listed: list[NamedSkill] = [
            {"name": skill.name, "description": snippet(skill.description, DESCRIPTION_CHARS)}
            for skill in self.library.skills(for_model=True)
            if skill.name >= start
        ]
        lines = [f"- {': '.join(filter(None, (each['name'], each['description'])))}\n" for each in listed]
        tag, read_on = tag_of(*lines), _call("list_skills", "start")

        def render(shown: int) -> str:
            mark = cut_mark(read_on(listed[shown]["name"]), tag) if shown < len(listed) else ""
            return notice_of(tag) + ("".join(lines[:shown]) or "There are no skills.\n") + mark

        def make(limit: Limit) -> SkillsForm:
            shown, text = limit.most(render, len(listed))
            return {"text": text, "skills": listed[:shown], "complete": shown == len(listed)}

        return self._within(make)

    def search_skills(
        self,
        query: Query,
        k: Annotated[int, Field(ge=1, le=MAX_SEARCHED, description="Most skills.")] = DEFAULT_SEARCHED,
    ) -> SearchForm:
        """Find skills for a task: the best ones with their chances, or that none seems to fit."""
        # arrays, which a list of tools does not need
        from skillpager.library.routing.route_text import no_fit_words, reason_words, skill_tokens

        route = self.library.route(query, k=k, for_model=True)
        settings = self.pager.settings
        scope = self.options.scope or settings.scope
        found: list[SearchedSkill] = []
        lines: list[str] = []
        for each in route.skills:
            counter, most = self.pager.token_counter, settings.max_bytes
            size = skill_tokens(each.skill, counter, scope=scope, max_bytes=most)
            description, reason = snippet(each.skill.description, SEARCHED_CHARS), reason_words(each)
            form: SearchedSkill = {
                "name": each.skill.name,
                "description": description,
                "chance": round(each.chance, replies.DIGITS),
                "reason": reason,
                "tokens": size,
            }
            found.append(form)
            head = f"- {each.skill.name} ({chance_words(each.chance)}, {size:,} tokens)"
            lines.append(f"{head}{': ' if description else ''}{description}\n  why: {reason}\n")
        head = no_fit_words(route)
        head = head or f"The best of {route.searched:,} skills, each with the chance that the task needs it:"

        def make(limit: Limit) -> SearchForm:
            shown, text = limit.most(lambda count: f"{head}\n{''.join(lines[:count])}", len(lines))
            return {
                "text": text,
                "fits": round(route.fits, replies.DIGITS),
                "has_fit": route.has_fit,
                "searched": route.searched,
                "skills": found[:shown],
                "complete": shown == len(lines),
            }

        return self._within(make)

    def load_skill(
        self,
        name: Annotated[
            str,
            Field(
                description="A name that list_skills or search_skills shows. "
                "Without it: those the query needs."
            ),
        ] = "",
        query: Query = "",
        budget_tokens: Annotated[int | None, Field(ge=1, description="Most tokens of the text.")] = None,
        fill: Annotated[
            bool, Field(description="Use budget_tokens up, beyond what the query needs.")
        ] = False,
        mode: Annotated[
            Mode,
            Field(
                description="auto: a page for the query; "
                "without a query the whole skill if it fits, else outline."
            ),
        ] = "auto",
        resend: Annotated[bool, Field(description="Also send parts that you were sent before.")] = False,
    ) -> ReadingForm:
        """Load the part of a skill that a task needs; without a name, of those skills that the query needs."""  # noqa: E501  it is a text for models
        query = query.strip()
        if not name:
            if not query or mode in ("full", "outline"):
                raise SettingsError(
                    "Without a name load_skill makes a page for a query: say in query what you are about to "
                    "do, and leave out mode; or name a skill that list_skills shows."
                )
            return self._page_of_several(query, budget_tokens, fill=fill, resend=resend)
        # the other tools read on where its page ends, whoever started it
        started = self.by_user or self.memory.is_started(name)
        index = self.library.index(name, scope=self.options.scope, for_model=not started)
        if mode == "page" and not query:
            raise SettingsError('The mode "page" needs a query: say what you are about to do.')
        if query and mode in ("page", "auto"):
            return self._page(index, query, budget_tokens, fill=fill, resend=resend)
        if mode != "outline":
            whole = self._whole(index, budget_tokens, mode=mode, resend=resend)
            if mode == "full" or all(gap["known"] for gap in whole["omitted"]):
                return whole
        self.sending.clear()
        return self._map(index, budget_tokens)

    def _page_of_several(self, query: str, budget: int | None, *, fill: bool, resend: bool) -> ReadingForm:
        """Return the page of the skills that a query needs, or that none seems to fit."""

        def make(limit: Limit, most: int | None) -> ReadingForm:
            page = self.library.page(
                query,
                max_tokens=most,
                fill=fill or None,
                scope=self.options.scope,
                style=self._style,
                show=lambda skill: _show(skill.name),
                folder=True,
                known=lambda key: self._known(key, resend=resend),
            )
            return self._form_of_several(page, limit, asked=most is not None and most == budget)

        return self._within_budget(make, budget)

    def _form_of_several(self, page: LibraryPage, limit: Limit, *, asked: bool) -> ReadingForm:
        from skillpager.library.page_maker import common_tag

        parts = page.parts
        complete = bool(parts) and all(part.page.complete for part in parts)
        tag = common_tag([self._index(part.skill.name) for part in parts])
        text = replies.page_text(page, limit, tag=tag, asked=asked, empty=not parts, complete=complete)
        nodes: list[NodeForm] = []
        omitted: list[GapForm] = []
        self.sending.clear()
        for part in parts:
            self._send(part.key, part.page.nodes)
            nodes += [{**form, "skill": part.skill.name} for form in _page_nodes(part.page)]
            omitted += [{**form, "skill": part.skill.name} for form in map(gap_form, part.page.omitted)]
        form = reading(
            "page" if parts else "none",
            (", ".join(part.skill.name for part in parts), page.full_tokens),
            text,
            limit,
            complete=complete,
            nodes=nodes,
            omitted=omitted,
            page=page,
        )
        form["parts"] = [
            {
                "skill": part.skill.name,
                "chance": round(part.chance, replies.DIGITS),
                "tokens": part.page.tokens,
                "full_tokens": part.page.full_tokens,
            }
            for part in parts
        ]
        form["refused"] = [
            {"skill": each.skill.name, "chance": round(each.chance, replies.DIGITS), "detail": each.detail}
            for each in page.refused
            if each.reason is not RefusalReason.USER_ONLY  # a model is not told of these
        ]
        return form

    def _page(
        self, index: SkillIndex, query: str, budget: int | None, *, fill: bool, resend: bool
    ) -> ReadingForm:
        """Return the page of a skill for a query."""
        key = self.pager.pool(index).key

        def make(limit: Limit, most: int | None) -> ReadingForm:
            page = self.pager.page(
                index,
                query,
                max_tokens=most,
                fill=fill or None,
                style=self._style,
                show=_show(index.skill.name),
                folder=True,
                known=self._known(key, resend=resend),
            )
            return self._form_of_page("page", page, index, key, limit, asked=most == budget)

        return self._within_budget(make, budget)

    def _whole(self, index: SkillIndex, budget: int | None, *, mode: Mode, resend: bool) -> ReadingForm:
        """Return a whole skill as far as it fits."""

        def make(limit: Limit) -> ReadingForm:
            most = limit.at_most(budget)
            page = self.pager.whole(
                index,
                max_tokens=most.tokens,
                style=self._style,
                show=_show(index.skill.name),
                folder=True,
                known=self._known(index.key, resend=resend),
            )
            asked = mode == "full" and most.tokens != limit.tokens
            return self._form_of_page("full", page, index, index.key, most, asked=asked)

        return self._within(make)

    def _form_of_page(
        self, kind: Kind, page: Page, index: SkillIndex, key: str, limit: Limit, *, asked: bool
    ) -> ReadingForm:
        text = replies.page_text(
            page,
            limit,
            tag=skill_tag(index.skill),
            asked=asked,
            empty=not page.nodes,
            complete=page.complete,
        )
        if not index.nodes:
            text = "This skill has no text besides its description.\n"
        form = reading(
            kind,
            index,
            text,
            limit,
            complete=page.complete,
            nodes=_page_nodes(page),
            omitted=page.omitted,
            page=page,
        )
        if page.selection:
            form["score_kind"] = str(page.selection.score_kind)
        self._send(key, page.nodes)
        return form

    def _map(self, index: SkillIndex, budget: int | None) -> ReadingForm:
        from skillpager.output.outline import outline_map

        name = index.skill.name
        list_nodes = f"get_skill_outline(name={json.dumps(name, ensure_ascii=False)}, nodes=true)"
        folder = folder_line(index.skill, own_folder(index.skill))

        def make(limit: Limit) -> ReadingForm:
            limit = limit.at_most(budget)
            most, counter = limit.tokens, limit.counter
            made = outline_map(
                index, counter, show=_show(name), list_nodes=list_nodes, folder=folder, max_tokens=most
            )
            if not limit.holds(made.text):
                raise limit.nothing_fits()
            return reading("outline", index, made.text, limit, complete=not made.folded)

        return self._within(make)

    def read_skill_nodes(
        self,
        name: SkillName,
        ids: Annotated[str, Field(description='Ids, ranges and lines, such as "n3-n5, n9, L30-57".')] = "",
        section: Annotated[str, Field(description="Title of a heading.")] = "",
        lines: Annotated[str, Field(description='Such as "30-57" or "references/api.md:30-57".')] = "",
        file: Annotated[str, Field(description='Another text file of the skill, as "scripts/run.sh".')] = "",
    ) -> ReadingForm:
        """Read parts of a skill verbatim, or a file of its folder; give one of ids, section, lines, file."""
        from skillpager.pages.addresses import find_nodes, find_section

        if file and not ids and not section:
            return self._file(name, file, lines)
        index = self._index(name)
        if file or sum(map(bool, (ids, section, lines))) != 1:
            raise SettingsError(
                "Give exactly one of ids, section, lines and file: it says what to read. Only file may have "
                "lines beside it."
            )
        first_line = 0
        if section:
            ordinals = find_section(index, section)
        elif lines:
            match = _LINES.fullmatch(lines.strip())
            if not match:
                raise NodeNotFoundError(
                    f'{lines[:80]!r} is not a range of lines, such as "30-57" or "api.md:30-57".'
                )
            first_line = int(match[2])
            ordinals = find_nodes(index, [f"{match[1]}L{match[2]}-{match[3] or match[2]}"])
        else:
            ordinals = find_nodes(index, [ids])
        asked = [index.nodes[ordinal] for ordinal in ordinals]

        def make(limit: Limit) -> ReadingForm:
            node_ids = [node.id for node in asked]
            page = self.pager.expand(index, node_ids, max_tokens=limit.tokens, style=self._style)
            self._send(index.key, page.nodes)
            if not page.nodes:
                return self._long_node(index, asked, first_line, limit)
            last = page.nodes[-1].ordinal
            left = omissions_of([node for node in asked if node.ordinal > last], ())
            text = f"{page.text.rstrip()}\n\n{_rest_mark(index, left)}" if left else page.text
            omitted = (*page.omitted, *left)
            nodes = node_forms(page.nodes)
            return reading("nodes", index, text, limit, complete=not left, nodes=nodes, omitted=omitted)

        return self._within(make)

    def _long_node(
        self, index: SkillIndex, asked: Sequence[Node], first_line: int, limit: Limit
    ) -> ReadingForm:
        """Return the lines that fit of `asked[0]`, a node too large for one reply, from `first_line` on."""
        node, *after = asked
        file, last = node.span.file, node.span.end_line
        first = min(max(first_line, node.span.start_line), last)
        where = "" if file == index.skill.files[0].path else f"{file}:"
        read_lines = _call("read_skill_nodes", "lines", index.skill.name)
        left = omissions_of(after, ())
        lines = split_lines(node.text)[first - node.span.start_line :]
        shown, text = replies.excerpt(
            lines,
            first,
            limit,
            tag=skill_tag(index.skill),
            read_on=lambda rows: read_lines(f"{where}{rows}"),
            remedy="read it in the file",
            where=f" of {file}",
            rest=_rest_mark(index, left),
        )
        cut = shown < len(lines)
        omitted = [Omission(file, first + shown, last, (node.id,), {}, 0)] if cut else []
        complete = not cut and not after
        return reading("nodes", index, text, limit, complete=complete, omitted=[*omitted, *left])

    def _file(self, name: str, path: str, asked: str) -> ReadingForm:
        """Return a file of a skill's folder, or lines of it."""
        skill = self.library.skill(name)
        if skill.published is not None:
            raise NodeNotFoundError(
                f"{path[:80]!r} is not in the library: of a published skill it has the Markdown files alone."
            )
        rows = split_lines(text := read_own_file(skill.path, path))
        first, last = 1, len(rows)
        if asked:
            match = _LINES.fullmatch(asked.strip())
            first = int(match[2]) if match and not match[1] else 0
            if match is None or not 1 <= first <= last:
                raise NodeNotFoundError(
                    f"{asked[:80]!r} are no lines of {path[:80]!r}, which has {last}: name lines "
                    f'such as "1-{last}".'
                )
            last = min(int(match[3] or first), last)
        rows, tag = rows[first - 1 : last], tag_of(path, text)
        read_on = _call("read_skill_nodes", "lines", name, path)

        def make(limit: Limit) -> ReadingForm:
            remedy = "work on the file with a program"
            shown, part = replies.excerpt(rows, first, limit, tag=tag, read_on=read_on, remedy=remedy)
            complete, skill = shown == len(rows), (name, limit.counter.count(text))
            omitted = [] if complete else [Omission(path, first + shown, last, (), {}, 0)]
            return reading("file", skill, part, limit, complete=complete, omitted=omitted)

        return self._within(make)

    def get_skill_outline(
        self,
        name: SkillName,
        nodes: Annotated[
            bool, Field(description="List every node instead: id, type, lines, tokens, first words.")
        ] = False,
        start: Annotated[
            str, Field(description='To read on in that list: begin with this node, as "n120".')
        ] = "",
    ) -> ReadingForm:
        """Get a map of a skill: its headings with lines, tokens, and the types of their nodes."""
        from skillpager.output.outline import outline_lines, summary
        from skillpager.pages.addresses import find_nodes

        index = self._index(name)
        if not nodes and not start:
            return self._map(index, None)
        first = find_nodes(index, [start])[0] if start else 0
        rows = list(outline_lines(index))
        if first:
            rows = rows[next(row for row, (_, node) in enumerate(rows) if node and node.ordinal == first) :]
        tag, read_on = skill_tag(index.skill), _call("get_skill_outline", "start", name)

        def left(shown: int) -> list[Node]:
            return [node for _, node in rows[shown:] if node]

        def render(shown: int) -> str:
            lines = [summary(index), *(line for line, _ in rows[:shown]), ""]
            mark = cut_mark(read_on(left(shown)[0].id), tag) if left(shown) else ""
            return notice_of(tag) + "\n".join(lines) + mark

        def make(limit: Limit) -> ReadingForm:
            shown, text = limit.most(render, len(rows))
            listed = node_forms([node for _, node in rows[:shown] if node])
            complete, omitted = not left(shown) and not first, omissions_of(left(shown), ())
            return reading("outline", index, text, limit, complete=complete, nodes=listed, omitted=omitted)

        return self._within(make)

    # ---- shared by the tools

    @property
    def _style(self) -> Style:
        # gaps must be marked, and the style `plain` has no marks
        return Style.XML if self.pager.settings.style == Style.XML else Style.MARKED

    def _index(self, name: str) -> SkillIndex:
        return self.library.index(name, scope=self.options.scope)

    def _known(self, key: str, *, resend: bool) -> Collection[str]:
        return () if self.options.resend or resend else self.memory.sent(key)

    def _send(self, key: str, nodes: Sequence[Node]) -> None:
        self.sending[key] = tuple(node.id for node in nodes)

    def _within(self, make: Callable[[Limit], Form]) -> Form:
        structured = self.options.structured
        return replies.within(make, self.ceiling, self.pager.token_counter, structured=structured)

    def _within_budget(
        self, make: Callable[[Limit, int | None], ReadingForm], budget: int | None
    ) -> ReadingForm:
        """Return a page under the caller's budget; without one the page that ends by itself, if it fits.

        `make` has the limit of the text, and that of the page, which ends by itself if it is None.
        """
        whole = Limit(self.ceiling.tokens, self.pager.token_counter)

        def make_within(limit: Limit) -> ReadingForm:
            if budget is None:
                # under a limit, strategies that do not stop by themselves would fill the page
                free = make(whole, None)
                if limit.holds(free["text"]):
                    return free
            limit = limit.at_most(budget)
            return make(limit, limit.tokens)

        return self._within(make_within)


TOOLS = (
    ToolCall.list_skills,
    ToolCall.search_skills,
    ToolCall.load_skill,
    ToolCall.read_skill_nodes,
    ToolCall.get_skill_outline,
)


def _page_nodes(page: Page) -> list[NodeForm]:
    """Return the nodes of a page with the scores of those that were picked."""
    picks = page.selection.picks if page.selection else ()
    return node_forms(page.nodes, {pick.node.id: pick.marginal for pick in picks})


def _rest_mark(index: SkillIndex, left: Sequence[Omission]) -> str:
    """Return the mark that names the call for nodes that were asked for and left out, if there are any."""
    read_on = _call("read_skill_nodes", "ids", index.skill.name)
    return cut_mark(read_on(", ".join(map(replies.node_range, left))), skill_tag(index.skill)) if left else ""


def _call(tool: str, argument: str, name: str | None = None, file: str | None = None) -> ReadOn:
    """Return a function from an address to the tool call that reads it."""
    skill = "" if name is None else f"name={json.dumps(name, ensure_ascii=False)}, "
    skill += "" if file is None else f"file={json.dumps(file, ensure_ascii=False)}, "
    return lambda address: f"{tool}({skill}{argument}={json.dumps(address, ensure_ascii=False)})"


def _show(name: str) -> str:
    """Return the tool call that the legend of a page names, with a placeholder for the lines."""
    return _call("read_skill_nodes", "ids", name)("{ids}")

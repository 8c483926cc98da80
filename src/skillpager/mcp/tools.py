"""The tools of the MCP server; the SDK derives their schemas and descriptions from signatures and docstrings.

A name means a skill of the library, never a path. Every reply is a text within a ceiling of tokens; where it
leaves something out, a mark names the tool call that reads it.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import StringIO
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from skillpager.display_text import chance_words, snippet, too_few_tokens
from skillpager.errors import NodeNotFoundError, SettingsError
from skillpager.library import Library, LibraryPage
from skillpager.pages.marks import omissions_of
from skillpager.pages.render import folder_words, notice_of, skill_tag, tag_of
from skillpager.parsing.folder import own_folder, read_own_file
from skillpager.settings import MAX_QUERY_CHARS
from skillpager.tokens import count_tokens
from skillpager.types import Node, Page, SkillIndex, Style

# tokens of a reply: below what any known host cuts off (Claude Code: 25,000 of its own, claude-code#10456)
DEFAULT_CEILING = 12_000
# the marks alone of a page with many gaps take some hundred tokens
LEAST_CEILING = 1_000
DEFAULT_SEARCHED, MAX_SEARCHED = 5, 50  # skills that one search returns
# characters of a description in a list: all that the Agent Skills specification allows
DESCRIPTION_CHARS = 1024
FORCE_HINT = "for a map: get_skill_outline; for the page nevertheless: the same call with force=true"
SEARCHED_CHARS = 300  # of one in the answer to a search, which is read to choose

_LINES = re.compile(r"((?:[^\s:,]+:)?)L?(\d{1,9})(?:-L?(\d{1,9}))?", re.IGNORECASE)

SkillName = Annotated[str, Field(description="A name that list_skills shows.")]
Query = Annotated[
    str, Field(max_length=MAX_QUERY_CHARS, description="What you are about to do, in a sentence.")
]
Context = Annotated[
    str, Field(max_length=MAX_QUERY_CHARS, description='Your situation, such as "TypeScript, Linux".')
]
Mode = Literal["auto", "page", "outline", "full"]
Made = TypeVar("Made", Page, LibraryPage)


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The most tokens of a reply, and whether to send again the nodes that a session was sent."""

    ceiling: int = DEFAULT_CEILING
    resend: bool = False

    def __post_init__(self) -> None:
        if self.ceiling < LEAST_CEILING:
            raise SettingsError(f"The ceiling is {self.ceiling} tokens: it must be {LEAST_CEILING} or more.")


@dataclass(frozen=True, slots=True)
class Memory:
    """A record of one session: the ids of the nodes that it was sent, and the skills that its user started.

    Nodes are recorded by index key: a changed skill has another one, so its nodes count as not sent.
    """

    sent: dict[str, frozenset[str]] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool: its methods are the tools, their docstrings the descriptions that a model reads.

    `by_user` says that the user asks, who may start every skill, and not the model. `sending` are the ids of
    the nodes in the reply, by index key, for `memory` when the reply is sent.
    """

    library: Library
    options: ToolOptions
    memory: Memory
    by_user: bool = False
    sending: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def list_skills(
        self, start: Annotated[str, Field(description="To read on: begin with this name.")] = ""
    ) -> str:
        """List the skills and what each is for."""
        skills = [skill for skill in self.library.skills(for_model=True) if skill.name >= start]
        lines = [
            f"- {': '.join(filter(None, (skill.name, snippet(skill.description, DESCRIPTION_CHARS))))}\n"
            for skill in skills
        ]
        if not lines:
            return "There are no skills.\n"
        tag = tag_of(*lines)
        return self._cut(
            notice_of(tag),
            lines,
            lambda shown: _cut_mark(_call("list_skills", start=skills[shown].name), tag),
        )

    def search_skills(
        self,
        query: Query,
        k: Annotated[int, Field(ge=1, le=MAX_SEARCHED, description="Most skills.")] = DEFAULT_SEARCHED,
    ) -> str:
        """Find skills for a task: the best ones with their chances, or that none seems to fit."""
        # arrays, which a list of tools does not need
        from skillpager.library.routing.routes import no_fit_words, reason_words

        route = self.library.route(query, k=k, for_model=True)
        pager = self.library.pager
        scope, most = pager.settings.scope, pager.settings.max_bytes
        lines = []
        for each in route.skills:
            size = count_tokens(each.skill.read(scope=scope, max_bytes=most), pager.token_counter)
            head = f"- {each.skill.name} ({chance_words(each.chance)}, {size:,} tokens)"
            description = snippet(each.skill.description, SEARCHED_CHARS)
            lines.append(f"{': '.join(filter(None, (head, description)))}\n  why: {reason_words(each)}\n")
        found = f"The best of {route.searched:,} skills, each with the chance that the task needs it:"
        return self._cut(f"{no_fit_words(route) or found}\n", lines, lambda _: "")

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
        force: Annotated[
            bool, Field(description="A page even if the skill hardly covers the query.")
        ] = False,
        context: Context = "",
    ) -> str:
        """Load the part of a skill that a task needs; without a name, of those skills that the query needs."""  # noqa: E501  it is a text for models
        query = query.strip()
        how: dict[str, Any] = {"fill": fill or None, "force": force, "context": context}
        if not name:
            if not query or mode in ("full", "outline"):
                raise SettingsError(
                    "Without a name load_skill makes a page for a query: say in query what you are about to "
                    "do, and leave out mode; or name a skill that list_skills shows."
                )
            return self._page_of_several(query, budget_tokens, resend, **how)
        # the other tools read on where its page ends, whoever started it
        started = self.by_user or name in self.memory.started
        likely = self.library.pager.for_draft(query) if mode in ("page", "auto") else ""
        index = self.library.index(name, for_model=not started, query=likely)
        if mode == "page" and not query:
            raise SettingsError('The mode "page" needs a query: say what you are about to do.')
        if not index.nodes and mode != "outline":
            return "This skill has no text besides its description.\n"
        if query and mode in ("page", "auto"):
            return self._page(index, query, budget_tokens, resend, **how)
        limit = min(budget_tokens or self.options.ceiling, self.options.ceiling)
        if mode != "outline":
            page = self.library.pager.whole(
                index,
                max_tokens=limit,
                style=self._style,
                show=_show(index.skill.name),
                folder=True,
                known=self._known(index.key, resend=resend),
            )
            if mode == "full" or all(gap.known for gap in page.omitted):
                self._send(index.key, page.nodes)
                return self._page_text(page, limit, skill_tag(index.skill), complete=page.complete)
        return self._map(index, limit)

    def read_skill_nodes(
        self,
        name: SkillName,
        ids: Annotated[str, Field(description='Ids, lines, files: "n3-n5, L30-57, a.md:L2-8, b.md".')] = "",
        section: Annotated[str, Field(description="Title of a heading.")] = "",
        lines: Annotated[str, Field(description='Such as "30-57" or "references/api.md:30-57".')] = "",
        file: Annotated[str, Field(description='Another text file of the skill, as "scripts/run.sh".')] = "",
    ) -> str:
        """Read parts of a skill verbatim, or a file of its folder; give one of ids, section, lines, file."""
        from skillpager.pages.addresses import find_nodes, verbatim_lines

        if file and not ids and not section:
            return self._file(name, file, lines)
        index = self.library.index(name)
        if file or sum(map(bool, (ids, section, lines))) != 1:
            raise SettingsError(
                "Give exactly one of ids, section, lines and file: it says what to read. Only file may have "
                "lines beside it."
            )
        match = _LINES.fullmatch(lines.strip())
        if lines and match is None:
            raise NodeNotFoundError(
                f'{lines[:80]!r} is not a range of lines, such as "30-57" or "api.md:30-57".'
            )
        address = f"{match[1]}L{match[2]}-{match[3] or match[2]}" if match else ids or section
        if asked := verbatim_lines(index, [address], of_nodes=False):
            return self._file(name, asked[0].path, f"{asked[1][0]}-{asked[1][-1]}")
        ordinals = find_nodes(index, [address])
        return self._nodes(index, [index.nodes[ordinal] for ordinal in ordinals])

    def get_skill_outline(
        self,
        name: SkillName,
        nodes: Annotated[
            bool, Field(description="List every node instead: id, type, lines, tokens, first words.")
        ] = False,
        file: Annotated[str, Field(description="A file of the skill, for its headings alone.")] = "",
    ) -> str:
        """Get a map of a skill: its headings with lines, tokens, and the types of their nodes."""
        from skillpager.output.outline import file_part, outline_lines, summary

        index = self.library.index(name)
        index = file_part(index, file) if file else index
        if not nodes:
            return self._map(index, self.options.ceiling)
        rows = list(outline_lines(index))
        return self._cut(
            f"{notice_of(skill_tag(index.skill))}{summary(index)}\n",
            [f"{line}\n" for line, _ in rows],
            lambda shown: _rest_mark(index, [node for _, node in rows[shown:] if node]),
        )

    def _page_of_several(self, query: str, budget: int | None, resend: bool, **how: Any) -> str:
        """Return the page of the skills that a query needs, or that none seems to fit."""
        from skillpager.library.library_page import common_tag

        how |= {"show": lambda skill: _show(skill.name), "known": lambda key: self._known(key, resend=resend)}
        how["hint"] = FORCE_HINT.partition("; ")[2]
        make = partial(self.library.page, query, style=self._style, folder=True, **how)
        page = self._within_ceiling(make, budget)
        for part in page.parts:
            self._send(part.key, part.page.nodes)
        tag = common_tag([self.library.index(part.skill.name, query=query) for part in page.parts])
        complete = all(part.page.complete for part in page.parts)
        return self._page_text(page, budget, tag, complete=complete)

    def _page(self, index: SkillIndex, query: str, budget: int | None, resend: bool, **how: Any) -> str:
        """Return the page of a skill for a query."""
        key = self.library.pager.pool(index).key
        how |= {"show": _show(index.skill.name), "known": self._known(key, resend=resend), "hint": FORCE_HINT}
        make = partial(self.library.pager.page, index, query, style=self._style, folder=True, **how)
        page = self._within_ceiling(make, budget)
        self._send(key, page.nodes)
        # a page without nodes, perhaps with marks of what was sent before, promises nothing
        complete = page.complete or not page.nodes
        return self._page_text(page, budget, skill_tag(index.skill), complete=complete)

    def _within_ceiling(self, make: Callable[..., Made], budget: int | None) -> Made:
        """Return a page under the caller's budget; without one the page that ends by itself, if it fits."""
        if budget is None:
            # under a limit, strategies that do not stop by themselves would fill the page
            page = make()
            if page.tokens <= self.options.ceiling:
                return page
        return make(max_tokens=min(budget or self.options.ceiling, self.options.ceiling))

    def _page_text(self, page: Page | LibraryPage, budget: int | None, tag: str, *, complete: bool) -> str:
        """Return the text of a page, whose last line says with what chance it suffices, if that fits."""
        limit = min(budget or self.options.ceiling, self.options.ceiling)
        if page.least_tokens is not None and (limit < self.options.ceiling or not page.text):
            raise SettingsError(too_few_tokens(page.least_tokens, "budget_tokens"))
        if not page.text:
            raise SettingsError("budget_tokens is too small: not even the omission marks fit. Ask for more.")
        said = ""
        if not complete and page.promise:
            said = f"[Page{tag} {page.promise}]\n"
        if isinstance(page, LibraryPage) and page.parts:
            first, right = page.parts[0], chance_words(page.parts[0].chance)
            said += f"[{first.skill.name}{tag} is a right skill with an estimated chance of {right}]\n"
        longer = f"{page.text}\n{said}" if said else page.text
        return longer if self._count(longer) <= limit else page.text

    def _map(self, index: SkillIndex, limit: int) -> str:
        """Return the headings of a skill."""
        from skillpager.output.outline import outline_map

        name = index.skill.name
        text = outline_map(
            index,
            self.library.pager.token_counter,
            show=_show(name),
            list_nodes=_call("get_skill_outline", name=name, nodes=True),
            list_file=_call("get_skill_outline", name=name, file="{ids}"),
            folder=folder_words(index.skill, own_folder(index.skill)),
            max_tokens=limit,
        )
        if self._count(text) > limit:
            raise SettingsError(f"Nothing fits into {limit} tokens: ask for more budget_tokens.")
        return text

    def _nodes(self, index: SkillIndex, asked: Sequence[Node]) -> str:
        """Return nodes; a mark names the call for those at the end that do not fit."""
        ids = [node.id for node in asked]
        limit = self.options.ceiling
        while True:
            page = self.library.pager.expand(index, ids, max_tokens=limit, style=self._style)
            if not page.nodes:
                span = asked[0].span
                lines = f"{span.start_line}-{span.end_line}"
                read = _call("read_skill_nodes", name=index.skill.name, file=span.file, lines=lines)
                raise SettingsError(f"{asked[0].id} is longer than one reply: read its lines with {read}.")
            left = [node for node in asked if node.ordinal > page.nodes[-1].ordinal]
            text = f"{page.text.rstrip()}\n{_rest_mark(index, left)}" if left else page.text
            over = self._count(text) - self.options.ceiling
            if over <= 0:
                self._send(index.key, page.nodes)
                return text
            limit -= over

    def _file(self, name: str, path: str, asked: str) -> str:
        """Return a file of a skill's folder, or lines of it."""
        skill = self.library.skill(name)
        texts = None if skill.published is None else {f.path: f.text for f in skill.read(scope="skill").files}
        if texts is not None and path not in texts:
            raise NodeNotFoundError(
                f"{path[:80]!r} is not in the library: of a published skill it has the Markdown files alone."
            )
        text = read_own_file(skill.path, path) if texts is None else texts[path]
        rows = StringIO(text, newline="").readlines()  # `splitlines` would also split at form feeds
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
        if not rows:
            return "The file is empty.\n"
        tag = tag_of(path, text)

        def mark(shown: int) -> str:
            lines = f"{first + shown}-{last}"
            return _cut_mark(_call("read_skill_nodes", name=name, file=path, lines=lines), tag)

        return self._cut(notice_of(tag), rows[first - 1 : last], mark)

    def _cut(self, head: str, rows: Sequence[str], mark: Callable[[int], str]) -> str:
        """Return a head and the rows that fit a reply; `mark` names the call for those from an ordinal on."""

        def render(shown: int) -> str:
            return head + "".join(rows[:shown]) + (mark(shown) if shown < len(rows) else "")

        ceiling = self.options.ceiling
        if self._count(whole := render(len(rows))) <= ceiling:
            return whole
        most = bisect_right(range(len(rows)), ceiling, key=lambda shown: self._count(render(shown)))
        # marks differ in length, so one row more may take a token less
        for shown in range(most - 1, 0, -1):
            if self._count(text := render(shown)) <= ceiling:
                return text
        raise SettingsError(
            f"The first line alone is over {ceiling:,} tokens, the most of a reply: read the lines after it, "
            "or work on the file with a program."
        )

    @property
    def _style(self) -> Style:
        # gaps must be marked, and the style `plain` has no marks
        return Style.XML if self.library.pager.settings.style == Style.XML else Style.MARKED

    def _known(self, key: str, *, resend: bool) -> Collection[str]:
        return () if self.options.resend or resend else self.memory.sent.get(key, ())

    def _send(self, key: str, nodes: Sequence[Node]) -> None:
        self.sending[key] = tuple(node.id for node in nodes)

    def _count(self, text: str) -> int:
        return self.library.pager.token_counter.count(text)


TOOLS = (
    ToolCall.list_skills,
    ToolCall.search_skills,
    ToolCall.load_skill,
    ToolCall.read_skill_nodes,
    ToolCall.get_skill_outline,
)


def _cut_mark(call: str, tag: str) -> str:
    """Return the last line of a text that was cut; `tag` is that of its true marks."""
    return f"\n[…{tag} cut here to keep the reply short; go on with: {call}]\n"


def _rest_mark(index: SkillIndex, left: Sequence[Node]) -> str:
    """Return the mark that names the call for nodes that a reply leaves out, if there are any."""
    ranges = ["-".join(dict.fromkeys((gap.nodes[0], gap.nodes[-1]))) for gap in omissions_of(left, ())]
    if not ranges:
        return ""
    read_on = _call("read_skill_nodes", name=index.skill.name, ids=", ".join(ranges))
    return _cut_mark(read_on, skill_tag(index.skill))


def _call(tool: str, **arguments: str | bool) -> str:
    """Return the text of a tool call."""
    given = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return f"{tool}({', '.join(given)})"


def _show(name: str) -> str:
    """Return the tool call that the legend of a page names, with a placeholder for the lines."""
    return _call("read_skill_nodes", name=name, ids="{ids}")

"""Replies of MCP tools: their JSON forms, and how they are cut to a limit of tokens.

Every form holds the text that a model reads. The SDK derives the schemas of replies from these types.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypeVar

# pydantic accepts the TypedDict of `typing` only from Python 3.12 on
from typing_extensions import TypedDict

from skillpager.errors import SettingsError
from skillpager.library import LibraryPage
from skillpager.mcp.options import Ceiling
from skillpager.output.formatting import chance_words, too_few_tokens
from skillpager.pages.gaps import notice_of
from skillpager.types import Node, Omission, Page, SkillIndex, TokenCounter

# a reply over the ceiling is made again with a limit a little below the one that its excess suggests
TRIM = 0.95
DIGITS = 3

ReadOn = Callable[[str], str]
Kind = Literal["page", "full", "outline", "nodes", "file", "none"]


class TextForm(TypedDict):
    """A reply; `complete` is false if something that was asked for is left out."""

    text: str
    complete: bool


Form = TypeVar("Form", bound=TextForm)


class NamedSkill(TypedDict):
    """A skill on offer."""

    name: str
    description: str


class SkillsForm(TextForm):
    """Skills on offer, by name."""

    skills: list[NamedSkill]


class SearchedSkill(NamedSkill):
    """A skill for a query, with the chance that the query needs it, the reason, and its size."""

    chance: float
    reason: str
    tokens: int


class SearchForm(TextForm):
    """Skills for a query, best first; `fits` is the chance that any of those searched fits."""

    fits: float
    has_fit: bool
    searched: int
    skills: list[SearchedSkill]


class Lines(TypedDict):
    """Lines of a file, from 1; on a page of several skills with the name of the skill."""

    file: str
    start_line: int
    end_line: int
    tokens: int
    skill: NotRequired[str]


class NodeForm(Lines):
    """A node that the text holds."""

    id: str
    type: str
    score: NotRequired[float]


class GapForm(Lines):
    """Lines that the text leaves out, with a range of node ids; `known` if they were sent before."""

    nodes: str
    known: bool


class PartForm(TypedDict):
    """A skill on a page of several."""

    skill: str
    chance: float
    tokens: int
    full_tokens: int


class RefusedForm(TypedDict):
    """A skill that was found and is not on the page, and why."""

    skill: str
    chance: float
    detail: str


class ReadingForm(TextForm):
    """What was read of a skill, or of several."""

    skill: str
    kind: Kind
    tokens: int
    full_tokens: int
    nodes: list[NodeForm]
    omitted: list[GapForm]
    parts: NotRequired[list[PartForm]]
    refused: NotRequired[list[RefusedForm]]
    sufficiency: NotRequired[float]
    covered: NotRequired[float]
    least_tokens: NotRequired[int]
    score_kind: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of tokens, and the counter for it."""

    tokens: int
    counter: TokenCounter

    def at_most(self, tokens: int | None) -> "Limit":
        """Return the lower one of this limit and another, if there is another."""
        return self if tokens is None else Limit(min(self.tokens, tokens), self.counter)

    def holds(self, text: str) -> bool:
        """Return whether a text is within the limit."""
        return self.counter.count(text) <= self.tokens

    def most(self, render: Callable[[int], str], total: int) -> tuple[int, str]:
        """Return how many of `total` parts fit when rendered, and their text.

        Raises:
            SettingsError: Not even a text without any part fits.
        """
        if self.holds(text := render(total)):
            return total, text
        count = bisect_right(range(total), self.tokens, key=lambda parts: self.counter.count(render(parts)))
        # marks differ in length, so one part more may take a token less
        for shown in range(count - 1, -1, -1):
            if self.holds(text := render(shown)):
                return shown, text
        raise self.nothing_fits()

    def nothing_fits(self) -> SettingsError:
        """Return the error for a limit that is too low."""
        return SettingsError(
            f"Nothing fits into {self.tokens} tokens: ask for more, or raise the server's ceiling."
        )


def within(
    make: Callable[[Limit], Form], ceiling: Ceiling, counter: TokenCounter, *, structured: bool
) -> Form:
    """Return a reply that is within `ceiling`, with its JSON form if that is sent (`structured`).

    Args:
        make: Makes a reply whose text has at most about the given number of tokens.
        ceiling: Most tokens and characters.
        counter: Counts them.
        structured: Whether the JSON form is sent with the text.
    """
    limit = ceiling.tokens
    while True:
        form = make(Limit(limit, counter))
        text, sent = form["text"], json.dumps(form, ensure_ascii=False) if structured else ""
        tokens = counter.count(text)
        excess = ceiling.excess(tokens + counter.count(sent), len(text) + len(sent))
        if excess <= 1:
            return form
        limit = int(min(limit, tokens) / excess * TRIM)


def cut_mark(call: str, tag: str) -> str:
    """Return the last line of a text that was cut; `tag` is that of its true marks."""
    return f"[…{tag} cut here to keep the reply short; go on with: {call}]\n"


def excerpt(
    rows: Sequence[str],
    first: int,
    limit: Limit,
    *,
    tag: str,
    read_on: ReadOn,
    remedy: str,
    where: str = "",
    rest: str = "",
) -> tuple[int, str]:
    """Return how many lines fit, and their text; a mark names the call that reads the others.

    Args:
        rows: The lines.
        first: Number of the first one.
        limit: That of the text.
        tag: That of true marks.
        read_on: Makes the call that reads a range of lines.
        remedy: How to read a line that is too long for a reply, which is skipped.
        where: The file of the lines, for that line.
        rest: Ends the text.
    """
    last = first + len(rows) - 1

    def render(shown: int) -> str:
        text = "".join(rows[:shown])
        if not shown and rows:
            shown = 1  # so that the next call makes progress
            text = f"[line{tag} {first}{where} is too long for one reply: {remedy}]\n"
        if shown < len(rows):
            text += f"\n{cut_mark(read_on(f'{first + shown}-{last}'), tag)}"
        return notice_of(tag) + (text or "The file is empty.\n") + rest

    return limit.most(render, len(rows))


def page_text(
    page: Page | LibraryPage, limit: Limit, *, tag: str, asked: bool, empty: bool, complete: bool
) -> str:
    """Return the text of a page, which says in its last line with what chance it suffices, if that fits.

    Args:
        page: The page.
        limit: Its limit.
        tag: The tag of its true marks.
        asked: Whether the caller chose the limit, and can choose another one if nothing fits.
        empty: Whether it holds no node, but perhaps marks.
        complete: Whether nothing is left out.

    Raises:
        SettingsError: Nothing fits, and the caller chose the limit or there is no room for marks either.
    """
    if page.least_tokens is not None and (asked or not page.text):
        raise SettingsError(too_few_tokens(page.least_tokens, "budget_tokens"))
    if not page.text and not complete:
        raise SettingsError("budget_tokens is too small: not even the omission marks fit. Ask for more.")
    if complete or empty or page.sufficiency is None:
        return page.text
    chance = chance_words(page.sufficiency)
    longer = f"{page.text}\n[Page{tag} holds all that is needed with an estimated chance of {chance}]\n"
    return longer if limit.holds(longer) else page.text


def reading(
    kind: Kind,
    skill: SkillIndex | tuple[str, int],
    text: str,
    limit: Limit,
    *,
    complete: bool,
    nodes: Sequence[NodeForm] = (),
    omitted: Sequence[Omission | GapForm] = (),
    page: Page | LibraryPage | None = None,
) -> ReadingForm:
    """Return the form of a text of a skill, or of another name and size, with the estimates of its page."""
    name, full_tokens = skill if isinstance(skill, tuple) else (skill.skill.name, skill.full_tokens)
    form: ReadingForm = {
        "text": text,
        "skill": name,
        "kind": kind,
        "complete": complete,
        "tokens": limit.counter.count(text),
        "full_tokens": full_tokens,
        "nodes": list(nodes),
        "omitted": [gap_form(gap) if isinstance(gap, Omission) else gap for gap in omitted],
    }
    if page is not None and page.sufficiency is not None:
        form["sufficiency"] = round(page.sufficiency, DIGITS)
    if page is not None and page.covered is not None:
        form["covered"] = round(page.covered, DIGITS)
    if page is not None and page.least_tokens is not None:
        form["least_tokens"] = page.least_tokens
    return form


def node_forms(nodes: Sequence[Node], scores: Mapping[str, float] | None = None) -> list[NodeForm]:
    """Return nodes without their texts, with the scores that they have."""
    forms: list[NodeForm] = []
    for node in nodes:
        form: NodeForm = {
            "id": node.id,
            "type": str(node.type),
            "file": node.span.file,
            "start_line": node.span.start_line,
            "end_line": node.span.end_line,
            "tokens": node.tokens,
        }
        if scores and node.id in scores:
            form["score"] = round(scores[node.id], DIGITS)
        forms.append(form)
    return forms


def gap_form(gap: Omission) -> GapForm:
    """Return a gap with its ids as a range: the ids of a long skill would be longer than a page of it."""
    return {
        "file": gap.file,
        "start_line": gap.start_line,
        "end_line": gap.end_line,
        "nodes": node_range(gap),
        "tokens": gap.tokens,
        "known": gap.known,
    }


def node_range(gap: Omission) -> str:
    """Return the ids of a gap's nodes, such as `n3-n5`; an empty text if it has none."""
    ends = [gap.nodes[0], gap.nodes[-1]] if gap.nodes else []
    return "-".join(dict.fromkeys(ends))

"""Replies of MCP tools: a text and the same with its nodes as JSON, both within a ceiling of tokens.

Functions that cut a reply to `limit` tokens raise `SettingsError` if nothing fits. A `ReadOn` turns an
address, such as a range of node ids, into the tool call that reads it; marks of a cut name that call.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from skillpager.errors import SettingsError
from skillpager.json_types import to_json
from skillpager.library import FoundSkill, LibraryPage
from skillpager.mcp.options import Ceiling
from skillpager.output.formatting import chance_words, snippet, too_few_tokens
from skillpager.output.outline import outline_lines, outline_map, summary
from skillpager.pages.gaps import notice_of, omissions_of, skill_tag, tag_of
from skillpager.parsing.lines import split_lines
from skillpager.types import Node, Omission, Page, SkillIndex, TokenCounter

# a reply over the ceiling is made again with a limit a little below the one that its excess suggests
TRIM = 0.95
# characters of a description in a list: all that the Agent Skills specification allows
DESCRIPTION_CHARS = 1024
# longest error: it quotes the request, which may have any length
ERROR_CHARS = 2_000
NODE_FIELDS = frozenset({"id", "type", "file", "start_line", "end_line", "tokens"})

ReadOn = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a tool.

    Attributes:
        text: For a model to read.
        form: The same as a JSON object, with the text.
        nodes: The nodes whose whole text it holds.
        cut: Whether a limit left out something that was asked for.
        sent: The same nodes by the key of their index; the session's memory gets them.
    """

    text: str
    form: dict[str, object]
    nodes: tuple[Node, ...] = ()
    cut: bool = False
    sent: tuple[tuple[str, tuple[Node, ...]], ...] = ()

    def of(self, key: str) -> "Reply":
        """Return the reply as one whose nodes are of the index with this key."""
        return replace(self, sent=((key, self.nodes),))


def within(
    make: Callable[[int], Reply], ceiling: Ceiling, counter: TokenCounter, *, structured: bool
) -> Reply:
    """Return a reply that is within `ceiling`, with its JSON form if that is sent (`structured`).

    Args:
        make: Makes a reply whose text has at most about the given number of tokens.
        ceiling: Most tokens and characters.
        counter: Counts them.
        structured: Whether the JSON form is sent with the text.
    """
    limit = ceiling.tokens
    while True:
        reply = make(limit)
        text = counter.count(reply.text)
        form = json.dumps(reply.form, ensure_ascii=False) if structured else ""
        excess = ceiling.excess(text + counter.count(form), len(reply.text) + len(form))
        if excess <= 1:
            return reply
        limit = int(min(limit, text) / excess * TRIM)


def cut_mark(call: str, tag: str) -> str:
    """Return the last line of a text that was cut; `tag` is that of its true marks."""
    return f"[…{tag} cut here to keep the reply short; go on with: {call}]\n"


def page_reply(
    page: Page, index: SkillIndex, kind: str, *, limit: int, counter: TokenCounter, asked: bool
) -> Reply:
    """Return a page, or a whole skill, as a reply.

    Args:
        page: The page.
        index: The skill's index.
        kind: `page` or `full`.
        limit: Most tokens of the text. A page says in its last line with what chance it suffices, if that
            is within the limit.
        counter: Counts them.
        asked: Whether the caller chose the limit, and can choose another one if nothing fits.

    Raises:
        SettingsError: Nothing fits, and the caller chose the limit or there is no room for marks either.
    """
    refuse_empty(page, asked=asked, empty=not page.text and bool(page.omitted))
    text = page.text if index.nodes else "This skill has no text besides its description.\n"
    tokens = page.tokens
    if page.nodes and not page.complete and page.sufficiency is not None:
        text = with_chance(text, page.sufficiency, skill_tag(index.skill), limit, counter)
        tokens = counter.count(text)
    form = _form(kind, index, text, tokens, complete=page.complete)
    form |= {"nodes": page_node_forms(page), "omitted": gap_forms(page.omitted), **page_numbers(page)}
    if page.selection:
        form["score_kind"] = str(page.selection.score_kind)
    cut = any(not gap.known for gap in page.omitted)
    return Reply(text, form, page.nodes, cut)


def refuse_empty(page: Page | LibraryPage, *, asked: bool, empty: bool) -> None:
    """Raise an error for a page with nothing on it.

    Args:
        page: The page.
        asked: Whether the caller chose its limit, and can choose another one.
        empty: Whether there was no room for marks either.

    Raises:
        SettingsError: Nothing fits, and the caller chose the limit or there are no marks.
    """
    if page.least_tokens is not None and (asked or not page.text):
        raise SettingsError(too_few_tokens(page.least_tokens, "budget_tokens"))
    if empty:
        raise SettingsError("budget_tokens is too small: not even the omission marks fit. Ask for more.")


def with_chance(text: str, sufficiency: float, tag: str, limit: int, counter: TokenCounter) -> str:
    """Return a page whose last line says with what chance it suffices, if that is within the limit."""
    chance = chance_words(sufficiency)
    longer = f"{text}\n[Page{tag} holds all that is needed with an estimated chance of {chance}]\n"
    return longer if counter.count(longer) <= limit else text


def page_numbers(page: Page | LibraryPage) -> dict[str, object]:
    """Return the estimates of a page, and what a page with content takes, as far as they are known."""
    form: dict[str, object] = {}
    for name, chance in (("sufficiency", page.sufficiency), ("covered", page.covered)):
        if chance is not None:
            form[name] = round(chance, 3)
    return form if page.least_tokens is None else {**form, "least_tokens": page.least_tokens}


def nodes_reply(
    page: Page, index: SkillIndex, asked: Sequence[Node], counter: TokenCounter, read_on: ReadOn
) -> Reply:
    """Return the page with the first of the nodes that were asked for; a mark names the rest."""
    last = page.nodes[-1].ordinal
    left = omissions_of([node for node in asked if node.ordinal > last], ())
    rest = _rest_mark(left, read_on, skill_tag(index.skill))
    text = f"{page.text.rstrip()}\n\n{rest}" if left else page.text
    form = _form("nodes", index, text, counter.count(text), complete=not left)
    form |= {"nodes": node_forms(page.nodes, {}), "omitted": gap_forms((*page.omitted, *left))}
    return Reply(text, form, page.nodes, bool(left))


def file_reply(
    name: str, path: str, text: str, lines: range, *, limit: int, counter: TokenCounter, read_on: ReadOn
) -> Reply:
    """Return lines of a file of a skill's folder, as many as fit, and the call that reads the rest.

    Args:
        name: Name of the skill.
        path: Path of the file.
        text: Its text.
        lines: Numbers of the lines to return, from 1.
        limit: Most tokens.
        counter: Counts them.
        read_on: Makes the call that reads a range of lines.
    """
    rows = split_lines(text)[lines.start - 1 : lines.stop - 1]
    last = lines.start + len(rows) - 1
    tag = tag_of(path, text)

    def render(shown: int) -> str:
        part = "".join(rows[:shown])
        if not shown and rows:
            shown = 1  # skip a line that is too long, so that the next call makes progress
            part = f"[line{tag} {lines.start} is too long for one reply: work on the file with a program]\n"
        if shown < len(rows):
            part += f"\n{cut_mark(read_on(f'{lines.start + shown}-{last}'), tag)}"
        return notice_of(tag) + (part or "The file is empty.\n")

    shown, part = most_that_fit(render, len(rows), limit, counter)
    cut = shown < len(rows)
    gap = {"nodes": "", "file": path, "start_line": lines.start + shown, "end_line": last, "tokens": 0}
    form: dict[str, object] = {"text": part, "skill": name, "kind": "file", "complete": not cut}
    form |= {"tokens": counter.count(part), "full_tokens": counter.count(text), "nodes": []}
    return Reply(part, form | {"omitted": [{**gap, "known": False}] if cut else []}, cut=cut)


def long_node_reply(
    index: SkillIndex,
    asked: Sequence[Node],
    first_line: int,
    limit: int,
    counter: TokenCounter,
    *,
    read_lines: ReadOn,
    read_nodes: ReadOn,
) -> Reply:
    """Return the lines that fit of `asked[0]`, a node too large for one reply, from line `first_line` on.

    Marks name the calls that read the rest of it and the other nodes asked for.
    """
    node, *after = asked
    span = node.span
    start = min(max(first_line, span.start_line), span.end_line)
    lines = split_lines(node.text)[start - span.start_line :]
    where = "" if span.file == index.skill.files[0].path else f"{span.file}:"
    left = omissions_of(after, ())
    tag = skill_tag(index.skill)
    rest = _rest_mark(left, read_nodes, tag)

    def render(shown: int) -> str:
        text = "".join(lines[:shown])
        if not shown:
            shown = 1  # skip a line that is too long, so that the next call makes progress
            text = f"[line{tag} {start} of {span.file} is too long for one reply: read it in the file]\n"
        if start + shown <= span.end_line:
            text += f"\n{cut_mark(read_lines(f'{where}{start + shown}-{span.end_line}'), tag)}"
        return notice_of(tag) + text + rest

    shown, text = most_that_fit(render, len(lines), limit, counter)
    cut = shown < len(lines)
    gap = Omission(span.file, start + shown, span.end_line, (node.id,), {node.type: 1}, 0)
    form = _form("nodes", index, text, counter.count(text), complete=not cut and not after)
    form |= {"nodes": [], "omitted": gap_forms([gap, *left] if cut else left)}
    return Reply(text, form, cut=True)


def map_reply(
    index: SkillIndex, limit: int, counter: TokenCounter, *, show: str, list_nodes: str, folder: str
) -> Reply:
    """Return the map of a skill; it names the calls `show` and `list_nodes`, and has the line `folder`."""
    made = outline_map(index, counter, show=show, list_nodes=list_nodes, folder=folder, max_tokens=limit)
    tokens = counter.count(made.text)
    if tokens > limit:
        raise _nothing_fits(limit)
    form = _form("outline", index, made.text, tokens, complete=not made.folded)
    return Reply(made.text, form | {"nodes": [], "omitted": []}, cut=bool(made.folded))


def nodes_outline_reply(
    index: SkillIndex, start: int, limit: int, counter: TokenCounter, read_on: ReadOn
) -> Reply:
    """Return the part of the list of all nodes that fits, from the node with the ordinal `start` on."""
    rows = list(outline_lines(index))
    if start:
        rows = rows[next(row for row, (_, node) in enumerate(rows) if node and node.ordinal == start) :]

    def left(shown: int) -> list[Node]:
        return [node for _, node in rows[shown:] if node]

    tag = skill_tag(index.skill)

    def render(shown: int) -> str:
        lines = [summary(index), *(line for line, _ in rows[:shown]), ""]
        mark = cut_mark(read_on(left(shown)[0].id), tag) if left(shown) else ""
        return notice_of(tag) + "\n".join(lines) + mark

    shown, text = most_that_fit(render, len(rows), limit, counter)
    form = _form("outline", index, text, counter.count(text), complete=not left(shown) and not start)
    form["nodes"] = node_forms([node for _, node in rows[:shown] if node], {})
    form["omitted"] = gap_forms(omissions_of(left(shown), ()))
    return Reply(text, form, cut=bool(left(shown)))


def list_reply(skills: Sequence[FoundSkill], limit: int, counter: TokenCounter, read_on: ReadOn) -> Reply:
    """Return the first skills that fit, each with its description on one line."""
    listed = [(skill.name, snippet(skill.description, DESCRIPTION_CHARS)) for skill in skills]
    lines = [f"- {name}: {description}\n" if description else f"- {name}\n" for name, description in listed]

    tag = tag_of(*lines)

    def render(shown: int) -> str:
        mark = cut_mark(read_on(listed[shown][0]), tag) if shown < len(listed) else ""
        return notice_of(tag) + ("".join(lines[:shown]) or "There are no skills.\n") + mark

    shown, text = most_that_fit(render, len(listed), limit, counter)
    named = [{"name": name, "description": description} for name, description in listed[:shown]]
    complete = shown == len(listed)
    return Reply(text, {"text": text, "skills": named, "complete": complete}, cut=not complete)


def _form(kind: str, index: SkillIndex, text: str, tokens: int, *, complete: bool) -> dict[str, object]:
    form: dict[str, object] = {"text": text, "skill": index.skill.name, "kind": kind, "complete": complete}
    return form | {"tokens": tokens, "full_tokens": index.full_tokens}


def page_node_forms(page: Page) -> list[dict[str, object]]:
    """Return the nodes of a page with the scores of those that were picked."""
    picks = page.selection.picks if page.selection else ()
    return node_forms(page.nodes, {pick.node.id: pick.marginal for pick in picks})


def node_forms(nodes: Sequence[Node], scores: Mapping[str, float]) -> list[dict[str, object]]:
    """Return nodes without their texts, with the scores that they have."""
    forms: list[dict[str, object]] = [
        {name: each for name, each in to_json(node).items() if name in NODE_FIELDS} for node in nodes
    ]
    for node, form in zip(nodes, forms, strict=True):
        if node.id in scores:
            form["score"] = round(scores[node.id], 3)
    return forms


def gap_forms(gaps: Sequence[Omission]) -> list[dict[str, object]]:
    """Return gaps with their ids as a range: the ids of a long skill would be longer than a page of it."""
    forms: list[dict[str, object]] = [{**to_json(gap), "nodes": _range(gap)} for gap in gaps]
    return [{name: each for name, each in form.items() if name != "types"} for form in forms]


def _range(gap: Omission) -> str:
    """Return the ids of a gap's nodes, such as `n3-n5`."""
    first, last = gap.nodes[0], gap.nodes[-1]
    return first if first == last else f"{first}-{last}"


def _rest_mark(left: Sequence[Omission], read_on: ReadOn, tag: str) -> str:
    return cut_mark(read_on(", ".join(map(_range, left))), tag) if left else ""


def most_that_fit(
    render: Callable[[int], str], total: int, limit: int, counter: TokenCounter
) -> tuple[int, str]:
    """Return how many of `total` parts fit `limit` tokens when rendered, and their text; raise if none do."""
    text = render(total)
    if counter.count(text) <= limit:
        return total, text

    def tokens(count: int) -> int:
        return counter.count(render(count))

    count = bisect_right(range(total), limit, key=tokens) - 1
    # marks differ in length, so one part more may take a token less
    while count >= 0 and tokens(count) > limit:
        count -= 1
    if count < 0:
        raise _nothing_fits(limit)
    return count, render(count)


def _nothing_fits(limit: int) -> SettingsError:
    return SettingsError(f"Nothing fits into {limit} tokens: ask for more, or raise the server's ceiling.")

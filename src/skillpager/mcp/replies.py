"""What an MCP tool answers: a text, the same with its nodes as JSON, and what of it a ceiling allows."""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skillpager.errors import SettingsError
from skillpager.library import FoundSkill
from skillpager.output.formatting import snippet
from skillpager.output.json import JsonObject, node_json, omission_json
from skillpager.output.outline import outline_lines, summary
from skillpager.pages.gaps import omissions_of
from skillpager.types import Node, Omission, Page, SkillIndex, TokenCounter

# a ceiling is approached from above: what is cut is cut by a little more than the excess
TRIM = 0.95
# characters of a description that a list shows: all that the Agent Skills specification allows
DESCRIPTION_CHARS = 1024
NODE_FIELDS = ("id", "type", "file", "start_line", "end_line", "tokens")

# returns the call of a tool that reads what has an address
ReadOn = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a tool.

    Attributes:
        text: For a model to read.
        form: The same as a JSON object, the text included.
        nodes: The nodes whose whole text it holds.
        cut: Whether a limit left out something that was asked for.
    """

    text: str
    form: JsonObject
    nodes: tuple[Node, ...] = ()
    cut: bool = False


def within(make: Callable[[int], Reply], ceiling: int, counter: TokenCounter, *, structured: bool) -> Reply:
    """Return a reply that takes at most `ceiling` tokens, its JSON form included if it is sent.

    Args:
        make: Makes a reply whose text takes at most about so many tokens.
        ceiling: The most tokens.
        counter: Counts them.
        structured: Whether the JSON form is sent beside the text.

    Raises:
        SettingsError: Nothing fits.
    """
    room = ceiling
    while True:
        reply = make(room)
        text = counter.count(reply.text)
        tokens = text + (counter.count(json.dumps(reply.form, ensure_ascii=False)) if structured else 0)
        if tokens <= ceiling:
            return reply
        room = int(min(room, text) * ceiling / tokens * TRIM)


def cut_mark(call: str) -> str:
    """Return the line that ends a text which was cut."""
    return f"[… cut here to keep the reply short; go on with: {call}]\n"


# ---- parts of a skill


def page_reply(context: Page, index: SkillIndex, kind: str) -> Reply:
    """Return a page, or a whole skill, as a reply.

    Raises:
        SettingsError: The limit was too low for any text.
    """
    if not context.text and context.omitted:
        raise SettingsError(
            "So few tokens hold nothing of the skill, not even marks: ask for more budget_tokens."
        )
    picks = context.selection.picks if context.selection else ()
    scores = {pick.node.id: pick.marginal for pick in picks}
    text = context.text if index.nodes else "This skill has no text besides its description.\n"
    form = _form(kind, index, text, context.tokens, complete=context.complete)
    form |= {"nodes": _nodes(context.nodes, scores), "omitted": _gaps(context.omitted)}
    if context.sufficiency is not None:
        form["sufficiency"] = round(context.sufficiency, 3)
    cut = any(not gap.known for gap in context.omitted)
    return Reply(text, form, context.nodes, cut)


def nodes_reply(
    context: Page, index: SkillIndex, asked: Sequence[Node], counter: TokenCounter, read_on: ReadOn
) -> Reply:
    """Return the nodes of a page fault; those that did not fit are named at the end.

    Args:
        context: The nodes that fitted, the first of those asked for.
        index: The skill.
        asked: The nodes that were asked for.
        counter: Counts tokens.
        read_on: For ids of nodes.
    """
    last = context.nodes[-1].ordinal
    left = omissions_of([node for node in asked if node.ordinal > last], ())
    text = f"{context.text.rstrip()}\n\n{_rest_mark(left, read_on)}" if left else context.text
    form = _form("nodes", index, text, counter.count(text), complete=not left)
    form |= {"nodes": _nodes(context.nodes, {}), "omitted": _gaps((*context.omitted, *left))}
    return Reply(text, form, context.nodes, bool(left))


@dataclass(frozen=True, slots=True)
class LongNode:
    """A node that is too large for one reply, and is read by its lines.

    Attributes:
        node: The node.
        first_line: Line of its file to begin with.
        after: The nodes that were asked for besides.
        read_lines: For a range of lines.
        read_nodes: For ids of nodes.
    """

    node: Node
    first_line: int
    after: Sequence[Node]
    read_lines: ReadOn
    read_nodes: ReadOn

    def reply(self, index: SkillIndex, limit: int, counter: TokenCounter) -> Reply:
        """Return as many lines as fit.

        Raises:
            SettingsError: Nothing fits.
        """
        span = self.node.span
        start = min(max(self.first_line, span.start_line), span.end_line)
        lines = self.node.text.splitlines(keepends=True)[start - span.start_line :]
        rest = _rest_mark(omissions_of(self.after, ()), self.read_nodes)

        def render(shown: int) -> str:
            text = "".join(lines[:shown])
            if not shown:
                shown = 1  # what is too long is passed over, so that reading on gets on
                text = f"[line {start} of {span.file} is too long for one reply: read it in the file]\n"
            left = _lines_of(index, span.file, start + shown, span.end_line)
            return text + (f"\n{cut_mark(self.read_lines(left))}" if left else "") + rest

        shown = _most(render, len(lines), limit, counter)
        text = render(shown)
        gap = Omission(span.file, start + shown, span.end_line, (self.node.id,), {self.node.type: 1}, 0)
        cut = shown < len(lines)
        form = _form("nodes", index, text, counter.count(text), complete=not cut and not self.after)
        form |= {"nodes": [], "omitted": _gaps([*([gap] if cut else []), *omissions_of(self.after, ())])}
        return Reply(text, form, cut=True)


def outline_reply(index: SkillIndex, start: int, limit: int, counter: TokenCounter, read_on: ReadOn) -> Reply:
    """Return as much of an outline as fits, from a node on.

    Args:
        index: The skill.
        start: Ordinal of the node to begin with.
        limit: Most tokens of the text.
        counter: Counts them.
        read_on: For the id of the node to begin with.

    Raises:
        SettingsError: Nothing fits.
    """
    rows = list(outline_lines(index))
    if start:
        rows = rows[next(row for row, (_, node) in enumerate(rows) if node and node.ordinal == start) :]

    def left(shown: int) -> list[Node]:
        return [node for _, node in rows[shown:] if node]

    def render(shown: int) -> str:
        lines = [summary(index), *(line for line, _ in rows[:shown]), ""]
        return "\n".join(lines) + (cut_mark(read_on(left(shown)[0].id)) if left(shown) else "")

    shown = _most(render, len(rows), limit, counter)
    text = render(shown)
    form = _form("outline", index, text, counter.count(text), complete=not left(shown) and not start)
    form["nodes"] = _nodes([node for _, node in rows[:shown] if node], {})
    form["omitted"] = _gaps(omissions_of(left(shown), ()))
    return Reply(text, form, cut=bool(left(shown)))


# ---- a list of skills


def list_reply(skills: Sequence[FoundSkill], limit: int, counter: TokenCounter, read_on: ReadOn) -> Reply:
    """Return as many skills as fit, each with its description on one line.

    Args:
        skills: The skills, in order.
        limit: Most tokens of the text.
        counter: Counts them.
        read_on: For the name of the skill to begin with.

    Raises:
        SettingsError: Nothing fits.
    """
    told = [(skill.name, snippet(skill.description, DESCRIPTION_CHARS)) for skill in skills]
    lines = [f"- {name}: {description}\n" if description else f"- {name}\n" for name, description in told]

    def render(shown: int) -> str:
        mark = cut_mark(read_on(told[shown][0])) if shown < len(told) else ""
        return ("".join(lines[:shown]) or "There are no skills.\n") + mark

    shown = _most(render, len(told), limit, counter)
    names: list[JsonObject] = [{"name": name, "description": text} for name, text in told[:shown]]
    form: JsonObject = {"text": render(shown), "skills": names, "complete": shown == len(told)}
    return Reply(render(shown), form, cut=shown < len(told))


# ---- parts of a form


def _form(kind: str, index: SkillIndex, text: str, tokens: int, *, complete: bool) -> JsonObject:
    return {
        "text": text,
        "skill": index.skill.name,
        "kind": kind,
        "complete": complete,
        "tokens": tokens,
        "full_tokens": index.full_tokens,
    }


def _nodes(nodes: Sequence[Node], scores: Mapping[str, float]) -> list[JsonObject]:
    told = []
    for node in nodes:
        form = node_json(node)
        score: JsonObject = {"score": round(scores[node.id], 3)} if node.id in scores else {}
        told.append({**{name: form[name] for name in NODE_FIELDS}, **score})
    return told


def _gaps(gaps: Sequence[Omission]) -> list[JsonObject]:
    """Return gaps with their ids as a range: those of a long skill would be longer than a page of it."""
    forms = [{**omission_json(gap), "nodes": _range(gap)} for gap in gaps]
    return [{name: value for name, value in form.items() if name != "types"} for form in forms]


def _range(gap: Omission) -> str:
    """Return the ids of a gap's nodes, such as `n3-n5`."""
    first, last = gap.nodes[0], gap.nodes[-1]
    return first if first == last else f"{first}-{last}"


def _rest_mark(left: Sequence[Omission], read_on: ReadOn) -> str:
    return cut_mark(read_on(", ".join(map(_range, left)))) if left else ""


def _lines_of(index: SkillIndex, file: str, start: int, end: int) -> str:
    """Return the address of lines, empty when there are none."""
    where = "" if file == index.skill.files[0].path else f"{file}:"
    return f"{where}{start}-{end}" if start <= end else ""


def _most(render: Callable[[int], str], total: int, limit: int, counter: TokenCounter) -> int:
    """Return how many parts can be rendered within `limit` tokens.

    Raises:
        SettingsError: Not even none can.
    """

    def tokens(count: int) -> int:
        return counter.count(render(count))

    if tokens(total) <= limit:
        return total
    count = bisect_right(range(total), limit, key=tokens) - 1
    # marks differ in length, so that one part more may take a token less
    while count >= 0 and tokens(count) > limit:
        count -= 1
    if count < 0:
        raise SettingsError(
            f"So few tokens hold nothing ({limit}): ask for more, or raise the server's ceiling."
        )
    return count

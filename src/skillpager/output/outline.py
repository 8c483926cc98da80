"""Debug text: `outline` of an index and `trace` of a selection.

Both are also the golden format of the tests, so they hold no times, paths or colours.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from skillpager.types import Heading, Node, Pick, Selection, SkillIndex, Skip, Tile

# longest part of a node's text that a line shows
SNIPPET_CHARS = 72


def outline(index: SkillIndex) -> str:
    """Return the skill as a tree of headings and nodes: id, type, confidence, lines, tokens, text."""
    return "\n".join([summary(index), *(line for line, _ in outline_lines(index))]) + "\n"


def outline_lines(index: SkillIndex) -> Iterator[tuple[str, Node | None]]:
    """Yield the lines of an outline below its first, each with the node that it tells of, if any."""
    file = None
    depth = 0
    for tile in document_order(index):
        if tile.span.file != file:
            file, depth = tile.span.file, 0
            yield file, None
        if isinstance(tile, Heading):
            depth = tile.level
            yield f"{'  ' * depth}{'#' * tile.level} {tile.title}", None
        elif isinstance(tile, Node):
            yield f"{'  ' * (depth + 1)}{_node_line(tile)}", tile


def summary(index: SkillIndex) -> str:
    """Return one line: name, number of nodes by type, tokens, files."""
    counts = Counter(node.type for node in index.nodes)
    types = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    shown = f" ({types})" if types else ""
    files = len(index.skill.files)
    about = "about " if index.recipe.token_counter.startswith("estimate") else ""
    size = f"{about}{index.full_tokens} tokens, {files} file{'' if files == 1 else 's'}"
    return f"{index.skill.name}: {len(index.nodes)} nodes{shown}, {size}"


def trace(selection: Selection) -> str:
    """Return why each node was picked, in pick order, and why each other one was not."""
    budget = selection.budget
    target = "" if budget.sufficiency is None else f"sufficiency {budget.sufficiency:g}, "
    lines = [
        f"strategy {selection.strategy}, max_nodes {budget.max_nodes}, max_tokens {budget.max_tokens}, "
        f"{target}query {snippet(selection.query)!r}",
        "rank  node   type            relevance  redundancy  marginal  tokens   total",
    ]
    lines += [_pick_line(pick) for pick in selection.picks]
    lines += [_skip_line(skip) for skip in selection.skipped]
    return "\n".join(lines) + "\n"


# what a kind of signal says, in a person's words
SIGNALS = {
    "meaning": "means what is asked",
    "words": "shares its words",
    "clauses": "answers one of its clauses",
    "section": "its section fits",
    "heading": "its heading fits",
    "neighbours": "what stands around it fits",
    "type": "its type is called for",
    "form": "its form (code, list, length)",
    "place": "its place in the skill",
    "query": "the kind of query",
}
# smaller shares are not told
LEAST_SHARE = 0.1


def told_reasons(selection: Selection, reasons: Mapping[str, Mapping[str, float]]) -> str:
    """Return for each pick how likely it is needed and why, in words, in pick order.

    Args:
        selection: From a strategy that estimates needs; `marginal` of its picks is the estimated need.
        reasons: Shares of the kinds of signals by node id, as `SkillPager.reasons` returns them.
    """
    lines = ["node   needed  because"]
    lines += [_reason_line(pick, reasons[pick.node.id]) for pick in selection.picks]
    return "\n".join(lines) + "\n"


def _reason_line(pick: Pick, shares: Mapping[str, float]) -> str:
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    told = [f"{SIGNALS.get(name, name)} {percent(share)}" for name, share in ranked if share >= LEAST_SHARE]
    why = ", ".join(told) or "nothing speaks for it by itself"
    return f"{pick.node.id:<5}  {percent(pick.marginal):>6}  {why}"


def document_order(index: SkillIndex) -> list[Tile]:
    """Return headings and nodes together in document order."""
    order = {file.path: number for number, file in enumerate(index.skill.files)}
    tiles: list[Tile] = [*index.headings, *index.nodes]
    return sorted(tiles, key=lambda tile: (order[tile.span.file], tile.span.start))


def snippet(text: str, width: int = SNIPPET_CHARS) -> str:
    """Return `text` on one line, white space folded, cut to `width` characters."""
    folded = " ".join(text[: width * 4].split())
    return folded if len(folded) <= width else folded[: width - 1].rstrip() + "…"


def percent(share: float, *, digits: int = 0) -> str:
    """Return a share in words, such as `64 %`."""
    return f"{100 * share:.{digits}f} %"


def line_range(node: Node) -> str:
    """Return the lines of a node, such as `L12` or `L12-18`."""
    span = node.span
    return (
        f"L{span.start_line}" if span.start_line == span.end_line else f"L{span.start_line}-{span.end_line}"
    )


def _node_line(node: Node) -> str:
    return (
        f"{node.id} {node.type} {node.type_confidence:.2f} {line_range(node)} {node.tokens}t "
        f"{node.kind}: {snippet(node.text)}"
    )


def _pick_line(pick: Pick) -> str:
    return (
        f"{pick.rank:>4}  {pick.node.id:<5}  {pick.node.type:<14}  {pick.relevance:>9.4f}  "
        f"{pick.redundancy:>10.4f}  {pick.marginal:>8.4f}  {pick.tokens:>6}  {pick.total_tokens:>6}"
    )


def _skip_line(skip: Skip) -> str:
    return (
        f"   -  {skip.node.id:<5}  {skip.node.type:<14}  {skip.relevance:>9.4f}  "
        f"{skip.redundancy:>10.4f}  {skip.marginal:>8.4f}  {skip.node.tokens:>6}  {skip.reason}"
    )

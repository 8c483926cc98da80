"""Text for people: the outline of an index, the trace of a selection, the reasons for its picks.

Outline and trace are also the golden format of the tests, so they hold no times, paths or colors.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from skillpager.display_text import one_line
from skillpager.output.formatting import line_range, percent, snippet
from skillpager.types import Heading, Node, Pick, Selection, SkillIndex, Skip, Tile

# the groups of features of `SkillPager.reasons`, in plain words
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
# smaller shares are not shown
LEAST_SHARE = 0.1


def outline(index: SkillIndex) -> str:
    """Return the skill as a tree of headings and nodes: id, type, confidence, lines, tokens, text."""
    return "\n".join([summary(index), *(line for line, _ in outline_lines(index))]) + "\n"


def outline_lines(index: SkillIndex) -> Iterator[tuple[str, Node | None]]:
    """Yield the lines of an outline after its first, each with the node that it describes, if any."""
    file = None
    depth = 0
    for tile in document_order(index):
        if tile.span.file != file:
            file, depth = tile.span.file, 0
            yield file, None
        if isinstance(tile, Heading):
            depth = tile.level
            yield f"{'  ' * depth}{'#' * tile.level} {one_line(tile.title)}", None
        elif isinstance(tile, Node):
            line = (
                f"{'  ' * (depth + 1)}{tile.id} {tile.type} {tile.type_confidence:.2f} {line_range(tile)} "
                f"{tile.tokens}t {tile.kind}: {snippet(tile.text)}"
            )
            yield line, tile


def document_order(index: SkillIndex) -> list[Tile]:
    """Return headings and nodes together in document order."""
    order = {file.path: number for number, file in enumerate(index.skill.files)}
    tiles: list[Tile] = [*index.headings, *index.nodes]
    return sorted(tiles, key=lambda tile: (order[tile.span.file], tile.span.start))


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
    """Return the numbers of each pick, in pick order, and of each other node with the reason against it."""
    budget = selection.budget
    target = "" if budget.sufficiency is None else f"sufficiency {budget.sufficiency:g}, "
    lines = [
        f"strategy {selection.strategy}, max_nodes {budget.max_nodes}, max_tokens {budget.max_tokens}, "
        f"{target}query {snippet(selection.query)!r}",
        "rank  node   type            relevance  redundancy  marginal  tokens   total",
    ]
    entries: list[Pick | Skip] = [*selection.picks, *selection.skipped]
    for entry in entries:
        scores = f"{entry.relevance:>9.4f}  {entry.redundancy:>10.4f}  {entry.marginal:>8.4f}"
        node = f"{entry.node.id:<5}  {entry.node.type:<14}"
        if isinstance(entry, Skip):
            lines.append(f"   -  {node}  {scores}  {entry.node.tokens:>6}  {entry.reason}")
        else:
            lines.append(f"{entry.rank:>4}  {node}  {scores}  {entry.tokens:>6}  {entry.total_tokens:>6}")
    return "\n".join(lines) + "\n"


def format_reasons(selection: Selection, reasons: Mapping[str, Mapping[str, float]]) -> str:
    """Return the estimated need of each pick and the reasons for it, in pick order.

    Args:
        selection: From a strategy that estimates needs; `marginal` of its picks is the estimated need.
        reasons: Shares of the groups of features by node id, as `SkillPager.reasons` returns them.
    """
    lines = ["node   needed  because"]
    for pick in selection.picks:
        ranked = sorted(reasons[pick.node.id].items(), key=lambda item: -item[1])
        shown = [f"{SIGNALS.get(name, name)} {percent(each)}" for name, each in ranked if each >= LEAST_SHARE]
        why = ", ".join(shown) or "nothing speaks for it by itself"
        lines.append(f"{pick.node.id:<5}  {percent(pick.marginal):>6}  {why}")
    return "\n".join(lines) + "\n"

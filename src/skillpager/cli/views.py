"""Tables and trees for people; the same as plain text or tab-separated values for pipes."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillpager.cli.messages import print_text, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    from skillpager.types import Node, Page, SkillIndex

KILO = 1000
# what is estimated is never told as certain
LARGEST_CHANCE = 0.99
UNITS = ("B", "kB", "MB", "GB", "TB")


def is_terminal() -> bool:
    """Tell whether a person sees stdout."""
    return sys.stdout.isatty()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table on a terminal, tab-separated values with a header line elsewhere.

    Args:
        columns: Names of the columns.
        rows: Cells, one a column.
        right: Columns to align on the right.
    """
    if not is_terminal():
        print_text("\n".join("\t".join(map(one_line, row)) for row in [columns, *rows]))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    _console().print(table)


def print_outline(index: "SkillIndex", *, exact: bool) -> None:
    """Print the tree of headings and nodes, coloured by type on a terminal."""
    from skillpager.output import outline as explain

    if is_terminal():
        _console().print(_tree(index, exact=exact))
    else:
        print_text(explain.outline(index))


def saving(context: "Page", total: int) -> str:
    """Return one line on a page: nodes, tokens and the share of the skill it saves.

    Args:
        context: The page.
        total: Number of nodes of the skill.
    """
    from skillpager.output.formatting import percent
    from skillpager.output.json import token_reduction

    tokens = token_count(context.tokens, exact=context.tokens_exact)
    if context.complete:
        return f"the whole skill fits: {counted(total, 'node')}, {tokens}"
    share = token_reduction(context)
    about = "" if context.tokens_exact else "about "
    words = f"{percent(abs(share), digits=1)} {'saved' if share >= 0 else 'longer than the whole skill'}"
    line = f"{len(context.nodes)} of {counted(total, 'node')}, {tokens}, {about}{words}"
    if context.sufficiency is not None:
        line += f"; holds all that is needed with an estimated chance of {_told_chance(context.sufficiency)}"
    return f"{line}; a higher --lambda shows more" if _ended_early(context) else line


def _told_chance(chance: float) -> str:
    """Return the chance of a page that leaves something out: never all."""
    from skillpager.output.formatting import percent

    return percent(chance) if chance <= LARGEST_CHANCE else f"over {percent(LARGEST_CHANCE)}"


def _ended_early(context: "Page") -> bool:
    """Tell whether the selection stopped before its budget, because what was left repeats the page."""
    from skillpager.types import SkipReason

    chosen = context.selection
    return chosen is not None and any(skip.reason is SkipReason.NEGATIVE_MARGINAL for skip in chosen.skipped)


def token_count(tokens: int, *, exact: bool) -> str:
    """Return a number of tokens in words, an estimate labelled as one."""
    return f"{'' if exact else 'about '}{counted(tokens, 'token')}"


def counted(count: int, word: str, plural: str = "") -> str:
    """Return a number of things in words, such as `1 node` or `1,200 nodes`."""
    return f"{count:,} {word if count == 1 else plural or f'{word}s'}"


def byte_count(size: float) -> str:
    """Return a number of bytes in words, such as `1.2 MB`."""
    power = 0
    while size >= KILO and power < len(UNITS) - 1:
        size /= KILO
        power += 1
    return f"{size:.1f} {UNITS[power]}" if power else f"{size:.0f} B"


def one_line(text: str) -> str:
    """Return `text` on one line, white space folded, without what could steer a terminal."""
    return printable(" ".join(text.split()))


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False)


def _tree(index: "SkillIndex", *, exact: bool) -> "Tree":
    from rich.text import Text
    from rich.tree import Tree

    from skillpager.output import outline as explain
    from skillpager.types import Heading, Node

    tokens = token_count(index.full_tokens, exact=exact)
    tree = Tree(
        Text(one_line(f"{index.skill.name}: {counted(len(index.nodes), 'node')}, {tokens}"), style="bold")
    )
    branches = [(0, tree)]
    file = None
    for tile in explain.document_order(index):
        if tile.span.file != file:
            file = tile.span.file
            branches = [(0, tree.add(Text(one_line(file), style="underline")))]
        if isinstance(tile, Heading):
            while branches[-1][0] >= tile.level:
                branches.pop()
            branches.append((tile.level, branches[-1][1].add(Text(one_line(tile.title), style="bold"))))
        elif isinstance(tile, Node):
            branches[-1][1].add(_leaf(tile))
    return tree


def _leaf(node: "Node") -> "Text":
    from rich.text import Text

    from skillpager.output.formatting import line_range, snippet
    from skillpager.output.palette import TYPE_COLORS

    leaf = Text(no_wrap=True, overflow="ellipsis")
    leaf.append(f"{node.id} ", style="bold")
    leaf.append(str(node.type), style=TYPE_COLORS[node.type])
    leaf.append(f" {line_range(node)} {node.tokens}t ", style="dim")
    leaf.append(one_line(snippet(node.text, 200)))
    return leaf

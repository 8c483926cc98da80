"""Tables, trees and progress bars on a terminal; elsewhere plain text, tab-separated values, no bars."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillpager.cli.messages import are_notes_shown, print_text
from skillpager.display_text import one_line

if TYPE_CHECKING:
    from skillpager.types import Page, SkillIndex

KILO = 1000
SNIPPET_CHARS = 200
UNITS = ("B", "kB", "MB", "GB", "TB")


def is_terminal() -> bool:
    """Return True if stdout is a terminal."""
    return sys.stdout.isatty()


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that moves a progress bar, given the number of finished units and of all units.

    The bar counts units such as `contexts`, on stderr, if that is a terminal and notes are shown.
    """
    if not (are_notes_shown() and sys.stderr.isatty()):
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table on a terminal, with columns in `right` aligned there; tab-separated values elsewhere."""
    if not is_terminal():
        print_text("\n".join("\t".join(map(one_line, row)) for row in [columns, *rows]))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    Console(highlight=False).print(table)


def print_nodes(index: "SkillIndex", *, exact: bool) -> None:
    """Print the tree of headings and nodes, coloured by type on a terminal."""
    from skillpager.output.outline import document_order, node_outline

    if not is_terminal():
        print_text(node_outline(index))
        return
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    from skillpager.display_text import line_range
    from skillpager.output.formatting import snippet
    from skillpager.output.graph import TYPE_COLORS
    from skillpager.types import Heading, Node

    tokens = token_count(index.full_tokens, exact=exact)
    title = one_line(f"{index.skill.name}: {counted(len(index.nodes), 'node')}, {tokens}")
    tree = Tree(Text(title, style="bold"))
    branches = [(0, tree)]
    file = None
    for tile in document_order(index):
        if tile.span.file != file:
            file = tile.span.file
            branches = [(0, tree.add(Text(one_line(file), style="underline")))]
        if isinstance(tile, Heading):
            while branches[-1][0] >= tile.level:
                branches.pop()
            branches.append((tile.level, branches[-1][1].add(Text(one_line(tile.title), style="bold"))))
        elif isinstance(tile, Node):
            leaf = Text(no_wrap=True, overflow="ellipsis")
            leaf.append(f"{tile.id} ", style="bold")
            leaf.append(str(tile.type), style=TYPE_COLORS[tile.type])
            leaf.append(
                f" {line_range(tile.span.start_line, tile.span.end_line)} {tile.tokens}t ", style="dim"
            )
            leaf.append(snippet(tile.text, SNIPPET_CHARS))
            branches[-1][1].add(leaf)
    Console(highlight=False).print(tree)


def page_note(page: "Page", total: int) -> str:
    """Return one line about a page of a skill of `total` nodes: nodes, tokens and the share that it saves."""
    from skillpager.output.formatting import chance_words, percent
    from skillpager.types import SkipReason

    tokens = token_count(page.tokens, exact=page.tokens_exact)
    if page.complete:
        return f"the whole skill fits: {counted(total, 'node')}, {tokens}"
    share = page.token_reduction
    about = "" if page.tokens_exact else "about "
    words = f"{percent(abs(share), digits=1)} {'saved' if share >= 0 else 'longer than the whole skill'}"
    line = f"{len(page.nodes)} of {counted(total, 'node')}, {tokens}, {about}{words}"
    if page.sufficiency is not None:
        line += f"; holds all that is needed with an estimated chance of {chance_words(page.sufficiency)}"
    skipped = page.selection.skipped if page.selection else ()
    if any(skip.reason is SkipReason.NEGATIVE_MARGINAL for skip in skipped):
        # the selection ended before its budget, because the rest repeats the page
        line += "; a higher --lambda shows more"
    return line


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

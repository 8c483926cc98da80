"""Tables and progress bars on a terminal, elsewhere tab-separated values and no bars; numbers in words."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from skillpager.cli.messages import are_notes_shown, note, print_text
from skillpager.display_text import not_covered, one_line, percent
from skillpager.types import Page

SECONDS_BETWEEN_NOTES = 10.0  # on progress, without a terminal


@contextmanager
def progress_bar(phase: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that moves a progress bar, given the number of finished units and of all units.

    The bar is on stderr, named after the phase, such as `reading skills`. Where that is not a terminal a note
    stands there every ten seconds instead, if notes are shown.
    """
    if not sys.stderr.isatty() or not are_notes_shown():
        noted = time.monotonic()

        def note_progress(done: int, total: int) -> None:
            nonlocal noted
            if time.monotonic() - noted >= SECONDS_BETWEEN_NOTES:
                noted = time.monotonic()
                note(f"{phase}: {done:,} of {total:,}")

        yield note_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(phase), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table on a terminal, with columns in `right` aligned there; tab-separated values elsewhere."""
    if not sys.stdout.isatty():
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


def note_page(page: Page, name: str = "") -> None:
    """Print a note on a page, of the skill `name` if there are several: its size, and whether it suffices."""
    uncovered = not_covered(page.covered)
    if page.least_tokens is None and (page.nodes or not uncovered):
        selection = page.selection
        total = len(selection.picks) + len(selection.skipped) if selection else len(page.nodes)
        tokens = token_count(page.tokens, exact=page.tokens_exact)
        line = f"the whole skill: {counted(total, 'node')}, {tokens}"
        if not page.complete:
            saved = f"{'' if page.tokens_exact else 'about '}{percent(page.token_reduction, digits=1)} saved"
            line = f"{len(page.nodes)} of {counted(total, 'node')}, {tokens}, {saved}"
            line += f"; {page.promise}" if page.promise else ""
        note(f"{name}: {line}" if name else line)
    if uncovered:
        note(f"the skill {f'{name!r} ' if name else ''}{uncovered}")


def token_count(tokens: int, *, exact: bool) -> str:
    """Return a number of tokens in words, an estimate labelled as one."""
    return f"{'' if exact else 'about '}{counted(tokens, 'token')}"


def counted(count: int, word: str, plural: str = "") -> str:
    """Return a number of things in words, such as `1 node` or `1,200 nodes`."""
    return f"{count:,} {word if count == 1 else plural or f'{word}s'}"

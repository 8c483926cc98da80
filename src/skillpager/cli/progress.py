"""Progress bars on a terminal; nothing anywhere else, so that no log or agent's transcript is flooded."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from skillpager.cli.messages import are_notes_heard


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of the parts done and all parts, which moves a bar on stderr.

    Args:
        what: What the parts are, such as `contexts`.
    """
    if not (are_notes_heard() and sys.stderr.isatty()):
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)

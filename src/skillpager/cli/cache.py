"""`skillpager cache`: what is stored, whether it is sound, and how to get rid of it."""

import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skillpager.cli.messages import FAILED, UsageError, note, print_json, reported
from skillpager.cli.options import AsJson, CacheDir

if TYPE_CHECKING:
    from skillpager.stores import SqliteStore
    from skillpager.types import StoreEntry

KILO, KIBI = 1000, 1024
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(i?)b?)?", re.IGNORECASE)

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def cache() -> None:
    """Look after the stored indexes."""


@app.command()
@reported
def info(cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Show where the store is, how large, and what it holds.

    Indexes are listed with the most recently used first.

    \b
    Examples:
      skillpager cache info
      skillpager cache info --json
    """
    from skillpager.cli.views import byte_count, counted, print_table
    from skillpager.output.json import entry_json

    store = _open(cache_dir)
    entries = store.entries()
    if as_json:
        print_json(
            {
                "path": str(store.path),
                "size": store.size,
                "max_size": store.max_bytes,
                "entries": [entry_json(entry) for entry in entries],
            }
        )
        return
    ceiling = f" of {byte_count(store.max_bytes)}" if store.max_bytes is not None else ""
    note(f"{store.path}: {counted(len(entries), 'index', 'indexes')}, {byte_count(store.size)}{ceiling}")
    columns = ["skill", "nodes", "size", "used", "key", "folder"]
    print_table(columns, [_row(entry) for entry in entries], right=["nodes", "size"])


@app.command()
@reported
def verify(cache_dir: CacheDir = None, as_json: AsJson = False) -> None:
    """Read the whole store and list what is damaged.

    The exit code is 1 if anything is. Nothing is changed.

    \b
    Examples:
      skillpager cache verify
    """
    from skillpager.cli.views import print_table

    store = _open(cache_dir)
    damaged = store.verify()
    if as_json:
        print_json({"damaged": [{"key": d.key, "name": d.name, "problem": d.problem} for d in damaged]})
    elif damaged:
        print_table(["skill", "problem", "key"], [[d.name, d.problem, d.key] for d in damaged])
    note(
        f"{len(damaged)} damaged: it is rebuilt when it is next used, or dropped by `skillpager cache clear`."
        if damaged
        else f"{store.path} is sound."
    )
    if damaged:
        raise typer.Exit(FAILED)


@app.command()
@reported
def clear(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    cache_dir: CacheDir = None,
) -> None:
    """Delete every stored index.

    Answers of an LLM classifier, which cost money, stay.

    \b
    Examples:
      skillpager cache clear --yes
    """
    from skillpager.cli.views import counted

    store = _open(cache_dir)
    count = counted(len(store.entries()), "index", "indexes")
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("There is nobody to ask: add --yes to delete every stored index.")
        typer.confirm(f"Delete {count} in {store.path}?", abort=True, err=True)
    store.clear()
    note(f"{count} deleted")


@app.command()
@reported
def evict(
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="SIZE", help="Such as 100MB, 1.5GB, 64MiB or bytes.")
    ],
    cache_dir: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete indexes until the store is no larger than SIZE.

    Those go first that were not used for longest.

    \b
    Examples:
      skillpager cache evict --max-size 100MB
    """
    from skillpager.cli.views import byte_count, counted

    limit = parse_size(max_size)
    store = _open(cache_dir)
    removed = store.evict(limit)
    if as_json:
        print_json({"removed": removed, "size": store.size})
    note(f"{counted(len(removed), 'index', 'indexes')} deleted, {byte_count(store.size)} left")


def parse_size(text: str) -> int:
    """Return the bytes that `text` means: `MB` is a million, `MiB` 2 to the 20.

    Raises:
        UsageError: It is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no size: write 100MB, 1.5GB, 64MiB or a number of bytes.")
    power = " kmgt".index((match[2] or " ").lower())
    return int(float(match[1]) * (KIBI if match[3] else KILO) ** power)


def _open(cache_dir: Path | None) -> "SqliteStore":
    from skillpager.cli.session import choose_settings
    from skillpager.factories import cache_folder
    from skillpager.stores import SqliteStore

    settings = choose_settings(cache_dir=cache_dir)
    return SqliteStore(cache_folder(settings), max_bytes=settings.max_cache_bytes)


def _row(entry: "StoreEntry") -> Sequence[str]:
    from skillpager.cli.views import byte_count

    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
    return [entry.name, f"{entry.nodes:,}", byte_count(entry.size), used, entry.key[:12], entry.root]

"""`skillpager cache`: show, check and delete stored indexes."""

import re
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from skillpager.cli.messages import FAILED, confirm, note, print_json, reported
from skillpager.cli.options import AsJson, StoreOptions, Yes
from skillpager.cli.session import choose_settings
from skillpager.cli.views import counted, print_table
from skillpager.errors import SettingsError
from skillpager.json_types import to_json
from skillpager.library.routing.catalog import Catalog
from skillpager.settings import INDEX_FOLDER

if TYPE_CHECKING:
    from skillpager.stores.sql import SqlStore

_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)b?", re.IGNORECASE)

app = typer.Typer(help="Show, check and delete stored indexes.", no_args_is_help=True, rich_markup_mode=None)


@app.command()
@reported
def info(place: StoreOptions, as_json: AsJson = False) -> None:
    """Show where the indexes are stored, their size, and a list of them.

    The newest index comes first.

    \b
    Examples:
      skillpager cache info
      skillpager cache info --json
    """
    opened = _open(place)
    entries = opened.entries() if opened.exists() else []
    if as_json:
        facts = {"path": opened.place, "size": opened.size, "max_size": opened.max_bytes}
        print_json({**facts, "entries": [to_json(entry) for entry in entries]})
        return
    ceiling = f" of {decimal(opened.max_bytes)}" if opened.max_bytes is not None else ""
    note(f"{opened.place}: {counted(len(entries), 'index', 'indexes')}, {decimal(opened.size)}{ceiling}")
    rows = []
    for entry in entries:
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.created))
        size = decimal(entry.size)
        rows.append([entry.name, f"{entry.nodes:,}", size, created, entry.key[:12], entry.root])
    print_table(["skill", "nodes", "size", "created", "key", "folder"], rows, right=["nodes", "size"])


@app.command()
@reported
def verify(place: StoreOptions, as_json: AsJson = False) -> None:
    """Check every stored index, and list what is damaged.

    Nothing is changed. The exit code is 1 if an index is damaged.

    \b
    Examples:
      skillpager cache verify
    """
    opened = _open(place)
    damaged = opened.verify() if opened.exists() else []
    if as_json:
        print_json({"damaged": [to_json(each) for each in damaged]})
    elif damaged:
        print_table(["skill", "problem", "key"], [[d.name, d.problem, d.key] for d in damaged])
    if damaged:
        note(f"{len(damaged)} damaged: rebuilt on next use, or deleted by `skillpager cache clear`.")
        raise typer.Exit(FAILED)
    note(f"{opened.place}: no damage found.")


@app.command()
@reported
def clear(place: StoreOptions, yes: Yes = False) -> None:
    """Delete all stored indexes, and what routing has stored of skills.

    Stored answers of an LLM classifier are not deleted, because they cost money.

    \b
    Examples:
      skillpager cache clear --yes
    """
    opened = _open(place)
    count = counted(len(opened.entries()), "index", "indexes")
    confirm(f"Delete {count} in {opened.place}?", yes=yes, remedy="add --yes to delete all stored indexes")
    opened.clear()
    Catalog(choose_settings(place).cache_dir / INDEX_FOLDER).clear()
    note(f"{count} deleted")


@app.command()
@reported
def evict(
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="SIZE", help="Such as 100MB, 1.5GB or a number of bytes.")
    ],
    place: StoreOptions,
    as_json: AsJson = False,
) -> None:
    """Delete indexes until the rest takes at most SIZE, the oldest first.

    \b
    Examples:
      skillpager cache evict --max-size 100MB
    """
    size = _SIZE.fullmatch(max_size)
    if size is None:
        raise SettingsError(f"{max_size!r} is not a size: write 100MB, 1.5GB or a number of bytes.")
    opened = _open(place)
    removed = opened.evict(int(float(size[1]) * 1000 ** ["", *"kmgt"].index(size[2].lower())))
    if as_json:
        print_json({"removed": removed, "size": opened.size})
    note(f"{counted(len(removed), 'index', 'indexes')} deleted, {decimal(opened.size)} left")


def _open(options: StoreOptions) -> "SqlStore":
    from skillpager.factories import make_store  # numpy

    return make_store(choose_settings(options))

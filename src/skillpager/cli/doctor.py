"""`skillpager doctor`: versions, settings and their sources, extras, and a self-test."""

import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import typer
from rich.filesize import decimal

from skillpager.cli.messages import FAILED, print_json, print_text, reported
from skillpager.cli.options import AsJson, IndexOptions
from skillpager.cli.session import choose_settings
from skillpager.cli.views import counted
from skillpager.errors import SkillPagerError, install_command, read_extras
from skillpager.settings import Settings, hide_secrets, is_address, load_settings

PACKAGE = "skillpager"
NOT_INSTALLED = "not installed"
SELF_TEST = "To restore a table, run pg_restore.\n\nTo bake bread, heat the oven.\n"
SELF_TEST_QUERY = "restore a table"
SELF_TEST_ANSWER = "pg_restore"


class Check(NamedTuple):
    """The result of a check: what was checked, whether it works, and what was found."""

    name: str
    ok: bool
    detail: str


@reported
def doctor(options: IndexOptions, as_json: AsJson = False) -> None:
    """Check the installation and run a short self-test.

    Prints versions, each setting with its source, which extras are installed, and the result of each check.
    The exit code is 1 if a check fails.

    \b
    Examples:
      skillpager doctor
      skillpager doctor --json
    """
    settings = choose_settings(options)
    extras: dict[str, list[str]] = {"installed": [], "available": []}
    for extra, packages in read_extras().items():
        missing = any(package_version(package) == NOT_INSTALLED for package in packages)
        extras["available" if missing else "installed"].append(extra)
    checks = [_check("cache", _open_cache, settings), _check("self-test", _page_a_skill, settings)]
    healthy = all(check.ok for check in checks)
    python = f"{platform.python_version()} ({sys.executable})"
    facts = {"version": package_version(), "python": python, "platform": platform.platform()}
    sources = _sources(settings)
    if as_json:
        origins = {name: {"value": value, "origin": origin} for name, value, origin in sources}
        results = {"checks": [check._asdict() for check in checks], "healthy": healthy}
        print_json({**facts, "settings": origins, "extras": extras, **results})
    else:
        sections = {
            "skillpager": [*facts.items()],
            "settings": [(name, f"{value}  ({origin})") for name, value, origin in sources],
            f"extras: `{install_command('NAME')}` adds one": [
                (state, ", ".join(names) or "none") for state, names in extras.items()
            ],
            "checks": [(check.name, f"{'ok' if check.ok else 'FAILED'}: {check.detail}") for check in checks],
        }
        for title, rows in sections.items():
            print_text(title)
            width = max(len(name) for name, _ in rows)
            print_text("\n".join(f"  {name:<{width}}  {value}" for name, value in rows))
    if not healthy:
        raise typer.Exit(FAILED)


def package_version(package: str = PACKAGE) -> str:
    """Return the version of an installed package, or `NOT_INSTALLED`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return NOT_INSTALLED


def _sources(settings: Settings) -> list[tuple[str, str, str]]:
    """Return name, value and origin of each setting; no key and no password is shown."""
    layers = {
        "default": Settings(),
        "user file": load_settings(environ={}, project_file=None),
        "project file": load_settings(environ={}),
        "environment": load_settings(),
        "option": settings,
    }
    found = []
    for name in (item.name for item in fields(Settings)):
        origin, value = "default", getattr(layers["default"], name)
        for layer, values in layers.items():
            if getattr(values, name) != value:
                origin, value = layer, getattr(values, name)
        if value is None or value == ():
            shown = "not set"
        elif name.endswith("_key"):
            shown = "set, not shown"
        elif is_address(name):
            shown = hide_secrets(value)
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        found.append((name, shown, origin))
    return found


def _check(name: str, work: Callable[[Settings], str], settings: Settings) -> Check:
    """Return the result of a check that returns what it found, or raises what is wrong."""
    try:
        return Check(name, True, work(settings))
    except SkillPagerError as error:
        return Check(name, False, str(error))


def _open_cache(settings: Settings) -> str:
    from skillpager.factories import make_store  # numpy

    store = make_store(settings)
    count = counted(len(store.entries()), "index", "indexes")
    return f"{store.probe()}: {count}, {decimal(store.size)}"


def _page_a_skill(settings: Settings) -> str:
    """Page a skill of two lines, with the encoder and classifier in force; nothing of it is kept."""
    from skillpager.pager import SkillPager

    with tempfile.TemporaryDirectory() as folder:
        pager = SkillPager(settings=replace(settings, cache_dir=Path(folder), store=None))
        page = pager.page(SELF_TEST, SELF_TEST_QUERY, max_nodes=1, style="plain")
    if SELF_TEST_ANSWER not in page.text:
        raise SkillPagerError(f"the page of {SELF_TEST_QUERY!r} is {page.text!r}")
    counter = pager.token_counter
    tokens = counter.id if counter.exact else f"estimates: `{install_command('tokens')}` makes them exact"
    return f"{pager.encoder.id}, {pager.classifier.id}; token counts {tokens}"

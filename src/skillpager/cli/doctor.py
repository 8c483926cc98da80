"""`skillpager doctor`: versions, settings and their sources, extras, and a self-test."""

import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from skillpager.cli.messages import FAILED, print_json, print_text, reported
from skillpager.cli.options import AsJson, IndexOptions
from skillpager.cli.views import byte_count, counted
from skillpager.errors import SettingsError, SkillPagerError, install_command, read_extras

if TYPE_CHECKING:
    from skillpager.settings import Settings

PACKAGE = "skillpager"
SELF_TEST = """---
name: self-test
description: Two lines for skillpager doctor.
---

To restore a table, run pg_restore.

To bake bread, heat the oven.
"""
SELF_TEST_QUERY = "restore a table"
SELF_TEST_ANSWER = "pg_restore"
# the effect of a setting without a value
UNSET = {
    "skills_dir": "no folders besides the usual ones",
    "store": "a file in the folder cache_dir",
    "trusted": "skills of all folders",
    "licences": "skills under any licence",
    "baselines": "only the fits that ship",
    "llm_base_url": "OpenAI's address, if a model is set",
    "llm_api_key": "no key",
    "llm_model": "no model",
    "embed_base_url": "OpenAI's address, for encoders openai:MODEL",
    "embed_api_key": "no key",
    "strategy": "navigator; mmr with an encoder other than builtin",
    "max_nodes": "no limit with navigator; otherwise 20, or 60 for skills of more than 100 nodes",
    "max_tokens": "no limit",
    "sufficiency": "no target: a page ends where more adds too little for its tokens",
}


@reported
def doctor(options: IndexOptions, as_json: AsJson = False) -> None:
    """Check the installation and run a short self-test.

    Prints versions, each setting with its source, which extras are installed, and the result of each check.
    A mistake in a configuration file or a variable is one of the results; the other settings are checked
    without it. The exit code is 1 if a check fails.

    \b
    Examples:
      skillpager doctor
      skillpager doctor --json
    """
    import platform

    from skillpager.cli.session import choose_settings

    faults: list[SettingsError] = []
    settings = choose_settings(options, faults=faults)
    python = f"{platform.python_version()} ({sys.executable})"
    facts = {"version": package_version(), "python": python, "platform": platform.platform()}
    sources, extras = _settings(settings), _extras()
    checks = [Check("settings", False, str(fault)) for fault in faults] or [
        Check("settings", True, "no mistakes in configuration files and environment variables")
    ]
    checks += [_check_cache(settings), *_check_paging(settings)]
    healthy = all(check.ok for check in checks)
    if as_json:
        print_json(
            {
                **facts,
                "settings": {name: {"value": value, "origin": origin} for name, value, origin in sources},
                "extras": {name: {"installed": found, "missing": lost} for name, found, lost in extras},
                "checks": [check._asdict() for check in checks],
                "healthy": healthy,
            }
        )
    else:
        # the JSON says which of their packages are there, and in which versions
        installed = ", ".join(name for name, _, lost in extras if not lost)
        absent = ", ".join(name for name, _, lost in extras if lost)
        summary = [("installed", installed or "none, which is enough to page skills")]
        if absent:
            summary.append(("available", f"{absent}: `{install_command('NAME')}` adds one"))
        sections = {
            "settings": [(name, f"{value}  ({origin})") for name, value, origin in sources],
            "extras, each optional": summary,
            "checks": [(check.name, f"{'ok' if check.ok else 'FAILED'}: {check.detail}") for check in checks],
        }
        lines = _aligned([(PACKAGE if name == "version" else name, value) for name, value in facts.items()])
        for title, rows in sections.items():
            lines += ["", title, *_aligned([(f"  {name}", value) for name, value in rows])]
        print_text("\n".join(lines))
    if not healthy:
        raise typer.Exit(FAILED)


class Check(NamedTuple):
    """The result of a check: what was checked, whether it works, and what was found."""

    name: str
    ok: bool
    detail: str


def package_version() -> str:
    """Return the version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "not installed"


def _settings(settings: "Settings") -> list[tuple[str, str, str]]:
    """Return name, value or its effect, and origin of each setting; no key and no password is shown."""
    from skillpager.settings import Settings, hide_secrets, is_address, load_settings

    layers = {
        "default": Settings(),
        "user file": load_settings(environ={}, project_file=None, faults=[]),
        "project file": load_settings(environ={}, faults=[]),
        "environment": load_settings(faults=[]),
        "option": settings,
    }
    found = []
    for name in (item.name for item in fields(Settings)):
        origin, value = "default", getattr(layers["default"], name)
        for layer, values in layers.items():
            if getattr(values, name) != value:
                origin, value = layer, getattr(values, name)
        if value is None or value == ():
            shown = UNSET.get(name, "not set")
        elif name.endswith("_key"):
            shown = "set, not shown"
        elif is_address(name):
            shown = hide_secrets(value)
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
            shown = shown.lower() if isinstance(value, bool) else shown
        found.append((name, shown, origin))
    return found


def _extras() -> list[tuple[str, list[str], list[str]]]:
    """Return for each extra its name, its installed packages with their versions, and the missing ones."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for extra, packages in read_extras().items():
        installed, missing = [], []
        for package in packages:
            try:
                installed.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                missing.append(package)
        found.append((extra, installed, missing))
    return found


def _check_cache(settings: "Settings") -> Check:
    from skillpager.factories import make_store

    try:
        store = make_store(settings)
        found = store.probe()
        count = counted(len(store.entries()), "index", "indexes")
        size = byte_count(store.size)
    except SkillPagerError as error:
        return Check("cache", False, f"{error} Until then each page is made without a cache.")
    return Check("cache", True, f"{found}: {count}, {size}")


def _check_paging(settings: "Settings") -> list[Check]:
    """Page a skill of two lines in a folder of its own, with the encoder and classifier in force."""
    import tempfile
    import time

    from skillpager.pager import SkillPager

    with tempfile.TemporaryDirectory() as folder:
        skill = Path(folder) / "self-test"
        skill.mkdir()
        (skill / "SKILL.md").write_text(SELF_TEST, encoding="utf-8")
        try:
            pager = SkillPager(settings=replace(settings, cache_dir=Path(folder), store=None))
            encoder, counter = pager.encoder, pager.token_counter
            models = f"{encoder.id} ({encoder.dim} dimensions), {pager.classifier.id}"
            started = time.perf_counter()
            index = pager.index(skill)
            indexed = time.perf_counter()
            page = pager.page(index, SELF_TEST_QUERY, max_nodes=1, style="plain")
            paged = time.perf_counter()
        except SkillPagerError as error:
            return [Check("self-test", False, str(error))]
    hint = "" if counter.exact else f": `{install_command('tokens')}` makes them exact"
    tokens = f"{'exact' if counter.exact else 'estimates'} ({counter.id}){hint}"
    detail = f"indexed in {indexed - started:.3f} s, paged in {paged - indexed:.3f} s"
    passed = SELF_TEST_ANSWER in page.text
    if not passed:
        detail += f", but the page of {SELF_TEST_QUERY!r} is {page.text!r}"
    return [
        Check("models", True, models),
        Check("token counts", True, tokens),
        Check("self-test", passed, detail),
    ]


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {value}" for name, value in rows]

"""`skillpager doctor`: what is installed, what is set and by what, and whether paging works."""

import platform
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.cli.messages import print_json, print_text
from skillpager.cli.views import byte_count, counted
from skillpager.errors import SkillPagerError, StoreError
from skillpager.output.json import JsonObject
from skillpager.settings import Settings, load_settings

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

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

_REQUIREMENT = re.compile(r"([\w.-]+).*;.*extra\s*==\s*[\"']([\w.-]+)")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in force.

    Attributes:
        name: Its name.
        value: Its value; of a key only that it is set.
        origin: `default`, `user file`, `project file`, `environment` or `option`.
    """

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of the package.

    Attributes:
        name: Its name.
        installed: Versions of those of its packages that are there.
        missing: Those that are not.
    """

    name: str
    installed: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def state(self) -> str:
        """What to tell about it."""
        if self.missing:
            return f'missing {", ".join(self.missing)}: pip install "{PACKAGE}[{self.name}]"'
        return f"installed: {', '.join(self.installed)}"


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was tried.

    Attributes:
        name: What.
        ok: Whether it works.
        detail: What was found.
    """

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All that `doctor` tells.

    Attributes:
        version: Version of the package.
        python: Version of Python.
        platform: Operating system and machine.
        settings: Every setting in force.
        extras: Every extra.
        checks: Everything that was tried.
    """

    version: str
    python: str
    platform: str
    settings: tuple[Setting, ...]
    extras: tuple[Extra, ...]
    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether all that was tried works."""
        return all(check.ok for check in self.checks)


def package_version() -> str:
    """Return the version of the installed package."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "not installed"


def diagnose(settings: Settings) -> Diagnosis:
    """Return what is there, what is set and what works.

    Args:
        settings: The settings in force, options included.

    Raises:
        SettingsError: A settings file or variable is not valid.
    """
    return Diagnosis(
        version=package_version(),
        python=f"{platform.python_version()} ({sys.executable})",
        platform=platform.platform(),
        settings=tuple(_settings(settings)),
        extras=tuple(_extras()),
        checks=(_check_cache(settings), *_check_paging(settings)),
    )


def print_diagnosis(diagnosis: Diagnosis, *, as_json: bool) -> None:
    """Print a diagnosis as text or JSON."""
    if as_json:
        print_json(_json(diagnosis))
        return
    heads = [
        ("skillpager", diagnosis.version),
        ("python", diagnosis.python),
        ("platform", diagnosis.platform),
    ]
    lines = _aligned(heads)
    lines += ["", "settings"]
    lines += _aligned([(f"  {s.name}", f"{s.value}  ({s.origin})") for s in diagnosis.settings])
    lines += ["", "extras"]
    lines += _aligned([(f"  {extra.name}", extra.state) for extra in diagnosis.extras])
    lines += ["", "checks"]
    marks = {True: "ok", False: "FAILED"}
    lines += _aligned(
        [(f"  {check.name}", f"{marks[check.ok]}: {check.detail}") for check in diagnosis.checks]
    )
    print_text("\n".join(lines))


def _settings(settings: Settings) -> list[Setting]:
    """Return each setting with the last layer that changed it."""
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
        found.append(Setting(name, _shown(name, value), origin))
    return found


def _shown(name: str, value: object) -> str:
    if value is None or value == ():
        return "not set"
    if name.endswith("_key"):
        return "set, not shown"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _extras() -> list[Extra]:
    """Return the extras that the package's own metadata names."""
    packages: dict[str, list[str]] = {}
    try:
        for requirement in requires(PACKAGE) or []:
            if match := _REQUIREMENT.fullmatch(requirement.strip().rstrip("\"'")):
                packages.setdefault(match[2], []).append(match[1])
    except PackageNotFoundError:
        return []
    return [_extra(name, found) for name, found in sorted(packages.items())]


def _extra(name: str, packages: Sequence[str]) -> Extra:
    installed, missing = [], []
    for package in packages:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    return Extra(name, tuple(installed), tuple(missing))


def _check_cache(settings: Settings) -> Check:
    from skillpager.factories import cache_folder
    from skillpager.stores import SqliteStore

    folder = cache_folder(settings)
    try:
        store = SqliteStore(folder, max_bytes=settings.max_cache_bytes)
        count = counted(len(store.entries()), "index", "indexes")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, StoreError) as error:
        return Check("cache", False, str(error))
    return Check("cache", True, f"{folder} is writable: {count}, {byte_count(store.size)}")


def _check_paging(settings: Settings) -> list[Check]:
    """Page a skill of two lines in a folder of its own, with the encoder and classifier in force."""
    from skillpager.pager import SkillPager

    with tempfile.TemporaryDirectory() as folder:
        try:
            pager = SkillPager(settings=replace(settings, cache_dir=Path(folder)))
            return [_check_parts(pager), _check_tokens(pager), _self_test(pager, Path(folder))]
        except SkillPagerError as error:
            return [Check("self-test", False, str(error))]


def _check_parts(pager: "SkillPager") -> Check:
    encoder, classifier = pager.encoder, pager.classifier
    return Check("models", True, f"{encoder.id} ({encoder.dim} dimensions), {classifier.id}")


def _check_tokens(pager: "SkillPager") -> Check:
    counter = pager.token_counter
    hint = "" if counter.exact else f': pip install "{PACKAGE}[tokens]" makes them exact'
    return Check("token counts", True, f"{'exact' if counter.exact else 'estimates'} ({counter.id}){hint}")


def _self_test(pager: "SkillPager", folder: Path) -> Check:
    skill = folder / "self-test"
    skill.mkdir()
    (skill / "SKILL.md").write_text(SELF_TEST, encoding="utf-8")
    started = time.perf_counter()
    index = pager.index(skill)
    indexed = time.perf_counter()
    page = pager.page(index, SELF_TEST_QUERY, max_nodes=1, style="plain")
    paged = time.perf_counter()
    took = f"indexed in {indexed - started:.3f} s, paged in {paged - indexed:.3f} s"
    if SELF_TEST_ANSWER in page.text:
        return Check("self-test", True, took)
    return Check("self-test", False, f"{took}, but the page of {SELF_TEST_QUERY!r} is {page.text!r}")


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def _json(diagnosis: Diagnosis) -> JsonObject:
    return {
        "version": diagnosis.version,
        "python": diagnosis.python,
        "platform": diagnosis.platform,
        "settings": {s.name: {"value": s.value, "origin": s.origin} for s in diagnosis.settings},
        "extras": {e.name: {"installed": e.installed, "missing": e.missing} for e in diagnosis.extras},
        "checks": [asdict(check) for check in diagnosis.checks],
        "healthy": diagnosis.healthy,
    }

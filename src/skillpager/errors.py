"""The errors that a user can cause.

A message is one paragraph: what is wrong, where (file, line, value), and what to do about it.
Programming mistakes raise plain `ValueError` and `TypeError`.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NoReturn

# where the package comes from as long as no package index has it; empty from the first release on. Errors
# follow it, and what `release/plugins.py` writes
SOURCE = "git+https://github.com/skillpager/skillpager"
# where PyO3 defines the exception of a panic, which cannot be imported
PANIC_MODULE = "pyo3_runtime"


class SkillPagerError(Exception):
    """Base of every error that a user can cause and correct."""


class SkillError(SkillPagerError):
    """A skill cannot be found, read or parsed."""


class UnknownSkillError(SkillError):
    """No skill of a library has this name."""


class SettingsError(SkillPagerError):
    """A setting, option, argument or configuration file is wrong."""


class MissingExtraError(SkillPagerError):
    """An optional package is needed; the message names the install command."""


class EncoderError(SkillPagerError):
    """An encoder cannot be loaded, or its endpoint fails."""


class ClassifierError(SkillPagerError):
    """A classifier cannot be loaded, or its endpoint fails."""


class EnrichmentError(SkillPagerError):
    """The endpoint of the model that writes notes on nodes fails."""


class StoreError(SkillPagerError):
    """The index store cannot be opened, read or written."""


class StrategyError(SkillPagerError):
    """A strategy's model cannot be loaded, or its endpoint fails."""


class BenchError(SkillPagerError):
    """Data or results of the benchmark are missing or wrong, or a judge fails."""


class NodeNotFoundError(SkillPagerError):
    """A node, line range or section asked for is not in the skill."""


def is_panic(error: BaseException) -> bool:
    """Return whether an exception is a panic of a library in Rust, which is no `Exception`.

    It would end a server instead of a request.
    """
    return type(error).__module__ == PANIC_MODULE


def raise_fault(fault: BaseException, kind: type[SkillPagerError], library: str) -> NoReturn:
    """Raise a fault of a library again; a panic as an error of this kind, which names the library."""
    if not is_panic(fault):
        raise fault
    raise kind(f"{library} cannot process this text ({fault}): change the text, or report it.") from fault


def reinstall_command() -> str:
    """Return the pip command that installs this package again, from the source that it came from."""
    return install_command("", options="--force-reinstall --no-deps ")


def install_command(extra: str, *, options: str = "") -> str:
    """Return the command that adds an extra, or none (`""`), to this installation, from where it came from.

    It is one of pip, or of uv or pipx if these made this environment. For a package that is not from an
    index, they record its source and whether it is editable (PEP 610). `options` of pip are each followed by
    a blank.
    """
    # imported here: rarely needed, and together slower to import than the rest of the package
    import json
    import sys
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        origin = json.loads(distribution("skillpager").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # a source tree on the path
        origin = {}
    target = f"skillpager[{extra}]" if extra else "skillpager"
    url = origin.get("url", SOURCE)
    if vcs := origin.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    folder = url2pathname(urlsplit(url).path) if "dir_info" in origin else ""
    if folder and _is_there(Path(folder)):
        target = f"{folder}[{extra}]" if extra else folder
        options += "-e " if origin["dir_info"].get("editable") else ""
    elif url := SOURCE if folder else url:  # the folder was a temporary one
        target += f" @ {url}"
    if _is_there(Path(sys.prefix, "pipx_metadata.json")):
        return f'pipx inject --force skillpager "{target}"'
    pip = "pip install"
    if _is_there(Path(sys.prefix, "uv-receipt.toml")):  # an environment of `uv tool install` has no pip
        pip = f'uv pip install --python "{sys.prefix}"'
    return f'{pip} {options}"{target}"'


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:  # of a folder that this user may not enter: an error's text must not fail
        return False


def require_extra(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import and return an optional module of an extra, which `purpose`, the subject of a sentence, needs.

    If it is not installed, a `MissingExtraError` says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f'{purpose} needs the package "{module.partition(".")[0]}", which is not installed: '
            f"run `{install_command(extra)}`."
        ) from error


def missing_extra(module: str) -> MissingExtraError | None:
    """Return the error for a module that is not installed; None if no extra has a package of its name."""
    package = module.partition(".")[0]
    extras = {name: packages for name, packages in read_extras().items() if package in packages}
    if not extras:
        return None
    extra = min(extras, key=lambda name: len(extras[name]))  # which installs least beside it
    return MissingExtraError(
        f'This command needs the package "{package}", which is not installed: run `{install_command(extra)}`.'
    )


def read_extras() -> dict[str, list[str]]:
    """Return the packages of each extra, sorted by extra; empty for a source tree on the path."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    requirement = re.compile(r"([\w.-]+).*;.*extra\s*==\s*[\"']([\w.-]+)[\"']?")
    found: dict[str, list[str]] = {}
    try:
        needed = requires("skillpager") or []
    except PackageNotFoundError:
        return {}
    for match in filter(None, map(requirement.fullmatch, needed)):
        found.setdefault(match[2], []).append(match[1])
    return dict(sorted(found.items()))

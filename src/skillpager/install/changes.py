"""Changes to agents' configuration files: planned first, then written, and undone to the byte.

The earlier text of a file is stored in the user's state folder. As long as the file is as `install` left it,
`uninstall` writes that text back; if somebody changed it since, only the entry is removed.
"""

import contextlib
import difflib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from skillpager.errors import SettingsError
from skillpager.files import write_file
from skillpager.install.hosts import SERVER, Host
from skillpager.install.jsonc import EditError, JsonValue
from skillpager.settings import APP

BYTE_ORDER_MARK = "\ufeff"
PRIVATE = 0o600
# a longer line, such as the whole of a file written without line breaks, is not shown in full
MAX_SHOWN_LINE = 300

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change to one file.

    Attributes:
        path: The file, links followed.
        before: Its text now; None if it does not exist.
        after: Its text after the change; None if it is deleted.
        origin: Its text without SkillPager, for a later `uninstall`; None if it did not exist.
        folders: Folders created for it, or deleted with it if they are empty; inner ones first.
        private: Whether only the user may read it if it is new.
    """

    path: Path
    before: str | None
    after: str | None
    origin: str | None
    folders: tuple[Path, ...] = ()
    private: bool = False

    @property
    def is_none(self) -> bool:
        """Whether nothing changes."""
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class _Record:
    """The record of an `install`: the earlier text of the file, if any, and what was written and created."""

    before: str | None
    digest: str
    folders: tuple[Path, ...]


def plan_install(host: Host, file: Path, entry: JsonValue, *, private: bool = False) -> Change:
    """Return the change that adds the entry; a file that cannot be read or parsed is a `SettingsError`.

    Args:
        host: The agent.
        file: Its file.
        entry: The entry, in place of any that is there.
        private: Make a new file readable for the user alone: agents keep keys in the user's file.
    """
    path, before = _current(file)
    with _located(path):
        text, mark = _unmarked(before or "")
        if host.editor.read_entry(text, host.container, SERVER) == entry:
            return Change(path, before, before, before)
        after = mark + host.editor.with_entry(text, host.container, SERVER, entry)
        record = _load(path)
        if before is None:
            missing = [folder for folder in path.parents if not folder.exists()]
            return Change(path, None, after, None, tuple(missing), private)
        if record is None:
            return Change(path, before, after, before)
        origin = record.before if record.digest == _digest(before) else _without(host, before, record)
        return Change(path, before, after, origin, record.folders)


def plan_uninstall(host: Host, file: Path) -> Change:
    """Return the change that undoes `install`; a file that cannot be read or parsed is a `SettingsError`."""
    path, before = _current(file)
    if before is None:
        return Change(path, None, None, None)
    record = _load(path)
    if record is not None and record.digest == _digest(before):
        return Change(path, before, record.before, None, record.folders)
    with _located(path):
        after = _without(host, before, record)
    return Change(path, before, after, None, record.folders if record is not None else ())


def installed_entry(host: Host, file: Path) -> JsonValue:
    """Return the entry named `skillpager` of the file; None if there is none, or the file cannot be read."""
    try:
        _, before = _current(file)
        return host.editor.read_entry(_unmarked(before or "")[0], host.container, SERVER)
    except SettingsError:
        return None


def diff(change: Change) -> str:
    """Return the change as a unified diff, empty if nothing changes; very long lines are shortened."""
    old, new = (_LINES.findall(text or "") for text in (change.before, change.after))
    names = [str(change.path) if text is not None else os.devnull for text in (change.before, change.after)]
    half = MAX_SHOWN_LINE // 2
    shown = ""
    for line in difflib.unified_diff(old, new, names[0], names[1]):
        line = line.rstrip("\r\n")
        shown += (line if len(line) <= MAX_SHOWN_LINE else f"{line[:half]} […] {line[-half:]}") + "\n"
    return shown


def write(change: Change, *, keep: bool) -> None:
    """Make the change, if the file still is as it was.

    With `keep` its earlier text is stored for `uninstall`, otherwise the stored one is deleted.

    Raises:
        SettingsError: The file is read-only, or another program has changed it since.
        OSError: It cannot be written; the old content is still there.
    """
    mode = PRIVATE if change.private else None
    if change.path.exists():
        mode = stat.S_IMODE(change.path.stat().st_mode)
        if not mode & 0o222 or not os.access(change.path, os.W_OK):
            raise SettingsError(
                f"{change.path} is read-only: make it writable, or add the lines by hand; nothing was "
                "changed."
            )
    if keep and change.after is not None:
        form = {
            "file": str(change.path),
            "before": change.origin,
            "digest": _digest(change.after),
            "folders": [str(folder) for folder in change.folders],
        }
        # agents keep secrets in these files
        write_file(_record_file(change.path), json.dumps(form, indent=2) + "\n", mode=PRIVATE)
    if _current(change.path)[1] != change.before:
        raise SettingsError(f"{change.path} has just been changed by another program: run the command again.")
    if change.after is None:
        change.path.unlink()
        for folder in change.folders:
            with contextlib.suppress(OSError):  # something else is in it by now
                folder.rmdir()
    else:
        write_file(change.path, change.after, mode=mode)
    if not keep:
        _record_file(change.path).unlink(missing_ok=True)


def _without(host: Host, text: str, record: _Record | None) -> str | None:
    """Return the text without the entry, and without what was created for it; None for a whole file."""
    body, mark = _unmarked(text)
    made = False
    if record is not None:
        with contextlib.suppress(EditError):
            made = not host.editor.has_container(_unmarked(record.before or "")[0], host.container)
    rest = host.editor.without_entry(body, host.container, SERVER, drop_container=made)
    if record is not None and record.before is None and host.editor.is_empty(rest):
        return None
    return mark + rest


def _current(file: Path) -> tuple[Path, str | None]:
    """Return the file with links followed, and its text; None if it does not exist."""
    path = Path(os.path.realpath(file))
    try:
        data = path.read_bytes()
        return path, data.decode()
    except FileNotFoundError:
        return path, None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}:{line} is not UTF-8: save it as UTF-8; nothing was changed.") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}.") from error


@contextlib.contextmanager
def _located(path: Path) -> Iterator[None]:
    """Name the file in errors about its text."""
    try:
        yield
    except EditError as error:
        place = f"{path}:{error.line}:{error.column}" if error.line else str(path)
        raise SettingsError(
            f"{place}: {error}. Fix the file and run the command again; nothing was changed."
        ) from error


def _unmarked(text: str) -> tuple[str, str]:
    """Return a text without its byte order mark, and the mark."""
    return text.removeprefix(BYTE_ORDER_MARK), BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _record_file(path: Path) -> Path:
    return platformdirs.user_state_path(APP) / "hosts" / f"{_digest(str(path))[:24]}.json"


def _load(path: Path) -> _Record | None:
    """Return the record of a file; None if there is none, or it is damaged."""
    try:
        form = json.loads(_record_file(path).read_text(encoding="utf-8"))
        folders = tuple(Path(folder) for folder in form["folders"])
        return _Record(form["before"] and str(form["before"]), str(form["digest"]), folders)
    except (OSError, ValueError, KeyError, TypeError):
        return None

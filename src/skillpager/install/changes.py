"""Changes of agents' configuration files: planned first, then written, and undone to the byte.

What a file held before is kept in the user's state folder. As long as a file is as `install` left it,
`uninstall` writes that back; when others have changed it since, it takes out the entry and nothing else.
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

from skillpager.atomic_write import write_file
from skillpager.errors import SettingsError
from skillpager.install.hosts import SERVER, Host
from skillpager.install.jsonc_reader import EditError, JsonValue
from skillpager.settings import APP

MARK = "\ufeff"
PRIVATE = 0o600
# a longer line, such as the whole of a file written without line breaks, is not shown in full
MAX_SHOWN_LINE = 300

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of one file.

    Attributes:
        path: The file, links followed.
        before: Its text now; None if it does not exist.
        after: Its text to be; None if it is to be deleted.
        origin: Its text without SkillPager, for a later `uninstall`; None if it did not exist.
        folders: Folders that are made for it, or deleted with it if they are empty; inner ones first.
    """

    path: Path
    before: str | None
    after: str | None
    origin: str | None
    folders: tuple[Path, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether there is nothing to do."""
        return self.before == self.after


@dataclass(frozen=True, slots=True)
class _Record:
    """What `install` did to one file.

    Attributes:
        before: The text before it; None if there was no file.
        digest: Digest of the text that it wrote.
        folders: Folders that it made.
    """

    before: str | None
    digest: str
    folders: tuple[Path, ...]


def plan_install(host: Host, file: Path, entry: JsonValue) -> Change:
    """Return the change that puts the entry into the file.

    Raises:
        SettingsError: The file cannot be read or parsed, or has no place for an entry.
    """
    path, before = _current(file)
    with _located(path):
        text, mark = _unmarked(before or "")
        if host.editor.read_entry(text, host.container, SERVER) == entry:
            return Change(path, before, before, before)
        after = mark + host.editor.with_entry(text, host.container, SERVER, entry)
        record = _load(path)
        if before is None:
            return Change(path, None, after, None, tuple(_missing(path.parent)))
        if record is None:
            return Change(path, before, after, before)
        origin = record.before if record.digest == _digest(before) else _without(host, before, record)
        return Change(path, before, after, origin, record.folders)


def plan_uninstall(host: Host, file: Path) -> Change:
    """Return the change that undoes `install` in the file.

    Raises:
        SettingsError: The file cannot be read or parsed, or the entry cannot be taken out.
    """
    path, before = _current(file)
    if before is None:
        return Change(path, None, None, None)
    record = _load(path)
    if record is not None and record.digest == _digest(before):
        return Change(path, before, record.before, None, record.folders)
    with _located(path):
        after = _without(host, before, record)
    return Change(path, before, after, None, record.folders if record is not None else ())


def is_installed(host: Host, file: Path) -> bool:
    """Tell whether the file has an entry of SkillPager's name; a file that cannot be read has none."""
    try:
        _, before = _current(file)
        return host.editor.read_entry(_unmarked(before or "")[0], host.container, SERVER) is not None
    except SettingsError:
        return False


def shown(change: Change) -> str:
    """Return the change as a unified diff, nothing if there is none."""
    old, new = (_LINES.findall(text or "") for text in (change.before, change.after))
    names = [str(change.path) if text is not None else os.devnull for text in (change.before, change.after)]
    lines = difflib.unified_diff(old, new, names[0], names[1])
    return "".join(_clipped(line.rstrip("\r\n")) + "\n" for line in lines)


def write(change: Change, *, keep: bool) -> None:
    """Make the change, if the file still is as it was.

    Args:
        change: The change.
        keep: Remember what was there before, for `uninstall`; else forget what is remembered.

    Raises:
        SettingsError: The file is read-only, or another program has changed it since.
        OSError: It cannot be written; what was there is still there.
    """
    mode = _writable_mode(change.path)
    if keep and change.after is not None:
        _save(change.path, _Record(change.origin, _digest(change.after), change.folders))
    if _current(change.path)[1] != change.before:
        raise SettingsError(
            f"{change.path} has been changed by another program just now: run the command again."
        )
    if change.after is None:
        change.path.unlink()
        _drop(change.folders)
    else:
        write_file(change.path, change.after, mode=mode)
    if not keep:
        _record_file(change.path).unlink(missing_ok=True)


def _without(host: Host, text: str, record: _Record | None) -> str | None:
    """Return the text without the entry, and without what was made for it; None for a file made for it."""
    body, mark = _unmarked(text)
    made = record is not None and not _has_container(host, record.before)
    rest = host.editor.without_entry(body, host.container, SERVER, drop_container=made)
    if record is not None and record.before is None and host.editor.is_empty(rest):
        return None
    return mark + rest


def _has_container(host: Host, text: str | None) -> bool:
    """Tell whether entries had a place in the text."""
    body = _unmarked(text or "")[0]
    with contextlib.suppress(EditError):
        return host.editor.has_container(body, host.container)
    return True


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
            f"{place}: {error}. Mend the file and run the command again; nothing was changed."
        ) from error


def _unmarked(text: str) -> tuple[str, str]:
    """Return a text without its byte order mark, and the mark."""
    return text.removeprefix(MARK), MARK if text.startswith(MARK) else ""


def _missing(folder: Path) -> Iterator[Path]:
    while not folder.exists():
        yield folder
        folder = folder.parent


def _drop(folders: tuple[Path, ...]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # something else is in it by now
            folder.rmdir()


def _writable_mode(path: Path) -> int | None:
    """Return the permissions of a file, None for one that is to be made.

    Raises:
        SettingsError: The file is read-only: replacing it would be against its owner's will.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
    if not mode & 0o222 or not os.access(path, os.W_OK):
        raise SettingsError(
            f"{path} is read-only: make it writable, or add the lines by hand; nothing was changed."
        )
    return mode


def _clipped(line: str) -> str:
    half = MAX_SHOWN_LINE // 2
    return line if len(line) <= MAX_SHOWN_LINE else f"{line[:half]} […] {line[-half:]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _record_file(path: Path) -> Path:
    return platformdirs.user_state_path(APP) / "hosts" / f"{_digest(str(path))[:24]}.json"


def _save(path: Path, record: _Record) -> None:
    form = {
        "file": str(path),
        "before": record.before,
        "digest": record.digest,
        "folders": [str(folder) for folder in record.folders],
    }
    # agents keep keys in these files
    write_file(_record_file(path), json.dumps(form, indent=2) + "\n", mode=PRIVATE)


def _load(path: Path) -> _Record | None:
    """Return what `install` did to a file; None if it did nothing, or its record is damaged."""
    try:
        form = json.loads(_record_file(path).read_text(encoding="utf-8"))
        folders = tuple(Path(folder) for folder in form["folders"])
        return _Record(form["before"] and str(form["before"]), str(form["digest"]), folders)
    except (OSError, ValueError, KeyError, TypeError):
        return None

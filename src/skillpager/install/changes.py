"""Changes to agents' configuration files: planned first, shown as a diff, then written.

`uninstall` removes the entry, what is empty without it, and nothing else.
"""

import contextlib
import difflib
import os
import re
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from skillpager.errors import SkillPagerError
from skillpager.files import NAME_CHARS, write_file
from skillpager.install.hosts import Host
from skillpager.install.jsonc import EditError, JsonValue

BYTE_ORDER_MARK = "\ufeff"
PRIVATE = 0o600
LEFT_SECONDS = 600
# a longer line, such as the whole of a file written without line breaks, is not shown in full
MAX_SHOWN_LINE = 300

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change to one file, whose links are followed.

    `before` is None if it does not exist, `after` if it is deleted; a new file that is `private` only its
    owner may read.
    """

    path: Path
    before: str | None
    after: str | None
    private: bool = False

    @property
    def is_none(self) -> bool:
        """Whether nothing changes."""
        return self.before == self.after


def plan_install(host: Host, file: Path, entry: JsonValue, *, private: bool = False) -> Change:
    """Return the change that adds the entry, or puts it in the place of the one that is there.

    A new file that is `private` is readable for the user alone: agents keep keys in the user's file.
    """
    path, before = current_text(file)
    with located(path):
        text, mark = unmarked(before or "")
        place, now = host.find(host.editor.read(text))
        if now == entry:
            return Change(path, before, before)
        return Change(path, before, mark + host.editor.with_value(text, place, entry), private)


def plan_uninstall(host: Host, file: Path) -> Change:
    """Return the change that removes the entry, and what is empty without it."""
    path, before = current_text(file)
    with located(path):
        text, mark = unmarked(before or "")
        data: JsonValue = host.editor.read(text)
        place, now = host.find(data)
        if now is None:
            return Change(path, before, before)
        kept = 1  # the keys up to the last object or list that holds something else
        for depth, key in enumerate(place, 1):
            kept = depth if isinstance(data, dict | list) and len(data) > 1 else kept
            data = data[key]  # type: ignore[index]
        rest = host.editor.without_value(text, place[:kept])
    return Change(path, before, None if host.editor.is_empty(rest) else mark + rest)


def installed_entry(host: Host, file: Path) -> JsonValue:
    """Return SkillPager's entry in the file; None if there is none, or the file cannot be read."""
    try:
        _, before = current_text(file)
        return host.find(host.editor.read(unmarked(before or "")[0]))[1]
    except SkillPagerError:
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


def write(change: Change) -> None:
    """Make the change; a `SkillPagerError` if the file is read-only, or was changed by another program."""
    mode = PRIVATE if change.private else None
    if change.path.exists():
        mode = stat.S_IMODE(change.path.stat().st_mode)
        if not mode & 0o222 or not os.access(change.path, os.W_OK):
            raise SkillPagerError(
                f"{change.path} is read-only: make it writable, or add the lines by hand; nothing was "
                "changed."
            )
    if current_text(change.path)[1] != change.before:
        raise SkillPagerError(f"{change.path} was just changed by another program: run the command again.")
    if change.after is None:
        change.path.unlink()
    else:
        write_file(change.path, change.after, mode=mode)
    # what a killed command has left; a younger one may still be written
    for left in change.path.parent.glob(f".{escape(change.path.name[:NAME_CHARS])}-{'?' * 32}.tmp"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - LEFT_SECONDS:
                left.unlink()


def current_text(file: Path) -> tuple[Path, str | None]:
    """Return the file with links followed, and its text; None if it does not exist."""
    path = Path(os.path.realpath(file))
    try:
        data = path.read_bytes()
        return path, data.decode()
    except FileNotFoundError:
        return path, None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise SkillPagerError(f"{path}:{line} is not UTF-8: save it so; nothing was changed.") from error
    except OSError as error:
        raise SkillPagerError(f"{path} cannot be read: {error.strerror or error}.") from error


@contextlib.contextmanager
def located(path: Path) -> Iterator[None]:
    """Name the file in errors about its text."""
    try:
        yield
    except EditError as error:
        place = f"{path}:{error.line}:{error.column}" if error.line else str(path)
        raise SkillPagerError(
            f"{place}: {error}. Fix the file and run the command again; nothing was changed."
        ) from error


def unmarked(text: str) -> tuple[str, str]:
    """Return a text without its byte order mark, and the mark."""
    return text.removeprefix(BYTE_ORDER_MARK), BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""

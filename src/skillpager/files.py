"""Files and folders: bounded reads, atomic writes, stamps that show a change, what is in a folder."""

import codecs
import errno
import logging
import os
import stat
import time
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

from skillpager.display_text import is_plain, one_line
from skillpager.errors import SkillError

logger = logging.getLogger(__name__)

ENTRY_FILE = "SKILL.md"
ENTRY_NAMES = (ENTRY_FILE, ENTRY_FILE.lower())

# levels of folders, and names of all folders together, that are looked at
MAX_DEPTH, MAX_ENTRIES = 10, 20_000
MAX_PATH_CHARS = 100  # of a path in a message
# characters of the name in that of the temporary file, which has 38 bytes more; file systems allow 255
NAME_CHARS = 40
# bounds of a search for a name like one that does not exist
MAX_COMPARED_CHARS, MAX_COMPARED_NAMES = 100, 2_000
# folders that programs make beside what an author wrote
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})
# a file written this recently may change again within the resolution of its time stamp
SETTLED_NS = 2_000_000_000

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# documents that may be plain ASCII: PDF and RTF
_DOCUMENTS = (b"%PDF-", b"{\\rtf")
_PROBE_BYTES = 8192  # that are searched for a null character, which no text has
_CHUNK_BYTES = 64 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file, or the first `max_bytes + 1` bytes of a longer one.

    Pipes and devices are neither waited for nor read, and a file that grows is not followed.

    Raises:
        OSError: It cannot be read, or is not a regular file.
    """

    def open_at_once(name: str, flags: int) -> int:
        # a pipe would wait for somebody who writes to it; Windows has no such files
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    if stat.S_ISREG(path.stat().st_mode):
        with open(path, "rb", buffering=0, opener=open_at_once) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it may have been replaced meanwhile
                data = bytearray()
                while chunk := file.read(min(_CHUNK_BYTES, max_bytes + 1 - len(data))):
                    data += chunk
                return bytes(data)
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def decode(data: bytes, place: str, *, complete: bool = True) -> str:
    """Return the text of UTF-8 data.

    Errors name its `place`; data that is not `complete` may end within a character.

    Raises:
        SkillError: It is a document, an archive, an image or other binary data, or in another encoding.
    """
    if data.startswith(_UTF16_MARKS) and not data.startswith(codecs.BOM_UTF32_LE):
        raise SkillError(f"{place} is UTF-16: save it as UTF-8.")
    if data.startswith(_DOCUMENTS) or b"\0" in data[:_PROBE_BYTES]:
        raise SkillError(
            f"{place} is not plain text: convert a PDF or Word document to Markdown, for instance with "
            "markitdown, and unpack an archive."
        )
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=complete)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SkillError(
            f"{place}:{line} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start}): "
            "save the file as UTF-8."
        ) from error


def write_file(path: Path, data: bytes | str, *, mode: int | None = None) -> None:
    """Write a file atomically: text as UTF-8, line breaks unchanged; missing folders are created.

    It has the permissions `mode` from the moment it exists, by default those of any new file.

    Raises:
        OSError: It cannot be written; the previous content is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # not by `tempfile`, whose files only their owner can read
    temporary = path.with_name(f".{path.name[:NAME_CHARS]}-{uuid4().hex}.tmp")
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o666 if mode is None else mode), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def make_private_folder(folder: Path) -> None:
    """Create a folder that its owner alone may enter, with the missing folders above it."""
    for each in reversed((folder, *folder.parents)):
        if not each.is_dir():
            each.mkdir(mode=0o700, exist_ok=True)


@dataclass(frozen=True, slots=True)
class FileStamps:
    """The state of files and folders when they were read, by which a later change is noticed.

    A line for each path has its times of modification and of change, size, device and inode. A program may
    keep the size and set the first time; the second is the system's own. Not noticed are changes through a
    memory map that a program holds since then, and on Windows, which has no time of change, another text of
    equal size to which a program gives the old time of modification.
    """

    paths: tuple[str, ...]
    state: str

    def changed(self) -> bool:
        """Return whether any of them differs now, or is gone."""
        try:
            return _state_of(map(os.stat, self.paths)) != self.state
        except OSError:
            return True


def take_stamps(paths: Iterable[Path]) -> FileStamps | None:
    """Return the stamps of what was just read; None while one of them is too fresh to be trusted."""
    places = tuple(dict.fromkeys(map(os.fspath, paths)))
    try:
        statuses = list(map(os.stat, places))
    except OSError:
        return None
    now = time.time_ns()
    # a time in the future was set by a program, or by a clock that was wrong: no later change repeats it
    fresh = any(
        abs(now - at) <= SETTLED_NS for each in statuses for at in (each.st_mtime_ns, each.st_ctime_ns)
    )
    return None if fresh else FileStamps(places, _state_of(statuses))


def _state_of(statuses: Iterable[os.stat_result]) -> str:
    return "\n".join(
        f"{each.st_mtime_ns} {each.st_ctime_ns} {each.st_size} {each.st_dev} {each.st_ino}"
        for each in statuses
    )


def identity_of(folder: Path) -> Hashable:
    """Return what tells a folder from others on the disk, whatever links lead to it."""
    status = folder.stat()
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(folder)


def entries_of(folder: Path) -> dict[str, bool]:
    """Return the names in a folder, and whether each is a folder."""
    with os.scandir(folder) as entries:
        return {entry.name: _is_folder(entry) for entry in entries}


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


class Entry(NamedTuple):
    """A thing in a skill's folder: its path from there, and what it is; `skill` is another skill's folder."""

    path: str
    kind: Literal["file", "folder", "skill", "link", "fault"]
    problem: str = ""  # why a fault is left out, as the end of a sentence


def walk(root: Path) -> Iterator[Entry]:
    """Yield what is in a skill's folder: files of a folder before those of its folders, in order of names.

    Each folder comes before what is in it; that of the skill is the first, its path is empty. Hidden files
    and folders, and folders that programs make, are left out. Links are not followed, and folders with a
    SKILL.md of their own are not searched.
    """
    waiting, seen = [""], 0
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(root / folder) as found:
                shown = sorted((each for each in found if each.name[0] != "."), key=lambda each: each.name)
        except OSError as error:
            yield Entry(folder, "fault", f"cannot be read: {error.strerror or error}")
            continue
        seen += len(shown)
        if folder and any(each.name in ENTRY_NAMES for each in shown):
            yield Entry(folder, "skill")
        elif folder.count("/") >= MAX_DEPTH or seen > MAX_ENTRIES:
            limits = f"{MAX_DEPTH} levels and {MAX_ENTRIES:,} files"
            yield Entry(folder, "fault", f"is not searched: the skill's folder has more than {limits}")
        elif not is_plain(folder):
            shown_path = repr(one_line(folder, MAX_PATH_CHARS))
            yield Entry(
                shown_path, "fault", "has control, hidden or broken characters in its name: rename it"
            )
        else:
            yield Entry(folder, "folder")
            below = []
            for each in shown:
                path = f"{folder}/{each.name}".lstrip("/")
                if each.is_symlink():
                    yield Entry(path, "link")
                elif not each.is_dir(follow_symlinks=False):
                    yield Entry(path, "file")
                elif each.name not in SKIPPED_FOLDERS:
                    below.append(path)
            waiting += reversed(below)


@lru_cache
def warn_of_size(folder: Path, most: int) -> None:
    """Log once that a folder is not searched completely."""
    logger.warning(
        "%s has more than %d folders without a skill, and some are not searched: name folders nearer to "
        "the skills.",
        *(folder, most),
    )


def near_path(path: Path) -> str:
    """Return a question with an existing path like one that does not exist; empty if there is none."""
    import difflib  # only for an error

    found = Path(path.anchor)
    for part in path.parts[bool(path.anchor) :]:
        if os.path.lexists(found / part):
            found /= part
            continue
        try:
            names = [entry.name for entry in islice(os.scandir(found), MAX_COMPARED_NAMES)]
        except OSError:
            return ""
        close = difflib.get_close_matches(part[:MAX_COMPARED_CHARS], names, 1)
        if not close:
            return ""
        found /= close[0]
    return f"did you mean {str(found)!r}?" if found != path else ""

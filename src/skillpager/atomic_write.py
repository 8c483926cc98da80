"""Write a file atomically: readers see the old content or the new, never a part."""

import os
import time
from contextlib import suppress
from glob import escape
from pathlib import Path
from uuid import uuid4

# characters of the name in that of the temporary file, which has 38 bytes more; file systems allow 255
NAME_CHARS = 40
# a write takes far less: an older temporary file is that of a process that was killed
LEFTOVER_SECONDS = 600

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_file(path: Path, data: bytes | str, *, mode: int | None = None) -> None:
    """Write a file atomically: text as UTF-8, line breaks unchanged; missing folders are created.

    Args:
        path: The file.
        data: Its whole content.
        mode: Its permissions, from the moment it exists; default: those of any new file.

    Raises:
        OSError: It cannot be written; the previous content is unchanged.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # not by `tempfile`, whose files only their owner can read
    prefix = f".{path.name[:NAME_CHARS]}-"
    _remove_leftovers(path.parent, prefix)
    temporary = path.with_name(f"{prefix}{uuid4().hex}.tmp")
    try:
        with os.fdopen(os.open(temporary, _NEW, 0o666 if mode is None else mode), "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remove_leftovers(folder: Path, prefix: str) -> None:
    """Delete temporary files of writes that were killed, so that they do not add up."""
    oldest = time.time() - LEFTOVER_SECONDS
    for leftover in folder.glob(f"{escape(prefix)}{'[0-9a-f]' * 32}.tmp"):
        with suppress(OSError):  # another process was first, or the file is not ours
            if leftover.stat().st_mtime < oldest:
                leftover.unlink()

"""Write a file atomically: readers see the old content or the new, never a part."""

import os
from pathlib import Path
from uuid import uuid4

# characters of the name in that of the temporary file, which has 38 bytes more; file systems allow 255
NAME_CHARS = 40

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

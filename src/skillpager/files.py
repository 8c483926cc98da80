"""Files written so that nobody ever reads half of one."""

from pathlib import Path
from uuid import uuid4

# file systems allow 255 bytes for a name; the temporary one has 38 more than the part kept of the other
MAX_KEPT_NAME = 40


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file anew, atomically; text as UTF-8 with its line breaks as they are, folders made if need be.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # not by `tempfile`, whose files nobody else may read
    temporary = path.with_name(f".{path.name[:MAX_KEPT_NAME]}-{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise

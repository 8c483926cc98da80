"""Whether the files of a skill may have changed since they were read, told from their metadata."""

import time
from dataclasses import dataclass
from pathlib import Path

from skillpager.types import Skill

# a file written this recently may change again within its time stamp's resolution
SETTLED_NS = 2_000_000_000

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Stamps:
    """Modification time, size and inode of a skill's files and of the folders they lie in."""

    paths: tuple[Path, ...]
    stamps: tuple[Stamp, ...]

    def changed(self) -> bool:
        """Tell whether any of them differs now, or is gone."""
        try:
            return any(_stamp(path) != stamp for path, stamp in zip(self.paths, self.stamps, strict=True))
        except OSError:
            return True


def stamp_files(skill: Skill) -> Stamps | None:
    """Return the stamps of a skill that was just read; None while a file is too fresh to be trusted."""
    if skill.root is None:
        return None
    files = [skill.root / file.path for file in skill.files]
    paths = tuple(dict.fromkeys([*files, *(path.parent for path in files)]))
    try:
        stamps = tuple(_stamp(path) for path in paths)
    except OSError:
        return None
    settled = time.time_ns() - SETTLED_NS
    return Stamps(paths, stamps) if all(stamp[0] < settled for stamp in stamps) else None


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino

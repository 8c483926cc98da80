"""Unpack archives of strangers into a folder, within limits: nothing lands outside of it."""

import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from skillpager.errors import SkillError

# `.skill` is what agents call a zip file of one skill
SUFFIXES = (".zip", ".skill", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_FILES = 200_000
# a library of 60,000 skills has about 1 GB
MAX_TOTAL_BYTES = 4 * 1024**3
# a file beyond it is no text of a skill: it is passed over
MAX_FILE_BYTES = 64 * 1024**2
CHUNK = 1024**2

# what readers of damaged or encrypted archives raise
_DAMAGES = (
    *(OSError, EOFError, RuntimeError, ValueError, tarfile.TarError, zipfile.BadZipFile),
    *(zlib.error, lzma.LZMAError),
)


def is_archive(name: str) -> bool:
    """Return whether a file is an archive by its name."""
    return name.lower().endswith(SUFFIXES)


def unpack(archive: Path, folder: Path, *, place: str = "") -> None:
    """Write the regular files of an archive below `folder`; links, devices and permissions are left out.

    Args:
        archive: A zip file or tar archive.
        folder: An empty folder.
        place: The archive as the user named it.

    Raises:
        SkillError: It is neither, is damaged or encrypted, holds a path that leads out of it, or is larger
            than the limits.
    """
    place = place or str(archive)
    intake = Intake(folder, place)
    try:
        if zipfile.is_zipfile(archive):
            members = _zip_members(archive)
        elif tarfile.is_tarfile(archive):
            members = _tar_members(archive)
        else:
            raise SkillError(f"{place} is no zip file and no tar archive: check that it is complete.")
        for path, opened in members:
            with opened:
                intake.add(path, opened)
    except _DAMAGES as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SkillError(f"{place} cannot be unpacked ({reason}): check it, or get it anew.") from error


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if not info.is_dir() and not stat.S_ISLNK(info.external_attr >> 16):
                # zip files of some Windows programs have backslashes
                yield info.filename.replace("\\", "/"), opened.open(info)


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile() and (file := opened.extractfile(member)):
                yield member.name, file


class Intake:
    """Writes files of others below a folder, within the limits on number and size.

    Args:
        folder: The folder.
        place: Where the files come from, for errors.
    """

    def __init__(self, folder: Path, place: str) -> None:
        self._folder, self._place = folder, place
        self._files = self._bytes = 0

    def add(self, path: str, opened: IO[bytes]) -> None:
        """Write a file; one that is larger than a file may be is passed over.

        Raises:
            SkillError: Its path leads out of the folder, or it is beyond the limits.
        """
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or (os.name == "nt" and ":" in path):
            raise SkillError(
                f"{self._place} holds the path {path[:200]!r}, which leads out of it: nothing of it is used. "
                "Unpack it yourself if you trust it."
            )
        self._files += 1
        if self._files > MAX_FILES:
            raise self._too_large(f"{MAX_FILES:,} files")
        target = self._folder.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        size = 0
        with target.open("wb") as file:
            while chunk := opened.read(CHUNK):
                size += len(chunk)
                self._bytes += len(chunk)
                # what a header says of a size may be a lie: what is read counts
                if self._bytes > MAX_TOTAL_BYTES:
                    raise self._too_large(f"{MAX_TOTAL_BYTES // 1024**3} GiB")
                if size > MAX_FILE_BYTES:
                    break
                file.write(chunk)
        if size > MAX_FILE_BYTES:
            target.unlink()

    def _too_large(self, limit: str) -> SkillError:
        return SkillError(
            f"{self._place} holds more than {limit}: split it, or unpack it yourself and name its folder."
        )

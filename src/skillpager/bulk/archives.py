"""Unpack archives of strangers into a folder, within limits: nothing lands outside of it."""

import bz2
import gzip
import io
import logging
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, cast

from skillpager.errors import SkillError

logger = logging.getLogger(__name__)

# `.skill` is what agents call a zip file of one skill
SUFFIXES = (".zip", ".skill", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_FILES = 200_000
# a library of 60,000 skills has about 1 GB
MAX_TOTAL_BYTES = 4 * 1024**3
# a larger file is not the text of a skill: it is left out
MAX_FILE_BYTES = 64 * 1024**2
# the largest piece that is read at once, and the largest extended header of a tar archive
CHUNK = 1024**2

# raised by readers of damaged or encrypted archives
_DAMAGES = (
    *(OSError, EOFError, RuntimeError, ValueError, tarfile.TarError, zipfile.BadZipFile),
    *(zlib.error, lzma.LZMAError),
)


class TooLargeError(SkillError):
    """The files of a source exceed a limit."""

    def __init__(self, place: str, limit: str) -> None:
        super().__init__(
            f"{place} holds more than {limit}: split it, or unpack it yourself and name its folder."
        )


def is_archive(name: str) -> bool:
    """Return whether a file is an archive by its name."""
    return name.lower().endswith(SUFFIXES)


def unpack(archive: Path, folder: Path, *, place: str = "") -> None:
    """Write the regular files of an archive below `folder`; links, devices and permissions are left out.

    A file that cannot be unpacked, or whose path leads out of the archive, is left out with a warning.

    Args:
        archive: A zip file or tar archive.
        folder: An empty folder.
        place: The archive as the user named it.

    Raises:
        SkillError: The file is not an archive, is damaged, or is larger than the limits.
    """
    place = place or str(archive)
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, Intake(folder, place))
        else:
            _unpack_tar(archive, Intake(folder, place), place)
    except tarfile.ReadError as error:
        raise SkillError(
            f"{place} is not a complete zip file or tar archive ({error}): check it, or download it again."
        ) from error
    except _DAMAGES as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SkillError(f"{place} cannot be unpacked ({reason}): check it, or download it again.") from error


def _unpack_zip(archive: Path, intake: "Intake") -> None:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            if info.is_dir() or stat.S_ISLNK(info.external_attr >> 16):
                continue
            try:
                with opened.open(info) as file:
                    # zip files of some Windows programs have backslashes
                    intake.add(info.filename.replace("\\", "/"), file)
            except _DAMAGES as error:  # an encrypted or damaged file says nothing of the others
                intake.leave_out(info.filename, str(error))


def _unpack_tar(archive: Path, intake: "Intake", place: str) -> None:
    with (
        archive.open("rb") as raw,
        _decompressed(raw) as data,
        tarfile.open(fileobj=cast("IO[bytes]", _BoundedReader(data, place)), mode="r:") as opened,
    ):
        for member in opened:
            if member.isfile() and (file := opened.extractfile(member)):
                with file:
                    intake.add(member.name, file)


def _decompressed(raw: IO[bytes]) -> IO[bytes]:
    """Return a reader of the decompressed bytes of a file, whose compression its first bytes tell."""
    magic = raw.read(6)
    raw.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=raw))
    if magic.startswith(b"BZh"):
        return cast("IO[bytes]", bz2.BZ2File(raw))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return cast("IO[bytes]", lzma.LZMAFile(raw))
    return raw


class _BoundedReader(io.RawIOBase):
    """Reads a tar archive within limits.

    `tarfile` reads a whole extended header at once, however large the archive says it is, and decompresses
    the files that it passes over.
    """

    def __init__(self, data: IO[bytes], place: str) -> None:
        self._data, self._place = data, place

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes.

        Raises:
            TooLargeError: They are more than an extended header may have.
        """
        if not 0 <= size <= CHUNK + tarfile.BLOCKSIZE:
            raise TooLargeError(self._place, f"{CHUNK // 1024**2} MiB in an extended header")
        return self._data.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position of the decompressed bytes.

        Raises:
            TooLargeError: It is beyond the limit on all bytes.
        """
        if offset > MAX_TOTAL_BYTES:
            raise TooLargeError(self._place, f"{MAX_TOTAL_BYTES // 1024**3} GiB")
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        """Return the position among the decompressed bytes."""
        return self._data.tell()


class Intake:
    """Writes files of others below a folder, within the limits on number and size.

    Args:
        folder: The folder.
        place: Where the files come from, for errors.
    """

    def __init__(self, folder: Path, place: str) -> None:
        self._folder, self._place = folder, place
        self._files = self._bytes = 0

    def leave_out(self, path: str, reason: str) -> None:
        """Warn that a file is left out."""
        logger.warning("%s: the file %r was left out: %s", self._place, path[:200], reason)

    def add(self, path: str, opened: IO[bytes]) -> None:
        """Write a file; one that is too large, or whose path cannot be had here, is left out.

        Raises:
            TooLargeError: All files together are beyond the limits.
        """
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or (os.name == "nt" and ":" in path):
            return self.leave_out(path, "its path leads out of the archive")
        self._files += 1
        if self._files > MAX_FILES:
            raise TooLargeError(self._place, f"{MAX_FILES:,} files")
        target = self._folder.joinpath(*parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            file = target.open("wb")
        except (OSError, ValueError) as error:  # a name too long, or that of a folder
            return self.leave_out(path, str(error))
        size = 0
        with file:
            while chunk := opened.read(CHUNK):
                size += len(chunk)
                self._bytes += len(chunk)
                # the size in a header may be a lie: the bytes that are read count
                if self._bytes > MAX_TOTAL_BYTES:
                    raise TooLargeError(self._place, f"{MAX_TOTAL_BYTES // 1024**3} GiB")
                if size > MAX_FILE_BYTES:
                    break
                file.write(chunk)
        if size > MAX_FILE_BYTES:
            target.unlink()
        return None

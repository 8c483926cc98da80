"""Bring the files of strangers into a folder, within limits: archives and git repositories.

Nothing lands outside of the folder, and none of the files is run. Only addresses that the user gave are
fetched.
"""

import gzip
import logging
import os
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any, cast
from urllib.parse import parse_qs, urlsplit, urlunsplit

from skillpager.errors import SkillError
from skillpager.settings import hide_secrets

logger = logging.getLogger(__name__)

ZIPS = (".zip", ".skill")  # `.skill` is what agents call a zip file of one skill
SUFFIXES = (*ZIPS, ".tar", ".tar.gz", ".tgz")
# entries of an archive, folders and links included; and folders that are made, most of which have no entry
MAX_FILES = 200_000
# a library of 60,000 skills has about 1 GB
MAX_TOTAL_BYTES = 4 * 1024**3
# a larger file is not the text of a skill: it is left out
MAX_FILE_BYTES = 64 * 1024**2
# all headers of one file in a tar archive; long names and attributes are there
MAX_HEADER_BYTES = 1024**2
# `tarfile` may need the square of the time for digits in a row (CVE-2024-6232); its numbers have about 20
TOO_MANY_DIGITS = re.compile(rb"\d{65}")
MAX_PARTS = 64  # of a path: folders within folders are made, walked and removed by recursion
MAX_WARNINGS = 20  # for each file that is left out; one for all others
CHUNK = 1024**2

GIT = "git+"
GIT_SECONDS = 600.0
# transports of git that run no program that the address names, and encrypt what comes from elsewhere
TRANSPORTS = ("file", "https", "ssh")

# raised for a damaged archive, or a disk that is full
_DAMAGED = tarfile.TarError, zipfile.BadZipFile, zlib.error
UNPACKING_ERRORS = OSError, EOFError, RuntimeError, ValueError, *_DAMAGED


class Intake:
    """Writes files of strangers below a folder, and counts them against the limits."""

    def __init__(self, folder: Path, place: str) -> None:
        self.folder, self._place = folder, place
        self._files = self._folders = self._bytes = self._left_out = 0

    def leave_out(self, path: str, reason: object) -> None:
        """Leave out a file, with a warning for the first ones."""
        self._left_out += 1
        if self._left_out <= MAX_WARNINGS:
            logger.warning("%s: the file %r was left out: %s", self._place, path[:200], reason)
        elif self._left_out == MAX_WARNINGS + 1:
            logger.warning("%s: further files are left out, too", self._place)

    def too_large(self, limit: str) -> SkillError:
        """Return the error for a source that is beyond a limit."""
        remedy = "split it, or unpack it yourself and name its folder"
        return SkillError(f"{self._place} holds more than {limit}: {remedy}.")

    def count(self, *, files: int = 0, folders: int = 0, size: int = 0) -> None:
        """Count files, folders and bytes; all together may not be beyond the limits."""
        self._files += files
        self._folders += folders
        self._bytes += size
        if max(self._files, self._folders) > MAX_FILES:
            raise self.too_large(f"{MAX_FILES:,} files or folders")
        if self._bytes > MAX_TOTAL_BYTES:
            raise self.too_large(f"{MAX_TOTAL_BYTES // 1024**3} GiB")

    def add(self, path: str, opened: IO[bytes]) -> None:
        """Write a file; one that is too large, or whose path leads out or cannot be had here, is left out."""
        parts = PurePosixPath(path).parts
        out = not parts or path.startswith("/") or ".." in parts or (os.name == "nt" and ":" in path)
        if out or len(parts) > MAX_PARTS:
            wrong = "leads out of the archive" if out else f"has more than {MAX_PARTS} parts"
            self.leave_out(path, f"its path {wrong}")
            return
        target = self.folder.joinpath(*parts)
        try:
            self.count(folders=len([*takewhile(lambda folder: not folder.exists(), target.parents)]))
            target.parent.mkdir(parents=True, exist_ok=True)
            file = target.open("wb")
        except (OSError, ValueError) as error:  # a name too long, or that of a folder
            self.leave_out(path, getattr(error, "strerror", None) or error)
            return
        size = 0
        try:
            with file:
                while size <= MAX_FILE_BYTES and (chunk := opened.read(CHUNK)):
                    size += len(chunk)
                    self.count(size=len(chunk))  # the size in a header may be a lie
                    file.write(chunk)
        except BaseException:  # a part of a file must not pass for it
            target.unlink()
            raise
        if size > MAX_FILE_BYTES:
            target.unlink()
            self.leave_out(path, f"it is larger than {MAX_FILE_BYTES // 1024**2} MiB")


# ---- archives


def unpack(archive: Path, folder: Path, *, place: str) -> Path:
    """Write the regular files of an archive into a new folder in `folder`, and return it.

    Links, devices and permissions are left out; so is, with a warning, what `Intake` does not take.
    """
    intake, suffix = Intake(folder / "unpacked", place), archive.suffix.lower()
    if suffix in ZIPS:
        _unpack_zip(archive, intake)
    else:
        with archive.open("rb") if suffix == ".tar" else gzip.open(archive) as data:
            _unpack_tar(cast("IO[bytes]", data), intake)
    return intake.folder


def _unpack_zip(archive: Path, intake: Intake) -> None:
    with zipfile.ZipFile(archive) as opened:
        for info in opened.infolist():
            intake.count(files=1)
            if info.is_dir() or stat.S_ISLNK(info.external_attr >> 16):
                continue
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                intake.leave_out(info.filename, "its compression may take any amount of memory")
                continue
            try:
                with opened.open(info) as file:
                    # zip files of some Windows programs have backslashes
                    intake.add(info.filename.replace("\\", "/"), file)
            # an encrypted or damaged file says nothing of the others
            except (EOFError, RuntimeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
                intake.leave_out(info.filename, error)


def _unpack_tar(data: IO[bytes], intake: Intake) -> None:
    reader = _TarReader(data, intake)
    with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r:") as opened:
        while (member := opened.next()) is not None:
            opened.members.clear()  # type: ignore[attr-defined] # it would hold the headers of all files
            opened.pax_headers.clear()  # type: ignore[attr-defined] # headers for all files add up, too
            intake.count(files=1)
            if member.isfile() and (file := opened.extractfile(member)):
                reader.limit, reader.in_header = MAX_TOTAL_BYTES, False
                intake.add(member.name, file)
            reader.in_header, reader.limit = True, min(opened.offset + MAX_HEADER_BYTES, MAX_TOTAL_BYTES)
    if reader.last.strip(b"\0"):
        raise tarfile.ReadError("the header of a file is damaged")


class _TarReader:
    """Reads a tar archive from its beginning to its end, and nothing beyond a limit that moves along.

    `tarfile` itself reads headers whole, however large they say they are, goes back if one says so, and
    decompresses whatever it passes over. `last` are the bytes that were read last.
    """

    def __init__(self, data: IO[bytes], intake: Intake) -> None:
        self._data, self._intake, self._position = data, intake, 0
        self.limit, self.in_header, self.last = MAX_HEADER_BYTES, True, b""

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        self._check(self._position + size, self.limit)
        self.last = self._data.read(size)
        self._position += len(self.last)
        if self.in_header and TOO_MANY_DIGITS.search(self.last):
            raise tarfile.ReadError("a header has too many digits in a row")
        return self.last

    def seek(self, offset: int) -> None:
        """Pass over the bytes before a position."""
        self._check(offset, MAX_TOTAL_BYTES)
        while self._position < offset and (skipped := self._data.read(min(CHUNK, offset - self._position))):
            self._position += len(skipped)

    def tell(self) -> int:
        """Return the position among the decompressed bytes."""
        return self._position

    def _check(self, position: int, limit: int) -> None:
        if position < self._position:
            raise tarfile.ReadError("a header points back")
        if position > limit:
            total, headers = f"{MAX_TOTAL_BYTES // 1024**3} GiB", f"{MAX_HEADER_BYTES // 1024**2} MiB"
            raise self._intake.too_large(f"{total}, or {headers} in the headers of a file")


# ---- git


def fetch_git(text: str, folder: Path) -> Path:
    """Return the folder of a git repository's files, or of a part of them, in `folder`.

    Only one commit is fetched, and unpacked like an archive: hooks, filters, attributes, submodules and links
    of the repository have no effect.
    """
    parts = urlsplit(text.removeprefix(GIT))
    path, _, ref = parts.path.partition("@")
    url = urlunsplit(parts._replace(path=path, fragment=""))
    part = parse_qs(parts.fragment).get("subdirectory", [""])[0]
    if ref.startswith("-"):
        raise SkillError(f"{text}: the reference may not begin with a hyphen.")
    if shutil.which("git") is None:
        raise SkillError(f"{text} needs the program git: install it, or check the repository out yourself.")
    repository, intake = folder / "repository.git", Intake(folder / "unpacked", text)
    _run_git(text, "init", "--quiet", "--bare", str(repository))
    own, only_one = ["--git-dir", str(repository)], ["--depth=1", "--no-tags", "--no-recurse-submodules"]
    _run_git(text, *own, "fetch", "--quiet", *only_one, "--", url, ref or "HEAD")
    # attributes of a work tree: this repository has none, so files come as they are, without filters
    archive = [*own, "archive", "--format=tar", "--worktree-attributes", "FETCH_HEAD"]
    _run_git(text, *archive, take=lambda data: _unpack_tar(data, intake))
    wanted = (intake.folder / part).resolve()
    if not wanted.is_relative_to(intake.folder.resolve()) or not wanted.is_dir():
        raise SkillError(f"{text} has no folder {part!r}: check what follows `#subdirectory=`.")
    return wanted


def _run_git(text: str, *words: str, take: Callable[[IO[bytes]], object] = IO.read) -> None:
    """Run git, for the source `text`; `take` reads what it prints, as it comes."""
    # variables that point git to another repository, as those of its hooks do
    others = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    local = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], env=others, capture_output=True, text=True, check=True
    )
    environment = {name: value for name, value in os.environ.items() if name not in local.stdout.split()} | {
        "GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS),
        "GIT_TERMINAL_PROMPT": "0",  # a password that nobody can type
        "LC_ALL": "C",
    }
    # a redirect would lead to another host than the one that the user named
    command = ["git", "-c", "http.followRedirects=false", "-c", f"core.hooksPath={os.devnull}", *words]
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with (
        TemporaryFile() as messages,
        subprocess.Popen(command, env=environment, stderr=messages, **streams) as process,
    ):
        timer = Timer(GIT_SECONDS, process.kill)
        timer.start()
        output = cast("IO[bytes]", process.stdout)
        try:
            take(output)
            output.read()  # what fills the last block of a tar archive
            code = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
        messages.seek(0)
        reason = hide_secrets(messages.readline(1000).decode(errors="replace").strip())
    if code:
        raise SkillError(
            f"{text} cannot be fetched (git: {reason or 'ended, or took too long'}): check repository, "
            "reference and access. Redirects are not followed."
        )

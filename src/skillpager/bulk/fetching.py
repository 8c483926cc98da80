"""Bring the files of a source into a folder, within limits: archives, git repositories, object storage.

The files are those of strangers: nothing lands outside of the folder, and none of them is run. Only addresses
that the user gave are fetched.
"""

import bz2
import gzip
import io
import logging
import lzma
import os
import shutil
import stat
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any, cast
from urllib.parse import parse_qs, urlsplit, urlunsplit

from skillpager.errors import SkillError, require_extra
from skillpager.settings import hide_secrets

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

GIT = "git+"
GIT_SECONDS = 600.0
# transports of git that run no program that the address names, and encrypt what comes from elsewhere
TRANSPORTS = ("file", "https", "ssh")
# schemes of object storage; each needs its package of fsspec
STORAGES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}

_DECOMPRESSORS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".tgz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# raised by readers of damaged or encrypted archives
_DAMAGES = (
    *(OSError, EOFError, RuntimeError, ValueError, tarfile.TarError, zipfile.BadZipFile),
    *(zlib.error, lzma.LZMAError),
)


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

    def count(self, *, files: int = 0, size: int = 0) -> None:
        """Count files and bytes.

        Raises:
            SkillError: All together are beyond the limits.
        """
        self._files += files
        self._bytes += size
        if self._files > MAX_FILES:
            raise _too_large(self._place, f"{MAX_FILES:,} files")
        if self._bytes > MAX_TOTAL_BYTES:
            raise _too_large(self._place, f"{MAX_TOTAL_BYTES // 1024**3} GiB")

    def add(self, path: str, opened: IO[bytes]) -> None:
        """Write a file; one that is too large, or whose path cannot be had here, is left out.

        Raises:
            SkillError: All files together are beyond the limits.
        """
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or (os.name == "nt" and ":" in path):
            self.leave_out(path, "its path leads out of the archive")
            return
        self.count(files=1)
        target = self._folder.joinpath(*parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            file = target.open("wb")
        except (OSError, ValueError) as error:  # a name too long, or that of a folder
            self.leave_out(path, str(error))
            return
        size = 0
        with file:
            while size <= MAX_FILE_BYTES and (chunk := opened.read(CHUNK)):
                size += len(chunk)
                self.count(size=len(chunk))  # the size in a header may be a lie
                file.write(chunk)
        if size > MAX_FILE_BYTES:
            target.unlink()


def _too_large(place: str, limit: str) -> SkillError:
    return SkillError(
        f"{place} holds more than {limit}: split it, or unpack it yourself and name its folder."
    )


# ---- archives


def is_archive(name: str) -> bool:
    """Return whether a file is an archive by its name."""
    return name.lower().endswith(SUFFIXES)


def unpack(archive: Path, folder: Path, *, place: str) -> Path:
    """Write the regular files of an archive below `folder`; links, devices and permissions are left out.

    A file that cannot be unpacked, or whose path leads out of the archive, is left out with a warning.

    Args:
        archive: A zip file or tar archive.
        folder: A folder, in which a new one is made.
        place: The archive as the user named it.

    Returns:
        The folder with the files.

    Raises:
        SkillError: The file is not an archive, is damaged, or is larger than the limits.
    """
    inside = folder / "unpacked"
    inside.mkdir()
    intake = Intake(inside, place)
    try:
        if archive.suffix.lower() in (".zip", ".skill"):
            _unpack_zip(archive, intake)
        else:
            opener = _DECOMPRESSORS.get(archive.suffix.lower(), open)
            with opener(archive, "rb") as data:
                reader = cast("IO[bytes]", _BoundedReader(data, place))
                with tarfile.open(fileobj=reader, mode="r:") as opened:
                    for member in opened:
                        if member.isfile() and (file := opened.extractfile(member)):
                            intake.add(member.name, file)
    except _DAMAGES as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SkillError(
            f"{place} cannot be unpacked ({reason}): check the archive, and the room for temporary files "
            "(the variable TMPDIR names their folder), or download it again."
        ) from error
    return inside


def _unpack_zip(archive: Path, intake: Intake) -> None:
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


class _BoundedReader(io.RawIOBase):
    """Reads a tar archive within limits.

    `tarfile` reads a whole extended header at once, however large the archive says it is, and decompresses
    the files that it passes over.
    """

    def __init__(self, data: IO[bytes], place: str) -> None:
        self._data, self._place = data, place

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes; more than an extended header may have are an error."""
        if not 0 <= size <= CHUNK + tarfile.BLOCKSIZE:
            raise _too_large(self._place, f"{CHUNK // 1024**2} MiB in an extended header")
        return self._data.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position of the decompressed bytes; one beyond the limit is an error."""
        if offset > MAX_TOTAL_BYTES:
            raise _too_large(self._place, f"{MAX_TOTAL_BYTES // 1024**3} GiB")
        return self._data.seek(offset, whence)

    def tell(self) -> int:
        """Return the position among the decompressed bytes."""
        return self._data.tell()


# ---- git


def refuse_credentials(text: str) -> None:
    """Raise a `SkillError`, which does not repeat them, if an address holds a password, token or query."""
    url = urlsplit(text.removeprefix(GIT))
    if url.password is not None or url.query or (url.username is not None and url.scheme != "ssh"):
        raise SkillError(
            f"The address at {url.hostname} holds a user, password or query, which other programs on this "
            "machine could read: leave them out, and use git's credential helper, ssh, or the variables of "
            "the storage."
        )


def fetch_git(text: str, folder: Path) -> Path:
    """Return the folder of a git repository's files, or of a part of them, in `folder`.

    Only one commit is fetched. Hooks, filters, submodules and links of the repository have no effect.

    Args:
        text: URL of the repository, then `@` and a branch, tag or commit, and `#subdirectory=PATH`.
        folder: An empty folder.

    Raises:
        SkillError: There is no `git`, no such repository, reference or folder, it takes too long, or the
            files are beyond the limits.
    """
    parts = urlsplit(text)
    path, _, ref = parts.path.partition("@")
    url = urlunsplit(parts._replace(path=path, fragment=""))
    part = parse_qs(parts.fragment).get("subdirectory", [""])[0]
    if parts.scheme not in TRANSPORTS or not text.startswith(f"{parts.scheme}://"):
        addresses = ", ".join(f"git+{name}://…" for name in TRANSPORTS)
        raise SkillError(f"git+{text} is not a repository that is read: write {addresses}.")
    if ref.startswith("-"):
        raise SkillError(f"git+{text}: the reference may not begin with a hyphen.")
    if shutil.which("git") is None:
        raise SkillError(
            f"git+{text} needs the program git: install it, or check the repository out yourself."
        )
    place = folder / "repository"
    own = ["-C", str(place)]
    only_one = ["--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"]
    _run_git(["init", "--quiet", str(place)], text)
    _run_git([*own, "fetch", *only_one, "--", url, ref or "HEAD"], text)
    with TemporaryFile(dir=folder) as listing:
        _run_git([*own, "ls-tree", "-r", "-l", "FETCH_HEAD"], text, output=listing)
        listing.seek(0)
        intake = Intake(place, f"git+{text}")
        for line in listing:  # mode, type, id, size and name
            size = line.split(maxsplit=4)[3]
            intake.count(files=1, size=int(size) if size.isdigit() else 0)
    _run_git([*own, "checkout", "--quiet", "--detach", "FETCH_HEAD"], text)
    wanted = (place / part).resolve()
    if not wanted.is_relative_to(place.resolve()) or not wanted.is_dir():
        raise SkillError(f"git+{text} has no folder {part!r}: check what follows `#subdirectory=`.")
    return wanted


def _run_git(arguments: list[str], address: str, output: IO[bytes] | int = subprocess.DEVNULL) -> None:
    # variables that point git to another repository, as those of its hooks do
    local = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True
    )
    environment = {name: value for name, value in os.environ.items() if name not in local.stdout.split()} | {
        "GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS),
        "GIT_TERMINAL_PROMPT": "0",  # a password that nobody can type
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }
    command = ["git", "-c", "core.symlinks=false", "-c", f"core.hooksPath={os.devnull}", *arguments]
    try:
        subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=GIT_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise SkillError(f"git+{address}: git took longer than {GIT_SECONDS:.0f} s and was ended.") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
        raise SkillError(
            f"git+{address} cannot be fetched (git: {hide_secrets(reason[0])}): check repository, reference "
            "and access."
        ) from error


# ---- object storage


def fetch_objects(url: str, folder: Path) -> Path:
    """Return the file or folder at an address of object storage, in `folder`.

    Args:
        url: An address of `STORAGES`, such as `s3://bucket/skills`.
        folder: An empty folder.

    Raises:
        MissingExtraError: fsspec is not installed.
        SkillError: The package for this storage is not installed, or the storage refuses.
    """
    require_extra("fsspec", extra="fsspec", purpose=f"A source such as {url}")
    from fsspec.core import url_to_fs

    try:
        files, root = url_to_fs(url)
        found: dict[str, dict[str, Any]] = files.find(root, detail=True)
        alone = files.isfile(root)
        if not found:
            raise SkillError(f"There is nothing at {url}: check the address.")
        intake = Intake(folder, url)
        beginning = PurePosixPath(root).parent if alone else PurePosixPath(root)
        for path in sorted(found):
            if alone or int(found[path].get("size") or 0) <= MAX_FILE_BYTES:
                with files.open(path, "rb") as opened:
                    intake.add(PurePosixPath(path).relative_to(beginning).as_posix(), opened)
    except SkillError:
        raise
    except ImportError as error:
        package = STORAGES[urlsplit(url).scheme]
        raise SkillError(f"{url} cannot be read ({error}): `pip install {package}` first.") from error
    except Exception as error:  # each storage has errors of its own
        reason = " ".join(hide_secrets(str(error)).split())[:200] or type(error).__name__
        raise SkillError(
            f"{url} cannot be read ({reason}): check address, region and credentials."
        ) from error
    return folder / PurePosixPath(root).name if alone else folder

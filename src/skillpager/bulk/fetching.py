"""Bring the files at an address into a folder: git repositories and object storage.

Only addresses that the user gave are fetched.
"""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

from skillpager.bulk import archives
from skillpager.bulk.archives import Intake, TooLargeError
from skillpager.errors import SkillError, require_extra
from skillpager.settings import hide_secrets

GIT = "git+"
GIT_SECONDS = 600.0
# schemes of object storage; each needs its package of fsspec
STORAGES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs"}
# transports of git that run no program that the address names, and encrypt what comes from elsewhere
TRANSPORTS = ("file", "https", "ssh")
# scheme and host of a repository's address, whose `@` ends the user; the path follows
_HOST = re.compile(r"[a-z][a-z\d+.-]+://[^/]*|[^/:]*:?", re.IGNORECASE)


def split_git(text: str) -> tuple[str, str, str]:
    """Return URL or path, reference and subdirectory of a repository's address; the last two may be empty."""
    address, _, fragment = text.partition("#")
    host = _HOST.match(address)
    start = host.end() if host else 0
    path, _, ref = address[start:].rpartition("@") if "@" in address[start:] else (address[start:], "", "")
    return address[:start] + path, ref, parse_qs(fragment).get("subdirectory", [""])[0]


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
        text: URL or path of the repository, then `@` and a branch, tag or commit, and `#subdirectory=PATH`.
        folder: An empty folder.

    Raises:
        SkillError: There is no `git`, no such repository, reference or folder, it takes too long, or the
            files are beyond the limits of archives.
    """
    url, ref, part = split_git(text)
    if (scheme := urlsplit(url).scheme) and "://" in url and scheme not in TRANSPORTS:
        raise SkillError(f"git+{text}: git repositories are read by {', '.join(TRANSPORTS)}, not {scheme}.")
    if "://" not in url and Path(url).expanduser().exists():
        url = str(Path(url).expanduser().absolute())
    if url.startswith("-") or ref.startswith("-"):
        raise SkillError(f"git+{text}: neither the address nor the reference may begin with a hyphen.")
    if shutil.which("git") is None:
        raise SkillError(
            f"git+{text} needs the program git: install it, or check the repository out yourself."
        )
    place = folder / "repository"
    _run_git(["init", "--quiet", str(place)], text)
    own = ["-C", str(place)]
    fetch = [
        "fetch",
        "--quiet",
        "--depth=1",
        "--no-tags",
        "--no-recurse-submodules",
        "--",
        url,
        ref or "HEAD",
    ]
    _run_git([*own, *fetch], text)
    with (folder / "listing").open("w+b") as listing:
        _run_git([*own, "ls-tree", "-r", "-l", "-z", "FETCH_HEAD"], text, output=listing)
        listing.seek(0)
        _check_size(listing, f"git+{text}")
    _run_git([*own, "checkout", "--quiet", "--detach", "FETCH_HEAD"], text)
    wanted = (place / part).resolve()
    if not wanted.is_relative_to(place.resolve()) or not wanted.is_dir():
        raise SkillError(f"git+{text} has no folder {part!r}: check what follows `#subdirectory=`.")
    return wanted


def _check_size(listing: Any, shown: str) -> None:
    """Raise a `TooLargeError` if the files of `git ls-tree -r -l -z` are beyond the limits of archives."""
    files = total = 0
    rest = b""
    while chunk := listing.read(archives.CHUNK):
        *entries, rest = (rest + chunk).split(b"\0")
        for entry in entries:
            size = entry.split(b"\t", 1)[0].split()[-1]
            files += 1
            total += int(size) if size.isdigit() else 0
        if files > archives.MAX_FILES:
            raise TooLargeError(shown, f"{archives.MAX_FILES:,} files")
        if total > archives.MAX_TOTAL_BYTES:
            raise TooLargeError(shown, f"{archives.MAX_TOTAL_BYTES // 1024**3} GiB")


@cache
def _local_variables() -> frozenset[str]:
    """Return the variables that point git to another repository, as those of its hooks do."""
    listed = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True
    )
    return frozenset(listed.stdout.split())


def _run_git(arguments: list[str], address: str, output: Any = subprocess.DEVNULL) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in _local_variables()} | {
        "GIT_ALLOW_PROTOCOL": ":".join(TRANSPORTS),
        "GIT_TERMINAL_PROMPT": "0",  # a password that nobody can type
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "-c", "core.symlinks=false", "-c", f"core.hooksPath={os.devnull}", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=GIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SkillError(f"git+{address}: git took longer than {GIT_SECONDS:.0f} s and was ended.") from error
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
        raise SkillError(
            f"git+{address} cannot be fetched (git: {hide_secrets(reason[0])}): check repository, reference "
            "and access."
        )


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
        found: dict[str, dict[str, object]] = files.find(root, detail=True)
        alone = files.isfile(root)
        if not found:
            raise SkillError(f"There is nothing at {url}: check the address.")
        intake = Intake(folder, url)
        beginning = PurePosixPath(root).parent if alone else PurePosixPath(root)
        for path in sorted(found):
            if alone or int(str(found[path].get("size") or 0)) <= archives.MAX_FILE_BYTES:
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

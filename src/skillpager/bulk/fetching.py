"""Bring the files at an address into a folder: git repositories, object storage, the web.

Nothing here runs but for an address that the user gave.
"""

import os
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

from skillpager.bulk.archives import CHUNK, MAX_FILE_BYTES, MAX_TOTAL_BYTES, Intake, is_archive
from skillpager.errors import SkillError, install_command, require_extra
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.settings import hide_secrets

GIT_SECONDS = 600.0
HTTP_SECONDS = 60.0
# the first try included; the pauses between them double
HTTP_ATTEMPTS = 3
HTTP_PAUSE = 1.0
# statuses that may pass: too many requests, and faults of the server
PASSING = frozenset({429, 500, 502, 503, 504})
PLAIN = ("--no-tags", "--no-recurse-submodules")
# transports of git that run no program that the address names
TRANSPORTS = "file:git:http:https:ssh"
# scheme and host of a repository's address, whose `@` ends the user; the path follows
_HOST = re.compile(r"[a-z][a-z\d+.-]+://[^/]*|[^/:]*:?", re.IGNORECASE)


def split_git(text: str) -> tuple[str, str, str]:
    """Return URL or path, reference and part of a repository, of which the last two may be empty."""
    address, _, fragment = text.partition("#")
    host = _HOST.match(address)
    start = host.end() if host else 0
    path, _, ref = address[start:].rpartition("@") if "@" in address[start:] else (address[start:], "", "")
    return address[:start] + path, ref, parse_qs(fragment).get("subdirectory", [""])[0]


def shown_git(text: str) -> str:
    """Return the address of a repository without secrets."""
    url, ref, part = split_git(text)
    return hide_secrets(url) + (f"@{ref}" if ref else "") + (f"#subdirectory={part}" if part else "")


def fetch_git(text: str, folder: Path) -> Path:
    """Return the folder of a git repository's files, or of a part of them, in `folder`.

    Only the one commit is fetched. No hook, filter, submodule or link of the repository comes to effect.

    Args:
        text: URL or path of the repository, then `@` and a branch, tag or commit, and `#subdirectory=PATH`.
        folder: An empty folder.

    Raises:
        SkillError: There is no `git`, no such repository, reference or folder, or it takes too long.
    """
    url, ref, part = split_git(text)
    shown = shown_git(text)
    if "://" not in url and Path(url).expanduser().exists():
        url = str(Path(url).expanduser().absolute())
    if url.startswith("-") or ref.startswith("-"):
        raise SkillError(f"{shown} is no git repository: neither address nor reference begins with a hyphen.")
    if shutil.which("git") is None:
        raise SkillError(f"{shown} needs the program git: install it, or check the repository out yourself.")
    place = folder / "repository"
    settings = ["-c", "core.symlinks=false", "-c", f"core.hooksPath={os.devnull}"]
    for step in (
        ["init", "--quiet", str(place)],
        ["-C", str(place), "fetch", "--quiet", "--depth=1", *PLAIN, "--", url, ref or "HEAD"],
        ["-C", str(place), "checkout", "--quiet", "--detach", "FETCH_HEAD"],
    ):
        _run_git([*settings, *step], shown)
    wanted = (place / part).resolve()
    if not wanted.is_relative_to(place.resolve()) or not wanted.is_dir():
        raise SkillError(f"{shown} has no folder {part!r}: check what follows `#subdirectory=`.")
    return wanted


def _run_git(arguments: list[str], shown: str) -> None:
    environment = os.environ | {
        "GIT_ALLOW_PROTOCOL": TRANSPORTS,
        "GIT_TERMINAL_PROMPT": "0",  # a password that nobody can type
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SkillError(f"{shown}: git took longer than {GIT_SECONDS:.0f} s and was ended.") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
        raise SkillError(
            f"{shown} cannot be fetched (git: {hide_secrets(said[0])}): check repository, reference and "
            "access."
        )


def fetch_http(url: str, folder: Path) -> Path:
    """Return the file at a URL, in `folder`, under its own name.

    Raises:
        SkillError: It cannot be had, or is too large.
    """
    path = PurePosixPath(unquote(urlsplit(url).path))
    name = path.name if path.suffix else f"{path.name or 'skill'}.md"
    # a SKILL.md without a name in it is called after its folder
    target = folder / _plain(path.parent.name if name == ENTRY_FILE else "file") / _plain(name)
    target.parent.mkdir()
    shown = hide_secrets(url)
    for attempt in range(1, HTTP_ATTEMPTS + 1):
        try:
            _download(url, target, MAX_TOTAL_BYTES if is_archive(name) else MAX_FILE_BYTES)
            return target
        except (OSError, ValueError, HTTPException) as error:
            status = error.code if isinstance(error, urllib.error.HTTPError) else None
            passing = status in PASSING or (status is None and not isinstance(error, ValueError))
            if attempt == HTTP_ATTEMPTS or not passing:
                reason = getattr(error, "reason", None) or error
                raise SkillError(
                    f"{shown} cannot be fetched ({f'status {status}' if status else reason}): check the "
                    "address, or download it yourself and name the file."
                ) from error
            time.sleep(HTTP_PAUSE * 2 ** (attempt - 1))
    raise AssertionError


def _download(url: str, target: Path, max_bytes: int) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "skillpager"})  # noqa: S310 - http or https
    with urllib.request.urlopen(request, timeout=HTTP_SECONDS) as answer, target.open("wb") as file:  # noqa: S310
        size = 0
        while chunk := answer.read(CHUNK):
            size += len(chunk)
            if size > max_bytes:
                raise ValueError(f"it has more than {max_bytes:,} bytes")
            file.write(chunk)
    announced = answer.headers.get("Content-Length", "")
    if announced.isdecimal() and size < int(announced):  # which the reader of an answer does not mind
        raise ConnectionError(f"it ended after {size:,} of {int(announced):,} bytes")


def _plain(name: str) -> str:
    """Return a name that is safe as one of a file here."""
    return re.sub(r"[^\w.-]", "-", name).lstrip(".")[:100] or "skill"


def fetch_objects(url: str, folder: Path) -> Path:
    """Return the file or folder at an address of object storage, in `folder`.

    Args:
        url: An address that fsspec knows, such as `s3://bucket/skills` or `file:///srv/skills.zip`.
        folder: An empty folder.

    Raises:
        MissingExtraError: fsspec is not installed.
        SkillError: The package for this kind of address is not installed, or the storage refuses.
    """
    require_extra("fsspec", extra="fsspec", purpose=f"A source such as {hide_secrets(url)}")
    from fsspec.core import url_to_fs

    shown = hide_secrets(url)
    try:
        files, root = url_to_fs(url)
        found: Mapping[str, dict[str, object]] = files.find(root, detail=True)
        alone = files.isfile(root)
    except (ImportError, ValueError) as error:  # names the package, or says that nobody knows the protocol
        raise SkillError(
            f"{shown} cannot be read ({error}): install the package of fsspec for this kind of address "
            f"beside `{install_command('fsspec')}`."
        ) from error
    except Exception as error:  # each storage has errors of its own
        raise _refused(shown, error) from error
    if not found:
        raise SkillError(f"There is nothing at {shown}: check the address.")
    intake = Intake(folder, shown)
    beginning = PurePosixPath(root).parent if alone else PurePosixPath(root)
    for path in sorted(found):
        inside = PurePosixPath(path).relative_to(beginning).as_posix()
        if not alone and int(str(found[path].get("size") or 0)) > MAX_FILE_BYTES:
            continue
        try:
            with files.open(path, "rb") as opened:
                intake.add(inside, opened)
        except SkillError:
            raise
        except Exception as error:
            raise _refused(shown, error) from error
    return folder / PurePosixPath(root).name if alone else folder


def _refused(shown: str, error: Exception) -> SkillError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return SkillError(f"{shown} cannot be read ({reason}): check address, region and credentials.")

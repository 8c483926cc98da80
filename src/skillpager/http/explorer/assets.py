"""The files of the explorer: they hold no data, and anyone may have them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FOLDER = "http/explorer/web"
INDEX = "index.html"
PREFIX = "/explorer/"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the explorer.

    Attributes:
        body: Its bytes.
        media_type: What it is.
        etag: Names these very bytes.
    """

    body: bytes
    media_type: str
    etag: str


@cache
def assets() -> Mapping[str, Asset]:
    """Return the files by the path that they are asked for: `/` and those below `/explorer/`."""
    folder = files("skillpager").joinpath(FOLDER)
    found = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {_path(name): _asset(name, body) for name, body in found.items() if _suffix(name) in MEDIA_TYPES}


def _path(name: str) -> str:
    return "/" if name == INDEX else PREFIX + name


def _asset(name: str, body: bytes) -> Asset:
    return Asset(body, MEDIA_TYPES[_suffix(name)], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]

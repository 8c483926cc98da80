"""Files of a skill that repeat others, such as an `AGENTS.md` that holds all of `rules/`."""

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from skillpager.types import SourceFile

LINE_CHARS = 15  # letters and digits of a line that tells files apart: shorter ones stand in many
# share of a file's text that others have, for it to be a copy: of one file, or of several that none has half
# of. Variants, such as those for two platforms, share less with each other than copies do
COPIED_SHARE, GATHERED_SHARE = 0.98, 0.8
GATHERED_CHARS = 2_000  # a shorter text that has lines of several others is a text of its own
# headings and tables of contents differ between a text and its copy: they do not count
_FRAME = re.compile(r"\s*(?:#{1,6}\s|(?:[-*+]|\d+[.)])?\s*(?:\d+(?:\.\d+)*\.?\s*)?\[[^\]]*\]\(#)")
_NO_LETTERS = re.compile(r"[\W_]+")


def fold_copies(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the files; those whose text others have are marked with the path of what has most of it.

    That is a file, or for the text of several files their folder, such as `rules/`. The shortest file that
    has a line is its owner, so a file that repeats several others is the copy. The first file is never one.
    """
    first, *others = files
    lines = {file.path: _lines(file) for file in files}
    owners: dict[str, str] = {}
    for file in reversed([first, *sorted(others, key=lambda file: len(file.text))]):
        owners.update(dict.fromkeys(lines[file.path], file.path))
    marked = (replace(file, same_as=_original(file.path, lines[file.path], owners)) for file in others)
    return [first, *marked]


def _original(path: str, lines: Sequence[str], owners: dict[str, str]) -> str:
    """Return the file or folder that has most of a file's lines, if this is a copy; else an empty text."""
    shared = Counter[str]()
    for line in lines:
        shared[owners[line]] += len(line)
    size, own = shared.total(), shared.pop(path, 0)
    original, most = max(shared.items(), key=lambda each: each[1], default=("", 0))
    if 2 * most > size:
        return original if size - own >= COPIED_SHARE * size else ""
    is_copy = size >= GATHERED_CHARS and size - own >= GATHERED_SHARE * size
    folder = posixpath.dirname(original)
    return (f"{folder}/" if folder else original) if is_copy else ""


def _lines(file: SourceFile) -> list[str]:
    """Return the beginning of a file's digest, and the letters of the lines that tell it apart, each once."""
    text = file.text[file.body_start :].lower()
    plain = (_NO_LETTERS.sub("", line) for line in text.splitlines() if not _FRAME.match(line))
    return [file.digest[:LINE_CHARS], *dict.fromkeys(line for line in plain if len(line) >= LINE_CHARS)]

"""Where the text of a skill mentions its other files, and what it says of them there."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from skillpager.display_text import one_line
from skillpager.types import SourceFile

# texts at one mention, of all mentions of a file, and mentions that are looked at
UNIT_CHARS, DESCRIPTION_CHARS, MAX_UNITS = 240, 400, 3
# a longer word is no path; of many patterns in a text only the first are tried
MAX_WORD_CHARS, MAX_PATTERNS = 300, 200
MAX_ALTERNATIVES = 32  # that braces in a pattern may stand for, such as `{a,b}/{c,d}.md`

# what may be a path: no blanks, quotes, brackets of links or cells of tables
_WORD = re.compile(r"[^\s()\[\]\"'`|]+")
_ENDS = ".,;:!?*_"
_SUFFIX = re.compile(r"\.(?:md|markdown)\Z", re.IGNORECASE)
# the folder of the skill, in the ways in which texts name it
_ROOT = re.compile(r"\A(?:\$\{\w+\}|\$\w+|\./)/*")
# `{a,b}` is one of these, `{lang}` and `<lang>` are any name
_HOLE = re.compile(r"\{[^{}]*\}|<[^<>]*>")
_BASE = re.compile(r"\A(?:\{\w+\}|<[^<>]+>)/(?=[^/]+/)")  # such as that of `{baseDir}/scripts/run.py`
# where a list item, a row, a heading, a fence or a line of a drawn tree begins, or a paragraph ends
_BREAK = re.compile(r"\n[ \t>]*(?=\n|[-*+][ \t]|\d{1,9}[.)][ \t]|\||#{1,6}[ \t]|```|~~~|[│├└])")
_NO_SENTENCES = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)]|\||[│├└])")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'*_)]*\s+(?=[\w\"'*`(\[])")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKUP = re.compile(
    r"^[\s>]*(?:#{1,6}|[-*+]|\d{1,9}[.)])?\s+|[`│├└─]|\*\*|(?<!\S)\|[\s|:-]*|[\s|:-]*\|(?!\S)"
)


class Mention(NamedTuple):
    """A place where a text mentions a file, and the number of files that it mentions with the same words."""

    start: int
    end: int
    files: int


def find_mentions(text: str, names: "Names", folder: str = "") -> dict[str, list[Mention]]:
    """Return which files a text in a folder mentions, in that order, each with its first mentions."""
    found: dict[str, list[Mention]] = {}
    seen = Counter[str]()
    for match in _WORD.finditer(text):
        word = match[0]
        if ("/" in word or "." in word) and (meant := names.meant_by(word, folder)):
            seen[word] += 1
            if seen[word] <= MAX_UNITS:
                end = match.start() + len(word.rstrip(_ENDS))
                for path in meant:
                    found.setdefault(path, []).append(Mention(match.start(), end, len(meant)))
    return found


def files_meant(text: str, paths: Iterable[str], folder: str) -> set[str]:
    """Return which files, of paths of one word, a text in a folder mentions by one that means no other."""
    text = " ".join(dict.fromkeys(part for part in text.split() if "/" in part or "." in part))
    named = {path: name for path in paths if (name := posixpath.basename(path)) in text}
    names, endings, found = Names(named), {*named.values()}, set[str]()
    for word in (each.rstrip(_ENDS) for each in _WORD.findall(text)):
        if ("/" in word or "." in word) and word.rpartition("/")[2].lstrip("*") in endings:  # no pattern
            meant = names.meant_by(_BASE.sub("", word), folder)
            found.update(meant if len(meant) == 1 and _WORD.fullmatch(meant[0]) else ())
    return found


class Names:
    """The ways in which texts may name files.

    A file is named by its path from the skill's folder or from that of the text, with or without its suffix,
    by a pattern such as `{lang}/errors.md` or `rules/*.md`, by a folder above it (`rules/`), or by its name
    alone if no other file has it.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)
        self._several = 0  # words that mean several files
        self._meant: dict[tuple[str, str], Sequence[str]] = {}
        self._named: dict[str, list[str]] = {}
        for path in self._paths:
            pure = PurePosixPath(path)
            above = (f"{each}/" for each in pure.parents if each.name)
            for name in {path, pure.name, _SUFFIX.sub("", path) if "/" in path else path, *above}:
                self._named.setdefault(name, []).append(path)

    def meant_by(self, word: str, folder: str) -> Sequence[str]:
        """Return the files that a word of a text in a folder means."""
        if len(word) > MAX_WORD_CHARS or "://" in word:
            return ()
        if (meant := self._meant.get((folder, word))) is None:
            meant = self._find(word, folder)
            self._several += len(meant) > 1
            self._meant[folder, word] = meant = meant if self._several <= MAX_PATTERNS else meant[:1]
        return meant

    def _find(self, word: str, folder: str) -> Sequence[str]:
        path = _ROOT.sub("", unquote(re.split(r"[#?]", word, maxsplit=1)[0]), count=1)
        if not path.startswith(("*/", "**/", "*.")):
            path = path.lstrip("*_")
        if _HOLE.search(path) or "*" in path.rstrip(_ENDS):
            return self._matching(path.rstrip(_ENDS.replace("*", "")))
        path = path.rstrip(_ENDS)
        beside = posixpath.normpath(posixpath.join(folder, path)) + "/" * path.endswith("/")
        parts = path.split("/")
        # a path may begin above the skill's folder, such as `skills/NAME/rules/a.md`
        for name in (beside, path, *("/".join(parts[at:]) for at in range(1, len(parts) - 1))):
            meant = self._named.get(name, [])
            if name in meant:
                return [name]
            if meant and (name.endswith("/") or len(meant) == 1):
                return meant
        return ()

    def _matching(self, pattern: str) -> list[str]:
        """Return the files that a pattern means."""
        if self._several >= MAX_PATTERNS or not re.search(r"\w", pattern):
            return []
        any_depth = "**" in pattern or pattern.endswith(("/", "/*"))
        forms = [pattern.replace("**/", "*")]
        for hole in _HOLE.findall(pattern):
            names = [each.strip() for each in hole[1:-1].split(",")] if "," in hole else ["*"]
            forms = [form.replace(hole, name, 1) for form in forms for name in names][:MAX_ALTERNATIVES]
        forms = [each + "*" if each.endswith("/") else each for each in forms]
        forms += [f"{each}.md" for each in forms]
        return [path for path in self._paths if any(_fits(path, form, any_depth) for form in forms)]


def _fits(path: str, form: str, any_depth: bool) -> bool:
    return fnmatchcase(path, form) and (any_depth or path.count("/") == form.count("/"))


def describe(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the files of a skill with what the texts say where they mention them.

    That is the sentence, list item or row of a table. The first file says it best; of those that it does not
    mention, the others are asked in turn. Mentions of one file go before those of many.
    """
    left = {file.path for file in files[1:]}
    names, texts = Names(sorted(left)), dict[str, str]()
    for source in files:
        body = source.text[source.body_start :]
        for path, mentions in find_mentions(body, names, posixpath.dirname(source.path)).items():
            if path in left and path != source.path and (source is files[0] or mentions[0].files == 1):
                texts[path] = _description(body, mentions)
                left.discard(path)
        if not left:
            break
    return [replace(file, description=texts.get(file.path, "")) for file in files]


def _description(text: str, mentions: Sequence[Mention]) -> str:
    # each way of naming several files once: one may tell the file, another the folder
    ways: dict[str | int, Mention] = {}
    for each in mentions:
        ways.setdefault(text[each.start : each.end] if each.files > 1 else each.start, each)
    chosen = sorted(ways.values(), key=lambda each: (each.files, each.start))[:MAX_UNITS]
    units = dict.fromkeys(_unit(text, each) for each in chosen)
    return one_line("; ".join(filter(None, units)), DESCRIPTION_CHARS)


def _unit(text: str, mention: Mention) -> str:
    """Return the sentence, list item or row in which a mention stands, without markup."""
    low, high = max(0, mention.start - UNIT_CHARS), mention.end + UNIT_CHARS
    before, after = f"\n{text[low : mention.start]}", text[mention.end : high]
    start = max((match.start() for match in _BREAK.finditer(before)), default=0)
    begun = before[start:].lstrip("\n") if start or not low else before.partition(" ")[2]  # no half word
    stop = _BREAK.search(after)
    rest = after[: stop.start()] if stop else after
    if not _NO_SENTENCES.match(begun):
        ends = [match.end() for match in _SENTENCE_END.finditer(begun)]
        begun = begun[ends[-1] :] if ends else begun
        end = _SENTENCE_END.search(rest)
        rest = rest[: end.start()] if end else rest
    else:
        rest = rest.partition("\n")[0] if begun.lstrip()[:1] in "|│├└" else rest
    line = f"{begun}{text[mention.start : mention.end]}{rest}"
    return one_line(_MARKUP.sub(" ", _LINK.sub(r"\1", line)), UNIT_CHARS)

"""Read a skill from a folder, a file or a string.

A skill is a folder with a `SKILL.md`, any single Markdown file, or a string. Reading is lenient: what is read
otherwise than it is written is a warning, and only text that cannot be read is an error.
`library.skill_checks` has the departures from the specification.

Reference: Agent Skills specification.
"""

import errno
import hashlib
import json
import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from skillpager.display_text import is_plain, one_line
from skillpager.errors import SkillError
from skillpager.files import ENTRY_FILE, ENTRY_NAMES, decode, near_path, read_bounded, walk
from skillpager.parsing.copies import fold_copies
from skillpager.parsing.lines import LINE_END
from skillpager.parsing.mentions import Names, describe, find_mentions
from skillpager.settings import MAX_SKILL_BYTES, hide_secrets
from skillpager.types import SCOPES, Skill, SourceFile

MAX_NAME, MAX_DESCRIPTION = 64, 1024
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

# a name as it is shown: letters of any script and case, digits, hyphens; nothing that could end our sentence
# about a skill and begin another, and no hyphen first, which a command would take for an option
_WORD = r"[^\W_]+"
_SAFE_NAME = re.compile(rf"{_WORD}(?:-+{_WORD})*")
MAX_SHOWN_NAME = 200  # characters of a written name in a warning

# Markdown files of a skill, and paths and problems that warnings name
MAX_FILES, MAX_NAMED = 2_000, 8
_UPWARDS = re.compile(r"(?:\.\./){1,20}[^\s\0()\[\]\"'`|#<>]{1,200}?\.(?:md|markdown)\b", re.IGNORECASE)

# a scheme of two or more letters: `C:` is a drive; a Path keeps one of the two slashes
_URL = re.compile(r"([a-z][a-z\d+.-]+:|(?=//[^/]+@))/{1,3}(.*)", re.IGNORECASE | re.DOTALL)
SHOWN_SKILLS, SHOWN_PATH = 5, 60  # of a folder, and characters of a path, that an error names

_ASIDE = re.compile(  # Markdown about the folder, which is no part of the skill's text
    r"(?:copying|licen[cs]es?|(?:third[-_ ]?party[-_ ]?)?notices?|change[-_ ]?log|changes|release[-_ ]?notes)"
    r"(?:[-_.](?:mit|apache|bsd|gpl|lgpl|mpl|cc|v?\d)[\w.-]*)?",
    re.IGNORECASE,
)

# ---- front matter, the YAML block at the top of a skill

# a longer block is not read as front matter; the longest of 18,812 public skills has 4.3 kB
MAX_FRONT_MATTER = 32 * 1024
MAX_DEPTH = 32  # levels of nesting; deeper front matter is read line by line
_TOO_DEEP = f"more than {MAX_DEPTH} levels of nesting"

# byte order marks: programs that join files leave them in the middle, behind front matter
_MARKS = re.compile(r"(?:[ \t\r\n]*\ufeff)*")
_BLOCK = re.compile(
    r"---[ \t]*(?:\r\n|\r|\n)(?P<body>.*?)(?<=[\r\n])(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)", re.DOTALL
)
_KEY = re.compile(r"[\w\"'.-]+[ \t]*:(?:[ \t]|$)")
# a plain `key: value` line whose value is not quoted and has no syntax of YAML; two stars are bold text, and
# brackets with more behind them, such as `[file] [format]`, no list
_FIELD = re.compile(
    r"^([A-Za-z_][\w.-]*):[ \t]+(?![\"'|>{&!#]|\[(?![^\[\]\n]*\][ \t]+[^\s#])|\*(?!\*))(.*)$", re.MULTILINE
)


def read_skill(path: Path | str, *, scope: str = "skill", max_bytes: int = MAX_SKILL_BYTES) -> Skill:
    """Return the skill at `path`: a folder, its `SKILL.md`, or any Markdown file; its entry file is first.

    Args:
        path: Folder or file.
        scope: `skill` for `SKILL.md` and all other Markdown of its folder, without other skills, licences
            and lists of changes; `body` for `SKILL.md` alone. A file with another name is always read alone.
        max_bytes: Largest sum of file sizes; further files are left out with a warning.

    Raises:
        SkillError: There is no readable file, or it is empty, binary, not UTF-8 or too large.
        ValueError: `scope` is unknown.
    """
    if scope not in SCOPES:
        raise ValueError(f"scope must be one of {', '.join(SCOPES)}, not {scope!r}")
    entry = find_entry(Path(path))
    in_folder = entry.name.lower() == ENTRY_FILE.lower()
    reader = _Reader(entry.parent, max_bytes)
    files = [reader.read(entry)]
    if is_blank(files[0].text):
        raise SkillError(f"{entry} is empty: a skill needs at least one line of Markdown.")
    if scope == "skill" and in_folder:
        reader.add_markdown(files)
    name = entry.resolve().parent.name if in_folder else entry.stem
    return _skill(files, fallback=name, root=entry.parent.resolve(), notes=reader.warnings)


def skill_from_text(text: str, *, name: str = "skill", max_bytes: int = MAX_SKILL_BYTES) -> Skill:
    """Return a skill with the given text as its only file, `SKILL.md`; otherwise as `skill_from_files`."""
    return skill_from_files([(ENTRY_FILE, text)], name=name, max_bytes=max_bytes)


def skill_from_files(
    files: Sequence[tuple[str, str]], *, name: str = "skill", max_bytes: int = MAX_SKILL_BYTES
) -> Skill:
    """Return a skill with the given texts as its files.

    Args:
        files: Path relative to the skill's root, and Markdown; the entry file first.
        name: Name if the front matter of the entry file has none.
        max_bytes: Largest sum of sizes in UTF-8.

    Raises:
        SkillError: There is no file, the first is empty, one contains lone surrogates, two have the same
            path or one that cannot be shown on a line, or together they are too large.
    """
    if not files or is_blank(files[0][1]):
        raise SkillError("The skill text is empty: pass at least one line of Markdown.")
    sources: dict[str, SourceFile] = {}
    size = 0
    for path, text in files:
        _check_path(path, path)
        what = "The skill text" if len(files) == 1 else f"The file {path}"
        if path in sources:
            raise SkillError(f"{what} is there twice: give each file of a skill a path of its own.")
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise SkillError(
                f"{what} holds a lone surrogate at character {error.start}, which no UTF-8 file can "
                'hold: read the source with errors="replace".'
            ) from error
        size += len(data)
        _check_size(size, max_bytes, what)
        sources[path] = _source_file(path, data, text)
    return _skill(list(sources.values()), fallback=name, root=None, notes=[])


def find_entry(path: Path) -> Path:
    """Return the Markdown file at `path`: itself, or the `SKILL.md` of a folder.

    In a folder, `SKILL.md` may be a link to a file of that folder or to the `SKILL.md` of another skill. A
    link to any other file would let a stranger's skill show what its reader may read.
    """
    try:
        if path.is_dir():
            entry = next((file for name in ENTRY_NAMES if (file := path / name).is_file()), None)
            if entry is not None:
                _check_link(entry)
                return entry
            if os.path.lexists(path / ENTRY_FILE):
                raise SkillError(
                    f"{path / ENTRY_FILE} is not a regular file, or is a link that leads to none: replace it."
                )
            raise SkillError(_no_skill_in(path))
        if not path.exists():
            raise SkillError(_not_there(path))
        if not path.is_file():
            raise SkillError(f"{path} is not a regular file: name a Markdown file or a skill folder.")
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            start = one_line(str(path), SHOWN_PATH)
            raise SkillError(
                f"{start!r} is too long for a path: Markdown passed as text must contain a line break."
            ) from error
        raise SkillError(f"{path} cannot be read: {error.strerror or error}.") from error
    return path


def _no_skill_in(folder: Path) -> str:
    below = sorted(entry.parent.name for entry in folder.glob(f"*/{ENTRY_FILE}"))
    if not below:
        return f"{folder} has no {ENTRY_FILE}: name a folder that has one, or a Markdown file."
    shown = ", ".join(one_line(str(folder / name), SHOWN_PATH) for name in below[:SHOWN_SKILLS])
    more = f" and {len(below) - SHOWN_SKILLS} more" if len(below) > SHOWN_SKILLS else ""
    hint = f"name one of them: {shown}{more}; `skillpager ask` finds those that a query needs."
    return f"{folder} is no skill but a folder of skills, so {hint}"


def _not_there(path: Path) -> str:
    if url := _URL.fullmatch(str(path)):
        shown = hide_secrets(f"{url[1]}//{url[2]}")
        return f"{shown} is a URL, and nothing is downloaded: fetch the skill, then name its folder or file."
    hint = near_path(path) or "name a skill folder or a Markdown file; `skillpager list` shows known ones."
    return f"There is no file or folder {path}: {hint}"


def _check_link(entry: Path) -> None:
    """Raise a `SkillError` if the `SKILL.md` of a folder is a link to a file that no skill should show."""
    target = Path(os.path.realpath(entry))
    inside = target.is_relative_to(os.path.realpath(entry.parent))
    if entry.is_symlink() and not inside and target.name not in ENTRY_NAMES:
        raise SkillError(
            f"{entry} is a link to {target}, which is neither in its folder nor a {ENTRY_FILE}: replace the "
            "link by a file, or name the other file itself."
        )


class _TooLargeError(SkillError):
    """A file that brings a skill over the size limit."""


class _Reader:
    """Reads the files of one skill inside its root; counts bytes and collects warnings."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root, self._real_root = root, root.resolve()
        self.warnings: list[str] = []
        self._max_bytes = max_bytes
        self._bytes = 0

    def read(self, path: Path) -> SourceFile:
        name = path.relative_to(self._root).as_posix()
        _check_path(name, path)
        try:
            _check_size(self._bytes + path.stat().st_size, self._max_bytes, str(path))
            data = read_bounded(path, self._max_bytes - self._bytes)
            self._bytes += len(data)
            _check_size(self._bytes, self._max_bytes, str(path))  # it may have grown meanwhile
        except OSError as error:
            raise SkillError(f"{path} cannot be read: {error.strerror or error}.") from error
        return _source_file(name, data, decode(data, str(path)))

    def add_markdown(self, files: list[SourceFile]) -> None:
        """Append the other Markdown of the folder: as the entry mentions it, then by path."""
        (entry,) = files
        body = entry.text[entry.body_start :]
        found = [each for each in walk(self._root) if each.path != entry.path]
        paths = sorted(each.path for each in found if each.kind == "file" and belongs_to_skill(each.path))
        order = list(dict.fromkeys((*find_mentions(body, Names(paths)), *paths))) if paths else []
        problems = [f"{each.path or self._root} {each.problem}" for each in found if each.kind == "fault"]
        links = [one_line(each.path) for each in found if each.kind == "link"]
        upwards = islice(dict.fromkeys(_UPWARDS.findall(body)), MAX_FILES)
        outside, too_large = list(filter(self._is_outside, [*links, *upwards])), []
        inside = [link for link in links if belongs_to_skill(link) and link not in outside]
        for path in order[:MAX_FILES]:
            try:
                files.append(self.read(self._root / path))
            except _TooLargeError:
                too_large.append(path)
            except SkillError as error:
                problems.append(str(error))
        for paths, reason in (
            (outside, "outside of the skill's folder"),
            (inside, "a link within the skill's folder"),
            (too_large, f"over the limit of {self._max_bytes:,} bytes (SKILLPAGER_MAX_BYTES)"),
            (order[MAX_FILES:], f"over the limit of {MAX_FILES:,} files"),
        ):
            more = f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else ""
            problems += [f"{', '.join(paths[:MAX_NAMED])}{more}: {reason}"] if paths else []
        self.warnings += [f"left out: {problem}" for problem in problems[-MAX_NAMED:]]
        if len(problems) > MAX_NAMED:
            self.warnings.append(f"left out: {len(problems) - MAX_NAMED} more")

    def _is_outside(self, link: str) -> bool:
        """Return whether a link leads out of the folder, or is a file that leads nowhere."""
        path = self._root / link
        real = Path(os.path.realpath(path))  # unlike `resolve`, it raises nothing for a loop
        if real.is_relative_to(self._real_root) and real.exists():
            return False
        return real.is_dir() or (is_markdown(link) and (real.is_file() or path.is_symlink()))


def belongs_to_skill(path: str) -> bool:
    """Return whether a file is Markdown and neither a licence nor a list of changes."""
    return is_markdown(path) and not _ASIDE.fullmatch(PurePosixPath(path).stem)


def is_markdown(path: str) -> bool:
    """Return whether a file's name is that of Markdown, whatever it is about."""
    return path.lower().endswith((".md", ".markdown"))


def safe_name(written: str, fallback: str) -> str:
    """Return a skill's name as its author wrote it, if it is at most `MAX_NAME` letters, digits and hyphens.

    Otherwise it is the fallback, such as the folder's name, with hyphens in place of everything else. Our own
    sentences repeat the name, and a model would take a sentence in it for one of ours.
    """
    if len(written) <= MAX_NAME and _SAFE_NAME.fullmatch(written):
        return written
    return "-".join(re.findall(_WORD, fallback))[:MAX_NAME].rstrip("-") or "skill"


def written_name(text: str) -> str:
    """Return the name that the front matter of a text gives, on one line; empty if it gives none."""
    start, end = find_front_matter(text)
    fields, _ = parse_front_matter(text[start:end], file=ENTRY_FILE)
    return one_line(fields.get("name", ""), MAX_SHOWN_NAME)


def is_blank(text: str) -> bool:
    """Return True if a text consists of blanks, line ends and byte order marks."""
    return not text.strip("\ufeff \t\r\n")


def _check_path(name: str, path: Path | str) -> None:
    """Raise a `SkillError` if the name of a file within the skill cannot stand on a line."""
    if not is_plain(name):
        raise SkillError(
            f"The file {str(path)!r} has control, hidden or broken characters in its name: rename it."
        )


def _check_size(size: int, max_bytes: int, what: str) -> None:
    if size > max_bytes:
        raise _TooLargeError(
            f"{what} brings the skill to {size:,} bytes, over the limit of {max_bytes:,}: page a smaller "
            "file, or raise the limit with SKILLPAGER_MAX_BYTES."
        )


def _source_file(path: str, data: bytes, text: str) -> SourceFile:
    digest = hashlib.sha256(data).hexdigest()
    return SourceFile(path=path, text=text, digest=digest, body_start=find_body(text))


def _skill(files: list[SourceFile], *, fallback: str, root: Path | None, notes: list[str]) -> Skill:
    entry = files[0]
    start, end = find_front_matter(entry.text)
    fields, warnings = parse_front_matter(entry.text[start:end], file=entry.path)
    written, description = fields.pop("name", "").strip(), fields.pop("description", "").strip()
    name = safe_name(written, fallback)
    if written and name != written:
        shown, form = one_line(repr(written), MAX_SHOWN_NAME), "letters, digits and hyphens"
        warnings.append(f"the skill is called {name!r}, because {shown} is not 1 to {MAX_NAME} {form}")
    return Skill(name, description, fields, related(files), root, tuple(warnings + notes))


def related(files: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Return the files of a skill with what it says of each where it mentions it, and with copies marked."""
    return tuple(fold_copies(describe(files)) if len(files) > 1 else files)


class _Loader(yaml.BaseLoader):
    """A loader of strings, lists and mappings: every scalar is read as it is written, tags are ignored.

    There are no aliases, so that no document can expand beyond its own text, and few levels of nesting.
    """

    _depth = 0

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        # before the parser, because the time that the scanner takes grows with the depth
        if self.flow_level >= MAX_DEPTH:
            raise yaml.YAMLError(_TOO_DEEP)
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not allowed in front matter")
        if self._depth >= MAX_DEPTH:
            raise yaml.YAMLError(_TOO_DEEP)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def find_body(text: str) -> int:
    """Return the offset after byte order marks and front matter; 0 if there is neither."""
    return _behind_marks(text, find_front_matter(text)[1])


def find_front_matter(text: str) -> tuple[int, int]:
    """Return the offsets where front matter begins, behind byte order marks, and ends; equal without any.

    A first line `---` is a thematic break if no later `---` closes the block, or if the block begins with
    prose instead of a `key: value` field.
    """
    start = _behind_marks(text, 0)
    if block := _BLOCK.match(text, start, start + MAX_FRONT_MATTER):
        lines = (line for line in LINE_END.split(block["body"]) if line.strip() and not line.startswith("#"))
        first = next(lines, None)
        if first is None or _KEY.match(first.lstrip(" ")):
            return start, block.end()
    return start, start


def _behind_marks(text: str, start: int) -> int:
    found = _MARKS.match(text, start)
    return found.end() if found else start


def parse_front_matter(front_matter: str, *, file: str) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a front-matter block as text, and warnings about it with file and line.

    The block has its `---` lines and no byte order marks, or is empty. Lists and mappings become JSON. A
    block that is not YAML, even after quoting values with colons, is read line by line.
    """
    block = _BLOCK.match(front_matter)
    if not block:
        return {}, []
    body = LINE_END.sub("\n", block["body"])
    try:
        return _load_yaml(body), []
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark is not None else 1  # the block begins on the second line of the file
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        problem = f"{file}:{line}: the front matter is not valid YAML ({reason})"
    try:
        return _load_yaml(_FIELD.sub(_quote, body)), [f"{problem}; read after quoting values with colons"]
    except yaml.YAMLError:
        fields = {match[1]: match[2].rstrip(" \t") for match in _FIELD.finditer(body)}
        return fields, [f"{problem}; only its plain `key: value` lines were read"]


def _quote(field: re.Match[str]) -> str:
    value = field[2].rstrip(" \t")
    return f"{field[1]}: {json.dumps(value)}"


def _load_yaml(body: str) -> dict[str, str]:
    try:
        loaded = yaml.load(body, Loader=_Loader) or {}  # noqa: S506 - strings alone, bounded further
    except yaml.YAMLError:
        raise
    except Exception as error:  # PyYAML lets pass what impossible characters raise
        raise yaml.YAMLError(str(error)) from error
    if not isinstance(loaded, dict):
        raise yaml.YAMLError("the block is not a mapping")
    return {_as_text(key): _as_text(value) for key, value in loaded.items()}


def _as_text(value: object) -> str:
    # surrogates from escapes are joined or else replaced
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

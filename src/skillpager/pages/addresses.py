"""Find nodes by address: an id (`n12`), a range (`n12-n16`), lines (`L30-57`), a file or a heading."""

import difflib
import re
from collections.abc import Sequence

from skillpager.errors import NodeNotFoundError
from skillpager.sections import folded, nodes_under
from skillpager.types import SkillIndex, SourceFile

# most titles or files that an error message lists
SHOWN_TITLES = 8

# no skill has nodes or lines with ten-digit numbers, and Python refuses to parse thousands of digits
MAX_LINE = 999_999_999
_LINE_END = re.compile(r"\r\n|\r|\n")
_NODES = re.compile(r"n?(\d{1,9})(?:-n?(\d{1,9}))?", re.IGNORECASE)
_LINES = re.compile(r"(?:(?P<file>[^\s:]+):)?L(\d{1,9})(?:-L?(\d{1,9}))?", re.IGNORECASE)


def find_nodes(index: SkillIndex, addresses: Sequence[str]) -> list[int]:
    """Return the ordinals of the nodes at the addresses, in document order, each once.

    Addresses are node ids (`n12` or `12`), ranges of them, line ranges (`L30-57`, and `references/api.md:L3`
    for a file other than the first) or paths of files, separated by spaces or commas; or the title of a
    section. A `NodeNotFoundError` says what is wrong with one.
    """
    found: set[int] = set()
    files = {file.path for file in index.skill.files}
    if addresses and not any(map(_split, addresses)):
        raise NodeNotFoundError(
            "No node is named: write an id such as n12, a range n12-n16, lines L30-57 or a heading."
        )
    for text in addresses:
        named = {text.strip(), *_split(text)} & files
        found.update(node.ordinal for node in index.nodes if node.span.file in named)
        parts = [part for part in _split(text) if part not in named and text.strip() not in named]
        addressed = [_NODES.fullmatch(part) or _LINES.fullmatch(part) for part in parts]
        if not all(addressed) and not named and (section := nodes_under(index.nodes, text)):
            found.update(section)
            continue
        for match, part in zip(addressed, parts, strict=True):
            if match is None:
                # one wrong part among right ones, or a title that is not there
                wrong = part if any(addressed) else text.strip()
                if wrong.lower().endswith(".md"):
                    check_file(index, wrong)
                raise NodeNotFoundError(_neither(index, wrong))
            found.update(_at_lines(index, match) if match.re is _LINES else _at_ids(index, match))
    return sorted(found)


def verbatim_lines(
    index: SkillIndex, addresses: Sequence[str], *, of_nodes: bool
) -> tuple[SourceFile, range] | None:
    """Return file and lines if the only address is a file, or lines without nodes, or `of_nodes`, too."""
    address = addresses[0].strip(" \t\r\n,") if len(addresses) == 1 else ""
    match = _LINES.fullmatch(address)
    path = (match["file"] or index.skill.files[0].path) if match else address
    file = next((each for each in index.skill.files if each.path == path), None)
    if file is None:
        return None
    if match is None:
        return file, range(1, MAX_LINE)
    first, last = int(match[2]), int(match[3] or match[2])
    _check_order(address, first, last, "L")
    if not of_nodes and _nodes_on(index, path, first, last):
        return None
    total = len(_LINE_END.split(file.text.rstrip("\r\n")))
    if not 1 <= first <= total:
        raise NodeNotFoundError(
            f"There are no lines {address!r} in skill {index.skill.name!r}: {path} has lines 1 to {total}."
        )
    return file, range(first, last + 1)


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _at_ids(index: SkillIndex, match: re.Match[str]) -> range:
    """Return the ordinals of a match of `_NODES`."""
    total = len(index.nodes)
    first, last = int(match[1]), int(match[2] or match[1])
    _check_order(match[0], first, last, "n")
    if last >= total:
        known = f"n0 to n{total - 1}" if total else "none"
        raise NodeNotFoundError(
            f"There is no node {match[0]!r} in skill {index.skill.name!r}: its nodes are {known}; the "
            "outline with nodes lists them."
        )
    return range(first, last + 1)


def _at_lines(index: SkillIndex, match: re.Match[str]) -> list[int]:
    """Return the ordinals of the nodes on the lines of a match of `_LINES`."""
    file = match["file"] or index.skill.files[0].path
    check_file(index, file)
    first, last = int(match[2]), int(match[3] or match[2])
    _check_order(match[0], first, last, "L")
    here = _nodes_on(index, file, first, last)
    if not here:
        raise NodeNotFoundError(
            f"No node stands at {match[0]!r} in skill {index.skill.name!r}: read lines without nodes by "
            "themselves, such as headings."
        )
    return here


def _nodes_on(index: SkillIndex, file: str, first: int, last: int) -> list[int]:
    """Return the ordinals of the nodes on these lines of a file."""
    spans = [(node.ordinal, node.span) for node in index.nodes if node.span.file == file]
    return [number for number, span in spans if span.start_line <= last and span.end_line >= first]


def check_file(index: SkillIndex, path: str) -> None:
    """Raise a `NodeNotFoundError` that names the files of a skill, if the path is that of none."""
    files = [file.path for file in index.skill.files]
    if path not in files:
        files.sort(key=lambda known: not known.endswith(f"/{path}"))  # first those of this name
        raise NodeNotFoundError(
            f"There is no file {path!r} in skill {index.skill.name!r}: its files are {_some(files)}."
        )


def _check_order(address: str, first: int, last: int, letter: str) -> None:
    if first > last:
        raise NodeNotFoundError(f"The range {address!r} runs backwards: write {letter}{last}-{first}.")


def _neither(index: SkillIndex, text: str) -> str:
    """Return the error for a text that is no address and no title; it lists similar titles, or the first."""
    titles = list(dict.fromkeys(node.heading_path[-1] for node in index.nodes if node.heading_path))
    wanted, by_name = folded(text), {folded(title): title for title in titles}
    close = difflib.get_close_matches(wanted, by_name) or [name for name in by_name if wanted in name]
    listed = _some([by_name[name] for name in close or by_name])
    return (
        f"{text!r} is neither a node nor a section of skill {index.skill.name!r}: write an id such as n12, a "
        "range n12-n16, lines L30-57 or a heading"
        + (f", such as {listed}; the outline lists them." if listed else "; it has no headings.")
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:SHOWN_TITLES])) + (", …" if len(names) > SHOWN_TITLES else "")

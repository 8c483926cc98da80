"""The marks of a page: where the omitted lines are, what they hold, and how they are read."""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import groupby

from skillpager.display_text import line_range, one_line, quoted_place
from skillpager.types import Node, Omission, SkillIndex, Span

# the ends of a page: before its first node, after its last
START, END = -1, -2

# a node id and a file name, as used in addresses
_NODE_ID = re.compile(r"n\d+")
_FILE_NAME = re.compile(r"[^\s:,\[\]]+")
IDS = "{ids}"  # placeholder of the address in a command that does not end with it
# sections that a mark names at most: without any, pages save about 0.3 % more of the tokens
MAX_TITLES = 4
TITLE_CHARS = 60
LEAST_NAMED_LINES = 10  # shorter parts need no names besides their lines
MAX_NAMELESS_LINES = 25  # longer parts are named by their first words, if nothing introduces them
ROUND_BRACKETS = str.maketrans("[]", "()")

MAX_VARIANTS = 12  # that are named
MIN_FILES = 3  # fewer have marks of their own, with lines and sections
MAX_TITLED = 6  # so many are named with their titles, more by folder
MAX_FOLDERS, MAX_NAMES = 8, 3  # that such a mark names, and files of each
WORDS_CHARS = 50

# a line that is bold and nothing else, and one that is the caption of a table
_BOLD = re.compile(r"(?:[-*+]\s+|\d+[.)]\s+)?(\*\*|__)(?P<title>(?:(?!\1).)+)\1\s*[:：]?")
_CAPTION = re.compile(r"\W*(?P<title>(?:table|tabelle|tableau|tabla|表)\s*\d.*)", re.IGNORECASE)
_FENCE = re.compile(r"\s*(?:```|~~~)|[-:|\s]*$")


def omissions_of(nodes: Sequence[Node], known: Collection[int]) -> tuple[Omission, ...]:
    """Return the gaps of adjacent hidden nodes: one per file, separate ones for those that the reader has.

    `nodes` are in document order, `known` are the ordinals of the nodes that the reader has.
    """
    omissions = []
    for (file, had), run in groupby(nodes, key=lambda node: (node.span.file, node.ordinal in known)):
        hidden = list(run)
        omission = Omission(
            file=file,
            start_line=hidden[0].span.start_line,
            end_line=hidden[-1].span.end_line,
            nodes=tuple(node.id for node in hidden),
            types=dict(Counter(node.type for node in hidden).most_common()),
            tokens=sum(node.tokens for node in hidden),
            known=had,
        )
        omissions.append(omission)
    return tuple(omissions)


def mark_of(index: SkillIndex, omission: Omission, titles: Sequence[str], tag: str) -> str:
    """Return the mark of a gap: where it is, and the titles of omitted sections, in document order."""
    place = address_of(index, omission)
    if omission.known:
        return f"[…{tag} {place}, sent earlier]"
    # no title can end the mark
    named = [one_line(title, TITLE_CHARS).translate(ROUND_BRACKETS) for title in titles[:MAX_TITLES]]
    if len(titles) > MAX_TITLES:
        named.append("…")
    return f"[…{tag} {place}: {'; '.join(named)}]" if named else f"[…{tag} {place}]"


def part_names(
    nodes: Sequence[Node], introduction_of: Callable[[int], tuple[Span, str]], previous: Node | None
) -> dict[Span, str]:
    """Return names for the parts of adjacent nodes of a file that no heading names, by their places.

    `introduction_of` returns that of a node, by its ordinal; a long part without any is named by its first
    words. `previous` is the node before.
    """
    found: dict[Span, str] = {}
    start, nameless = nodes[0].span.start_line, nodes[-1].span.end_line
    if nameless - start < LEAST_NAMED_LINES:
        return found
    for node in nodes:
        place, title = introduction_of(node.ordinal)
        # the items of a list whose introduction is a node have its words, too
        if title and title not in found.values() and not covers(previous, place):
            nameless = nameless if found else node.span.start_line - 1
            found[place] = title
            if len(found) > MAX_TITLES:
                break
    if nameless - start >= MAX_NAMELESS_LINES:
        found = {nodes[0].span: _first_words(nodes[0].text), **found}
    return found


def introduction(node: Node) -> tuple[Span, str]:
    """Return place and words of the bold line, lead-in or caption that introduces a node; else no words."""
    line, _, below = node.text.strip().partition("\n")
    if match := _BOLD.fullmatch(line.strip()) or _CAPTION.fullmatch(line.strip()):
        return node.span, match["title"].strip(" :：*_")
    context = node.list_context
    if context and line.rstrip(" *_").endswith((":", "：")) and below:
        return node.span, line.strip(" :：*_")
    if context and context.lead_in_span and context.lead_in.rstrip(" *_").endswith((":", "：")):
        return context.lead_in_span, context.lead_in.strip(" :：*_\r\n")
    return node.span, ""


def _first_words(text: str) -> str:
    """Return the first line of a text that holds words, without the marks of its block."""
    lines = (line.strip(" \t|>-*#") for line in text.splitlines() if not _FENCE.match(line))
    return next(filter(None, lines), "")


def covers(node: Node | None, span: Span) -> bool:
    """Return whether `node` contains, or comes after, the beginning of a span of its file."""
    return node is not None and node.span.file == span.file and node.span.end > span.start


def address_of(index: SkillIndex, omission: Omission) -> str:
    """Return the address by which a gap can be read, such as `L12-18` or `references/api.md:L3`.

    Text beside the gap that stands in its first or last line is read with it. If the file name cannot be part
    of an address, the lines are for people, and ids follow: `my notes.md L12-18 n3-n5`.
    """
    lines, file = line_range(omission.start_line, omission.end_line), omission.file
    if file == index.skill.files[0].path:
        return lines
    if is_file_address(file):
        return f"{file}:{lines}"
    place, ids = f"{quoted_place(file)} {lines}", omission.nodes
    if not _NODE_ID.fullmatch(ids[0]):  # windows of the source have ids that nothing reads
        return place
    return f"{place} {ids[0]}" if len(ids) == 1 else f"{place} {ids[0]}-{ids[-1]}"


def read_address(index: SkillIndex, omitted: Sequence[Omission]) -> str:
    """Return the address that reads the first gap, of which the reader has nothing if there is one."""
    for gap in sorted(omitted, key=lambda each: each.known):
        address = address_of(index, gap).rpartition(" ")[2]
        if is_file_address(gap.file) or gap.file == index.skill.files[0].path or _NODE_ID.match(address):
            return address
    return ""


def is_file_address(path: str) -> bool:
    """Return whether lines of the file can be read by an address with its path."""
    return _FILE_NAME.fullmatch(path) is not None


def command_for(show: str, address: str) -> str:
    """Return the command that reads this address."""
    return show.replace(IDS, address) if IDS in show else f"{show} {address}"


def files_mark(files: Sequence[tuple[str, str]], tag: str) -> str:
    """Return the mark of whole files, given their paths and words that tell what they hold.

    Such as `[… 3 files: a.md: Errors; b.md: Limits; c.md]`, or `[… 9 files: go/ (5: README.md, errors.md,
    batches.md, …); ts/ (4: …)]`. A file is read by its path.
    """
    named = []
    if len(files) <= MAX_TITLED:
        for path, words in files:
            plain = one_line(words, WORDS_CHARS).translate(ROUND_BRACKETS)
            named.append(f"{quoted_place(path)}: {plain}" if plain else quoted_place(path))
    else:
        folders: dict[str, list[str]] = {}
        for path, _ in files:
            folder, slash, name = path.rpartition("/")
            folders.setdefault(quoted_place(folder + slash), []).append(quoted_place(name))
        for folder, names in list(folders.items())[:MAX_FOLDERS]:
            more = ", …" if len(names) > MAX_NAMES else ""
            named.append(f"{folder} ({len(names)}: {', '.join(names[:MAX_NAMES])}{more})".lstrip())
        named += ["…"] if len(folders) > MAX_FOLDERS else []
    return f"[…{tag} {len(files)} files: {'; '.join(named)}]"


def variants_mark(taken: str, others: Sequence[str], tag: str) -> str:
    """Return the mark that says which other folders a query could name in place of the one taken."""
    names = [one_line(f.rpartition("/")[2], TITLE_CHARS) for f in (taken, *others[:MAX_VARIANTS])]
    # no name ends the mark, or goes on as its text
    shown, *named = (n if is_file_address(n) else json.dumps(n, ensure_ascii=False) for n in names)
    listed = ", ".join(named + ["…"] * (len(others) > MAX_VARIANTS))
    return f"[Variants{tag}: {listed}; this page shows {shown}. Name another in the query to read it.]"


def words_of_files(index: SkillIndex) -> dict[str, str]:
    """Return for each file where its text is, too, its title, and what the skill says besides its path."""
    words = {each.span.file: [each.title] for each in reversed(index.headings) if each.title}
    for copy in index.skill.files:
        owner = next((file.path for file in index.skill.files if file.path.startswith(copy.same_as)), "")
        if copy.same_as and owner:  # the first file of a folder
            words.setdefault(owner, []).insert(0, f"(also in {copy.path})")
    for file in index.skill.files:
        said = file.description.replace(file.path, "").strip(" -–—:;,.|")
        words.setdefault(file.path, []).extend([said] if said else [])
    return {path: "; ".join(found) for path, found in words.items()}


def whole_text(index: SkillIndex, tag: str = "") -> str:
    """Return the whole skill without front matter; each file but the first begins with its name."""
    return source_between(index, START, END, tag).strip("\r\n") + "\n"


def source_between(index: SkillIndex, before: int, after: int, tag: str) -> str:
    """Return the source between two nodes, with its name wherever a new file begins."""
    paths = [file.path for file in index.skill.files]
    first = index.nodes[before].span if before >= 0 else None
    last = index.nodes[after].span if after >= 0 else None
    number = paths.index(first.file) if first else 0
    stop = paths.index(last.file) + 1 if last else None
    text = ""
    for file in index.skill.files[number:stop]:
        start = first.end if first and file.path == first.file else file.body_start
        end = last.start if last and file.path == last.file else len(file.text)
        source = file.text[start:end]
        if file.path != paths[number]:
            text = f"{text.rstrip()}\n\n{file_mark(file.path, tag, file.same_as)}\n\n"
            source = source.lstrip("\r\n")
        text += "" if file.same_as else source
    return text


def file_mark(path: str, tag: str, same_as: str = "") -> str:
    """Return the line that names a file where its text begins, or where that of a copy is left out."""
    same = f", same text as {quoted_place(same_as)}" if same_as else ""
    return f"[file{tag}: {quoted_place(path)}{same}]"

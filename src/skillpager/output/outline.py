"""Text for people and agents: the outline of an index, the explanation of a page.

An outline is a map, which has a line for each section, or a list of all nodes. The list is also the golden
format of the tests, so it holds no times, paths or colors.
"""

import tomllib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import groupby

from skillpager.display_text import line_range, one_line, percent, snippet
from skillpager.pages.addresses import check_file
from skillpager.pages.marks import command_for, is_file_address, words_of_files
from skillpager.pages.render import notice_of, skill_tag
from skillpager.sections import open_headings
from skillpager.types import Heading, Node, Page, Pick, ScoreKind, SkillIndex, Skip, Tile, TokenCounter

# a map takes at most so many tokens, or this share of the skill's tokens if that is more, up to a limit
MAP_TOKENS, MAX_MAP_TOKENS = 400, 2_000
MAP_SHARE = 0.1
# characters that say what a file is about, in a map of files alone: as many as fit
ABOUT_CHARS = (100, 50, 25, 0)
# a map with fewer lines tells too little of a large skill
LEAST_LINES = 8
# characters of a title; the Agent Skills specification allows as many for a name
TITLE_CHARS = 64
# types of nodes that a line counts; the others are counted together
COUNTED_TYPES = 3
# characters of a text without a heading that name it
FIRST_WORDS_CHARS = 40
# what `explain_page` says of groups of features, and of reasons against a node
_WORDS = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))
SIGNALS: dict[str, str] = _WORDS["signals"]
SKIPPED: dict[str, tuple[str, str]] = _WORDS["skipped"]
# smaller shares are not shown, and no more than so many
LEAST_SHARE = 0.1
SHOWN_SIGNALS = 3
# an explanation shows so many of the nodes that are left out, and so many characters of each
NEXT_BEST = 5
BEGINS_CHARS = 40


@dataclass(frozen=True, slots=True)
class _Part:
    """A line of a map: a file, or a section without its subsections, and what is folded into it."""

    title: str  # a heading's title, the first words of a text without a heading, or a file's path
    depth: int  # number of parts that contain it
    file: str
    start_line: int  # of its heading, or of its first node; 0 for a file with nothing folded into it
    end_line: int
    nodes: tuple[Node, ...] = ()
    is_file: bool = False
    sections: int = 0  # number of sections folded into it


def outline_map(
    index: SkillIndex,
    counter: TokenCounter,
    *,
    show: str = "",
    list_nodes: str = "",
    list_file: str = "",
    folder: str = "",
    max_tokens: int | None = None,
) -> str:
    """Return a map of the skill: for each section its title, lines, tokens and number of nodes by type.

    It has at most `MAP_TOKENS` tokens, or `MAP_SHARE` of the skill's if that is more, and never more than
    `MAX_MAP_TOKENS`. If the sections do not fit, the deepest level is folded into the sections that contain
    it, then the next; the last level are the files, each with what it is about. If fewer than `LEAST_LINES`
    lines would remain of one file, the beginning of the map is shown instead. The first line always stays.

    The other arguments are those of `SkillPager.outline`; `max_tokens` is a lower ceiling.
    """
    ceiling = max(MAP_TOKENS, min(MAX_MAP_TOKENS, int(index.full_tokens * MAP_SHARE)))
    ceiling = ceiling if max_tokens is None else min(ceiling, max_tokens)
    parts = list(_parts(index))
    total = sum(not part.is_file for part in parts)
    tag = skill_tag(index.skill)

    def render(shown: Sequence[_Part], guide: bool, about: int | None = None) -> str:
        lines = [summary(index), *(_part_line(part, index, about) for part in shown)]
        hidden = total - sum((not part.is_file) + part.sections for part in shown)
        lines += [f"{hidden} more section{'' if hidden == 1 else 's'} not shown"] if hidden and shown else []
        if guide and shown:
            words = _guide(shown, index, show, list_file, files_alone=about is not None)
            words += f"; to see every section and node: `{list_nodes}`" if list_nodes else ""
            lines.append(f"[…{tag} {words}]")
        lines += [f"[Skill folder{tag}: {folder}]"] if folder else []
        return notice_of(tag) + "\n".join(lines) + "\n"

    def fits(shown: Sequence[_Part], guide: bool = True, about: int | None = None) -> bool:
        return counter.count(render(shown, guide, about)) <= ceiling

    deepest = max((part.depth for part in parts), default=0)
    levels = [_folded(parts, depth) for depth in range(deepest + 1)]
    fitting = [level for level in levels if fits(level)]
    several = sum(part.is_file for part in parts) > 1
    if len(fitting) == len(levels) or (fitting and not several and len(fitting[-1]) >= LEAST_LINES):
        return render(fitting[-1], True)
    level, about = levels[0 if several else len(fitting)], None  # the outermost that does not fit
    for about in ABOUT_CHARS if several else ():
        if fits(level, True, about):
            return render(level, True, about)
    guide = fits(level[:1], True, about)  # a command may be longer than the ceiling
    sizes = range(1, len(level) + 1)
    size = bisect_left(sizes, True, key=lambda size: not fits(level[:size], guide, about))
    return render(level[:size], guide, about)


def _parts(index: SkillIndex) -> Iterator[_Part]:
    """Yield each file, if there are several, and each section: a heading and what follows up to the next."""
    several = len(index.skill.files) > 1
    for path, tiles in groupby(document_order(index), key=lambda tile: tile.span.file):
        if several:
            yield _Part(path, 0, path, 0, 0, is_file=True)
        sections: list[list[Tile]] = []
        for tile in tiles:
            if not sections or isinstance(tile, Heading):
                sections.append([])
            sections[-1].append(tile)
        above: tuple[Heading, ...] = ()
        for first, *others in sections:
            if isinstance(first, Heading):
                above = open_headings(above, first)
                title = first.title
            else:
                title = f'"{snippet(first.text, FIRST_WORDS_CHARS)}"'
            last = others[-1] if others else first
            depth = several + max(0, len(above) - 1)
            nodes = tuple(tile for tile in (first, *others) if isinstance(tile, Node))
            yield _Part(title, depth, path, first.span.start_line, last.span.end_line, nodes)


def _folded(parts: Sequence[_Part], depth: int) -> list[_Part]:
    """Return the parts up to a depth, with deeper ones folded into those that contain them."""
    found: list[_Part] = []
    for part in parts:
        if part.depth <= depth or not found:
            found.append(part)
            continue
        found[-1] = replace(
            found[-1],
            start_line=found[-1].start_line or part.start_line,
            end_line=part.end_line,
            nodes=(*found[-1].nodes, *part.nodes),
            sections=found[-1].sections + 1,
        )
    return found


def _part_line(part: _Part, index: SkillIndex, about: int | None) -> str:
    """Return the line of a part, such as `Restore L9-30 410t: 4 step, 2 example, + 3 sections`.

    With a number of characters for what a file is `about` it is that of a file, such as `a.md 410t: Errors`.
    """
    line = f"{'  ' * part.depth}{one_line(part.title, TITLE_CHARS) or '(no title)'}"
    if not part.start_line:
        return line
    size = f" {sum(node.tokens for node in part.nodes)}t" if part.nodes else ""
    if about is not None:
        words = one_line(words_of_files(index)[part.file], about) if about else ""
        return f"{line}{size}: {words}" if words else f"{line}{size}"
    if place := _place(part, index):
        line += f" {place}"
    types = Counter(node.type for node in part.nodes).most_common()
    counts = [f"{count} {kind}" for kind, count in types[:COUNTED_TYPES]]
    others = sum(count for _, count in types[COUNTED_TYPES:])
    counts += [f"{others} other"] if others else []
    counts += [f"+ {part.sections} section{'' if part.sections == 1 else 's'}"] if part.sections else []
    return f"{line}{size}: {', '.join(counts)}" if counts else line


def _place(part: _Part, index: SkillIndex) -> str:
    """Return the lines of a part, or the ids of its nodes if no line can name its file."""
    whole_name = is_file_address(part.file) and one_line(part.file, TITLE_CHARS) == part.file
    if part.file == index.skill.files[0].path or whole_name or not part.nodes:
        return line_range(part.start_line, part.end_line)
    first, last = part.nodes[0].id, part.nodes[-1].id
    return first if first == last else f"{first}-{last}"


def file_part(index: SkillIndex, path: str) -> SkillIndex:
    """Return the part of an index that is about one file; raise an error if that is not there."""
    check_file(index, path)
    nodes = tuple(node for node in index.nodes if node.span.file == path)
    headings = tuple(each for each in index.headings if each.span.file == path)
    return replace(index, nodes=nodes, headings=headings, full_tokens=sum(node.tokens for node in nodes))


def _guide(shown: Sequence[_Part], index: SkillIndex, show: str, list_file: str, *, files_alone: bool) -> str:
    """Return what the lines of a map are, and the commands that read on, with an example."""
    entry = index.skill.files[0].path
    words = "each line is a file" if files_alone else "each line is a section without the sections below it"
    places = [(part.file, _place(part, index)) for part in shown if part.nodes]
    here = [place for file, place in places if file == entry]
    there = [place if place[0] == "n" else f"{file}:{place}" for file, place in places if file != entry]
    if not files_alone and (folded := sum(part.sections for part in shown)):
        words += f"; {folded} more {'is' if folded == 1 else 'are'} folded, see +"
    if files_alone and list_file:
        words += f"; to see its sections: `{command_for(list_file, shown[-1].file)}`"
    if show and places:
        words += f"; to read lines: `{command_for(show, (here or there)[0])}`"
        words += f", of another file: {there[0]}" if here and there else ""
    return words


def node_outline(index: SkillIndex) -> str:
    """Return the skill as a tree of headings and nodes: id, type, confidence, lines, tokens, text."""
    return "\n".join([summary(index), *(line for line, _ in outline_lines(index))]) + "\n"


def outline_lines(index: SkillIndex) -> Iterator[tuple[str, Node | None]]:
    """Yield the lines of a list of nodes after its first, each with the node that it describes, if any."""
    file = None
    depth = 0
    for tile in document_order(index):
        if tile.span.file != file:
            file, depth = tile.span.file, 0
            yield file, None
        if isinstance(tile, Heading):
            depth = tile.level
            yield f"{'  ' * depth}{'#' * tile.level} {one_line(tile.title)}", None
        elif isinstance(tile, Node):
            lines = line_range(tile.span.start_line, tile.span.end_line)
            line = (
                f"{'  ' * (depth + 1)}{tile.id} {tile.type} {tile.type_confidence:.2f} {lines} "
                f"{tile.tokens}t {tile.kind}: {snippet(tile.text)}"
            )
            yield line, tile


def document_order(index: SkillIndex) -> list[Tile]:
    """Return headings and nodes together in document order."""
    order = {file.path: number for number, file in enumerate(index.skill.files)}
    tiles: list[Tile] = [*index.headings, *index.nodes]
    return sorted(tiles, key=lambda tile: (order[tile.span.file], tile.span.start))


def summary(index: SkillIndex) -> str:
    """Return one line: name, number of nodes by type, tokens, files."""
    counts = Counter(node.type for node in index.nodes)
    types = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    shown = f" ({types})" if types else ""
    files = len(index.skill.files)
    about = "about " if index.recipe.token_counter.startswith("estimate") else ""
    size = f"{about}{index.full_tokens} tokens, {files} file{'' if files == 1 else 's'}"
    return f"{one_line(index.skill.name, TITLE_CHARS)}: {len(index.nodes)} nodes{shown}, {size}"


def explain_page(
    page: Page, reasons: Mapping[str, Mapping[str, float]] | None = None, *, show: str = ""
) -> str:
    """Return why the nodes of a page were picked, why the next best were not, and what would change it.

    `reasons` are those of `SkillPager.reasons`; `show` is the command that reads nodes, if there is one.
    """
    selection = page.selection
    if page.complete or selection is None:
        why = "it fits the limits, and to leave out what was not picked would save nothing"
        return f"The whole skill is on the page: {why}.\n"
    total = len(selection.picks) + len(selection.skipped)
    lines = [f"Picked {len(selection.picks)} of {total} nodes with {selection.strategy}, in this order:"]
    for pick in selection.picks:
        shares = sorted((reasons or {}).get(pick.node.id, {}).items(), key=lambda item: -item[1])
        signals = [SIGNALS.get(name, name) for name, share in shares[:SHOWN_SIGNALS] if share >= LEAST_SHARE]
        lines.append(_explained(pick, selection.score_kind, ", ".join(signals)))
    shown = {node.id for node in page.nodes}
    if filled := len(shown) - len(selection.picks):
        lines.append(f"On the page, too: {filled} between them, where a mark would be as long as the text.")
    left = [skip for skip in selection.skipped if skip.node.id not in shown]
    if left:
        best = sorted(left, key=lambda skip: -skip.marginal)[:NEXT_BEST]
        reason_counts = Counter(skip.reason for skip in left).most_common()
        main = reason_counts[0][0]
        shared = f" ({SKIPPED[main][0]})" if len(reason_counts) == 1 else ""
        some = f"; the best {len(best)}" if len(best) < len(left) else ""
        lines.append(f"Left out {len(left)}{shared}{some}:")
        whys = ["" if shared else SKIPPED[skip.reason][0] for skip in best]
        lines += [_explained(skip, selection.score_kind, why) for skip, why in zip(best, whys, strict=True)]
        read = f"To read one: `{command_for(show, best[0].node.id)}`. " if show else ""
        lines.append(f"{read}To change it: {SKIPPED[main][1]}.")
    return "\n".join(lines) + "\n"


def _explained(entry: Pick | Skip, kind: str, why: str) -> str:
    node = entry.node
    is_need = kind == ScoreKind.NEED
    score = f"needed {percent(entry.marginal):>5}" if is_need else f"{kind} {entry.marginal:>5.2f}"
    place = f"{node.id} {line_range(node.span.start_line, node.span.end_line)}"
    begins = snippet(node.text, BEGINS_CHARS)
    return f"  {place:<14} {node.tokens:>5}t  {score}  {begins}" + (f"  [{why}]" if why else "")

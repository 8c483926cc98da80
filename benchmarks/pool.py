"""Splitting of many real skills: what is lost, refused or cut inside a code fence.

`python benchmarks/pool.py POOL` reads a file of skills, one JSON object a line with `id` and `skill_md` (also
compressed, `.xz`), and writes `pool.csv`. Fences are found line by line, without the splitter's parser. Pages
are of random halves and tenths of the nodes, because a page must hold for any choice of them; they do not
depend on a model. What fails is named on stderr.
"""

import csv
import json
import lzma
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random

import numpy as np

from skillpager.errors import SkillPagerError
from skillpager.pages.render import PageRenderer
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import skill_from_text
from skillpager.types import Fragment, Heading, Node, NodeType, Recipe, Skill, SkillIndex, Tile

TARGET = Path(__file__).with_name("pool.csv")
SHARES = (0.5, 0.1)  # of the nodes on a page
# a closing fence is at most so much deeper than its opening one (CommonMark)
MAX_INDENT = 3

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")
# at any depth of quotes and lists; a bracket or star behind it ends a code span
_FENCE = re.compile(
    r"(?P<indent>(?:[ \t]|>|(?:[-*+]|\d{1,9}[.)])(?=[ \t]))*)"
    r"(?P<run>`{3,}|~{3,})(?P<info>(?![ \t]*[)\]）】」』*]).*)"
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A code fence: its range of characters, and whether it is closed."""

    start: int
    end: int
    closed: bool


class Letters:
    """A token counter that is fast: four characters are a token."""

    id = "letters"
    exact = False

    def count(self, text: str) -> int:
        """Return about how many tokens a text has."""
        return len(text) // 4 + 1


def main(pool: Path) -> None:
    """Split every skill and write the counts."""
    counts: Counter[str] = Counter()
    for name, text in read_pool(pool):
        counts["skills"] += 1
        try:
            skill = skill_from_text(text)
            tiles = split_skill(skill)
            found = examine(skill, tiles, name)
        except SkillPagerError as error:
            found = Counter({"refused": 1})
            print(f"{name}: {error}", file=sys.stderr)
        except Exception as error:  # a defect, counted by kind
            found = Counter({f"crashed: {type(error).__name__}": 1})
            print(f"{name}: {error!r}", file=sys.stderr)
        for measure, number in found.items():
            if number and measure.startswith(("skills with", "tiling")):
                print(f"{name}: {measure}", file=sys.stderr)
        counts += found
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("measure", "value"))
        measures = [*MEASURES, *sorted({*counts} - {*MEASURES})]
        writer.writerows((measure, counts[measure]) for measure in measures)


MEASURES = (
    "skills",
    "refused",
    "tiling failures",
    "nodes",
    "fences",
    "fences that the source leaves open",
    "fences cut",
    "skills with fences cut",
    "pages",
    "pages with an open fence",
    "pages with a mark inside a fence",
    "skills with such pages",
)


def read_pool(pool: Path) -> Iterator[tuple[str, str]]:
    """Yield id and text of each skill."""
    opened = lzma.open if pool.suffix == ".xz" else open
    with opened(pool, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            yield record["id"], record["skill_md"]


def examine(skill: Skill, tiles: Sequence[Tile], name: str) -> Counter[str]:
    """Return the counts of one skill."""
    (file,) = skill.files
    nodes = [tile for tile in tiles if isinstance(tile, Fragment)]
    fences = find_fences(file.text[file.body_start :])
    starts = [node.span.start - file.body_start for node in nodes]
    ends = [node.span.end - file.body_start for node in nodes]
    holders = [bisect_right(starts, fence.start) - 1 for fence in fences]
    cut = sum(
        fence.closed and (holder < 0 or ends[holder] < fence.end)
        for fence, holder in zip(fences, holders, strict=True)
    )
    counts = Counter(nodes=len(nodes), fences=len(fences))
    counts["tiling failures"] = "".join(tile.text for tile in tiles) != file.text
    left_open = counts["fences that the source leaves open"] = sum(not fence.closed for fence in fences)
    counts["fences cut"], counts["skills with fences cut"] = cut, bool(cut)
    index = index_of(skill, tiles)
    renderer = PageRenderer(index, Letters())
    lines = {line.strip() for line in file.text.splitlines()}
    random = Random(name)
    for share in SHARES:
        chosen = random.sample(range(len(nodes)), max(1, round(share * len(nodes)))) if nodes else []
        page = renderer.render(chosen).text
        inside = find_fences(page)
        counts["pages"] += 1
        is_open = not left_open and any(not fence.closed for fence in inside)
        marked = any(
            line.startswith("[…") and line.strip() not in lines
            for fence in inside
            if fence.closed or not left_open
            for line in page[fence.start : fence.end].splitlines()
        )
        counts["pages with an open fence"] += is_open
        counts["pages with a mark inside a fence"] += marked
        counts["skills with such pages"] |= is_open or marked
    return counts


def find_fences(text: str) -> list[Fence]:
    """Return the code fences of a text, read line by line; a range ends before blanks at its end."""
    found: list[Fence] = []
    opened: re.Match[str] | None = None
    for line in _LINE.finditer(text):
        fence = _FENCE.match(line[0].rstrip("\r\n"))
        if not fence:
            continue
        start = line.start() + len(fence["indent"])
        if opened is None:
            if fence["run"][0] == "~" or "`" not in fence["info"]:
                opened, begin = fence, start
        elif (
            fence["run"].startswith(opened["run"])
            and not fence["info"].strip()
            and not fence["indent"].strip(" \t>")  # behind a list marker it is a line of the code
            and _width(fence["indent"]) <= _width(opened["indent"]) + MAX_INDENT
        ):
            found.append(Fence(begin, start + len(fence["run"]), True))
            opened = None
    if opened:
        found.append(Fence(begin, len(text.rstrip()), False))
    return found


def _width(indent: str) -> int:
    return len(indent.expandtabs(4))


def index_of(skill: Skill, tiles: Sequence[Tile]) -> SkillIndex:
    """Return an index that has all that pages need, without models: every node is a step."""
    nodes = tuple(
        Node(
            **{field.name: getattr(tile, field.name) for field in fields(Fragment)},
            id=f"n{tile.ordinal}",
            type=NodeType.STEP,
            type_confidence=1.0,
            tokens=Letters().count(tile.text),
        )
        for tile in tiles
        if isinstance(tile, Fragment)
    )
    return SkillIndex(
        skill=skill,
        nodes=nodes,
        headings=tuple(tile for tile in tiles if isinstance(tile, Heading)),
        edges=(),
        embeddings=np.zeros((len(nodes), 1), dtype=np.float32),
        recipe=Recipe("", "", "", "", "", 0),
        key="",
        full_tokens=0,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Node size and quality, by the size up to which list items are grouped."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from options import Options
from results import Cell, Report, Table
from scoring import BRIEF, Exam
from skillpager.bench.run.methods import ALL_NODES, Method
from skillpager.parsing import merge_rules as merging
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import read_skill
from skillpager.types import Fragment
from timing import median, percentile

GROUP_CHARACTERS = (0, 80, 180, 400)
AROUND_4_KB = (3_000, 5_000)
PAPER_NODES = 38
MMR = Method(strategy="mmr", mmr_lambda=0.7)
LIMITED = Method(strategy="mmr", mmr_lambda=0.9, max_nodes=ALL_NODES, share=0.4)
PAGES = {
    "plain": ("plain", MMR),
    "marked": ("marked", MMR),
    "marked, λ = 0.9, max_tokens = 40 %": ("marked", LIMITED),
}


def measure(options: Options) -> Report:
    """Return the report on granularity."""
    documents = options.documents()
    rows: list[list[Cell]] = []
    for limit in GROUP_CHARACTERS:
        with _grouping(limit):
            chosen = " (chosen)" if limit == _CHOSEN else ""
            rows.append([f"{limit}{chosen}", *_sizes(documents), *_quality(options)])
    columns = ["items grouped up to (characters)", "nodes per skill, median", "p90", "max"]
    columns += ["characters per node, median", "p90", "nodes of a 3–5 kB skill, median"]
    if options.data:
        columns += PAGES
    table = Table("Nodes and quality by `MAX_LIST_GROUP_CHARS`", columns, rows)
    note = (
        f"{len(documents)} {options.corpus()}. The paper has a median of about {PAPER_NODES} nodes for 4 kB."
    )
    if options.data:
        note += (
            f" Quality on `{options.data[-1].name}`, MMR with λ = 0.7, k = 20/60 or the limit named: {BRIEF}."
        )
    return Report("Granularity", [table], note=note)


_CHOSEN = merging.MAX_LIST_GROUP_CHARS


@contextmanager
def _grouping(characters: int) -> Iterator[None]:
    """Split with another limit for a while."""
    merging.MAX_LIST_GROUP_CHARS = characters
    try:
        yield
    finally:
        merging.MAX_LIST_GROUP_CHARS = _CHOSEN


def _sizes(documents: Sequence[Path]) -> list[Cell]:
    counts, lengths, near = list[int](), list[int](), list[int]()
    for path in documents:
        skill = read_skill(path, scope="body")
        nodes = [tile for tile in split_skill(skill) if isinstance(tile, Fragment)]
        counts.append(len(nodes))
        lengths += [len(node.text) for node in nodes]
        body = len(skill.files[0].text[skill.files[0].body_start :].encode())
        if AROUND_4_KB[0] <= body <= AROUND_4_KB[1]:
            near.append(len(nodes))
    sizes: list[Cell] = [median(counts), percentile(counts, 0.9), max(counts)]
    return [
        *sizes,
        median(lengths),
        percentile(lengths, 0.9),
        f"{median(near):g} ({len(near)} skills)" if near else "–",
    ]


def _quality(options: Options) -> list[Cell]:
    if not options.data:
        return []
    # another store for each limit: it is no part of the cache key
    exam = Exam(options.data[-1], quick=options.quick)
    scores = [exam.score(method, style) for style, method in PAGES.values()]
    exam.close()
    return [score.brief for score in scores]

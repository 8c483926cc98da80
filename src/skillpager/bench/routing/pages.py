"""Pages from the skills of a library, measured: how much of a query's evidence they hold."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skillpager.bench.data.evidence import read_documents
from skillpager.bench.data.records import Record, append_records, read_records
from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.bench.routing.data import pool_records
from skillpager.errors import BenchError, SkillPagerError
from skillpager.library import Library
from skillpager.parsing.skill import ENTRY_FILE

ROWS = "pages.jsonl"
# ceilings on the tokens of a page; None for none
CEILINGS = (1200, 2400, None)
# skills in a folder of the pool, so that none has too many entries
SKILLS_A_FOLDER = 1_000
TITLES = {
    "ask": "`library.page`",
    "page-1": "top 1, its page",
    "page-3": "top 3, their pages",
    "whole-1": "top 1, whole",
    "whole-3": "top 3, whole",
    "right-page": "the right skill, its page",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A query for one skill.

    Attributes:
        id: Its id.
        kind: Its kind, by which tables group queries.
        text: The query.
        path: Folder of the skill.
        lines: The lines of the skill.
        evidence: First and last line of each stretch that the query cannot do without.
    """

    id: str
    kind: str
    text: str
    path: Path
    lines: Sequence[str]
    evidence: Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Held:
    """How much a page holds of what its query needs.

    Attributes:
        max_tokens: Ceiling on its tokens; None for none.
        tokens: Its tokens.
        sufficient: Whether it holds the evidence.
        coverage: Share of the evidence that it holds.
        skills: Skills of which it shows anything.
        right: Those of them that the query needs.
    """

    max_tokens: int | None
    tokens: int
    sufficient: bool
    coverage: float
    skills: int
    right: int


@dataclass(frozen=True, slots=True)
class PageRow(Record):
    """The pages of a method for a query, one for each ceiling.

    Attributes:
        query: Id of the query.
        kind: Its kind.
        method: The method.
        library: Skills of the library.
        held: How much the pages hold.
    """

    query: str
    kind: str
    method: str
    library: int
    held: tuple[Held, ...]


def write_documents(folders: Iterable[Path], target: Path) -> list[Asked]:
    """Write evidence data, without near copies, as skills of a library, and return their queries.

    Raises:
        BenchError: As `read_documents`.
    """
    asked = []
    documents = ((folder.name, document) for folder in folders for document in read_documents(folder))
    for data, document in documents:
        if document.provenance.near_copy_of:
            continue
        path = target / data / document.annotation.skill  # two folders may have one of the same name
        path.mkdir(parents=True)
        (path / ENTRY_FILE).write_bytes(document.text.encode())
        short = document.short.queries if document.short else ()
        asked += [
            Asked(
                f"{data}/{query.id}",
                f"{data}, {kind}",
                query.query.strip(),
                path,
                document.text.split("\n"),
                query.critical,
            )
            for kind, queries in (("long", document.annotation.queries), ("short", short))
            for query in queries
        ]
    return asked


def write_pool(pool: Path, target: Path) -> Path:
    """Return a folder with the skills of a pool: its own, or `target`, to which its JSON lines are written.

    Raises:
        BenchError: The file is damaged.
    """
    if pool.is_dir():
        return pool
    for number, (id_, text) in enumerate(pool_records(pool)):
        path = target / f"{number // SKILLS_A_FOLDER}" / f"{number}" / id_.rpartition("/")[2]
        path.mkdir(parents=True)
        (path / ENTRY_FILE).write_text(text, encoding="utf-8", newline="")
    return target


def make_text(library: Library, query: Asked, method: str, limit: int | None) -> tuple[str, int, list[Path]]:
    """Return the text of a method, its tokens, and the folders of the skills that it shows.

    The pages of several skills have equal ceilings; a skill that cannot be read has none.
    """
    if method == "ask":
        made = library.page(query.text, max_tokens=limit)
        return made.text, made.tokens, [part.skill.path for part in made.parts]
    kind, _, number = method.partition("-")
    paths = [query.path]
    if kind != "right":
        paths = [each.skill.path for each in library.route(query.text, k=int(number), for_model=True).skills]
    pager, pages = library.pager, []
    each = None if limit is None else limit // max(1, len(paths))
    for path in paths:
        try:
            whole = kind == "whole"
            pages.append(
                pager.whole(path, max_tokens=each) if whole else pager.page(path, query.text, max_tokens=each)
            )
        except SkillPagerError:
            continue
    return "\n".join(page.text for page in pages), sum(page.tokens for page in pages), paths


def measure_pages(
    library: Library,
    queries: Sequence[Asked],
    folder: Path,
    progress: Callable[[int, int], None],
    methods: Sequence[str] = tuple(TITLES),
) -> list[PageRow]:
    """Return the rows, after adding those to `<folder>/pages.jsonl` that are missing.

    Args:
        library: The library.
        queries: The queries.
        folder: Folder of the rows.
        progress: Called with the number of queries that are done, and of all.
        methods: The methods.

    Raises:
        BenchError: A method is unknown, or a row is damaged or of a library of another size.
    """
    if unknown := set(methods) - TITLES.keys():
        raise BenchError(f"Unknown method {sorted(unknown)[0]!r}: choose from {', '.join(TITLES)}.")
    path, size = folder / ROWS, len(library.skills())
    rows = list(read_records(path, PageRow))
    if any(row.library != size for row in rows):
        raise BenchError(f"{path} has rows of another library: choose another --out, or delete it.")
    done = {(row.query, row.method) for row in rows}
    for number, query in enumerate(queries):
        progress(number, len(queries))
        made = [
            _measure(library, query, method, size) for method in methods if (query.id, method) not in done
        ]
        append_records(path, made)
        rows += made
    return rows


def _measure(library: Library, query: Asked, method: str, size: int) -> PageRow:
    held = []
    for limit in CEILINGS:
        text, tokens, paths = make_text(library, query, method, limit)
        coverage, is_enough = evidence_coverage(text, query.lines, query.evidence)
        right = int(query.path in paths)
        held.append(Held(limit, tokens, is_enough, round(coverage, 4), len(paths), right))
    return PageRow(query.id, query.kind, method, size, tuple(held))


def summarize_pages(rows: Iterable[PageRow], limit: int | None) -> Mapping[str, float | Interval]:
    """Return how much the pages of one method under one ceiling hold, over queries.

    `sufficient` is the share of the pages that suffice, `found` that of the queries whose skill is on the
    page, `right` that of the skills on the pages that are needed, `none` that of the pages without a skill.
    """
    held = [each for row in rows for each in row.held if each.max_tokens == limit]
    return {
        "queries": len(held),
        "sufficient": bootstrap([each.sufficient for each in held]),
        "found": bootstrap([each.right for each in held]),
        "coverage": float(np.mean([each.coverage for each in held])),
        "tokens": float(np.mean([each.tokens for each in held])),
        "right": sum(each.right for each in held) / max(1, sum(each.skills for each in held)),
        "none": float(np.mean([each.skills == 0 for each in held])),
        "skills": float(np.mean([each.skills for each in held])),
    }

"""Pages from several skills: what they hold of the evidence of queries that need one, two or three skills.

`python benchmarks/several.py FOLDER…` reads folders of annotated documents, as for `several.csv` those of the
training data. They become libraries of `LIBRARY_SKILLS` skills, drawn at random; near copies are left out. A
query of two or three tasks is composed of the queries of so many skills of a library. A page suffices if it
holds the evidence of each. `choice` rows compare the skills that are chosen with those that were asked for:
for some values of `WHOLE_SHARE`, `SKILL_COST` and `LEAST_CHANCE` (`library/several/choosing.py`), with the
skills verified; for the shipped values without that; and the top of the ranking alone. `page` rows compare
pages under the same ceilings on tokens. Nothing here is measured on documents that reports use, so the
thresholds may be chosen by it. The models have learned from the same documents: the numbers compare methods
with each other, they are none of unseen skills. The router never says here that no skill fits, since each
query has its skills; how often none covers its tasks is in the column `none`.
"""

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean

from skillpager import SkillPager
from skillpager.bench.data.evidence import read_documents
from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.library import Library, Route, choosing
from skillpager.library.several.assemble import TASK_ROUTED
from skillpager.pages import gaps

TARGET = Path(__file__).with_name("several.csv")
SEED = 20
# as many as people have; the queries were asked of one skill, and few of them name what it is about
LIBRARY_SKILLS = 25
QUERIES = {1: 40, 2: 48, 3: 24}  # by number of tasks
# what stands before each task
JOINTS = (
    ("", "", ""),
    ("", "Also, ", "And "),
    ("First: ", "Then: ", "Finally: "),
    ("", "After that: ", "Last: "),
)
CEILINGS = (1200, 2400, None)
SHARES = (0.2, 0.5)
COSTS = (1.0, 2.0, 3.0)
CHANCES = (0.1, 0.2)
COLUMNS = ("rows", "tasks", "queries", "method", "max_tokens", "sufficient", "coverage", "tokens", "skills")
COLUMNS += ("found", "right", "none")


@dataclass(frozen=True)
class Asked:
    """A query for one skill: its text, the skill's folder and lines, and the ranges of its evidence."""

    text: str
    path: Path
    lines: Sequence[str]
    evidence: Sequence[tuple[int, int]]


class Certain(Library):
    """A library whose routes say that a skill fits, whatever the chance; `only` these skills if it is set."""

    only: frozenset[Path] = frozenset()

    def route(
        self, query: str, *, k: int = TASK_ROUTED, progress: Callable[[int, int], None] | None = None
    ) -> Route:
        """Return the route, with a threshold of 0."""
        found = super().route(query, k=TASK_ROUTED if self.only else k, progress=progress)
        skills = [each for each in found.skills if not self.only or each.skill.path in self.only]
        return replace(found, skills=tuple(skills), threshold=0.0)


@dataclass(frozen=True)
class Composed:
    """A query of one or several tasks, for the skills of a library."""

    text: str
    tasks: Sequence[Asked]
    library: Certain


@dataclass(frozen=True)
class Made:
    """What a method gives: the text, its tokens, and the folders of the skills in it."""

    text: str
    tokens: int
    paths: Sequence[Path]


def main(folders: Sequence[Path]) -> None:
    """Measure, and write the rows."""
    with tempfile.TemporaryDirectory() as scratch:
        libraries = write_libraries(folders, Path(scratch) / "libraries")
        pager = SkillPager(store=Path(scratch) / "cache")
        queries = list(compose([library_of(path, asked, pager) for path, asked in libraries.items()]))
        rows = [*choice_rows(queries), *page_rows(queries)]
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


def write_libraries(folders: Sequence[Path], target: Path) -> dict[Path, list[Asked]]:
    """Write every document as a skill of a library below `target`; return the queries of each library."""
    documents = [document for folder in folders for document in read_documents(folder)]
    documents = [document for document in documents if not document.provenance.near_copy_of]
    Random(SEED).shuffle(documents)
    libraries: dict[Path, list[Asked]] = {}
    for number, document in enumerate(documents):
        library = target / f"{number // LIBRARY_SKILLS}"
        path = library / document.annotation.skill
        path.mkdir(parents=True)
        (path / "SKILL.md").write_bytes(document.text.encode())
        lines = document.text.split("\n")
        libraries.setdefault(library, []).extend(
            Asked(query.query.strip(), path, lines, [(first, last) for first, last in query.critical])
            for query in document.annotation.queries
        )
    return libraries


def library_of(path: Path, asked: Sequence[Asked], pager: SkillPager) -> tuple[Certain, list[Asked]]:
    """Return the library in a folder, and the queries of the skills that it offers."""
    library = Certain(pager, [path])
    library.prepare()
    offered = {skill.path for skill in library.skills()}
    return library, [each for each in asked if each.path in offered]


def compose(libraries: Sequence[tuple[Certain, Sequence[Asked]]]) -> Iterator[Composed]:
    """Yield the queries, those of one task first, from each library in turn."""
    random = Random(SEED)
    for tasks, count in QUERIES.items():
        for number in range(count):
            library, asked = libraries[number % len(libraries)]
            drawn = random.sample(asked, tasks)
            while len({each.path for each in drawn}) < tasks:
                drawn = random.sample(asked, tasks)
            joints = random.choice(JOINTS) if tasks > 1 else ("",)
            pairs = zip(joints, drawn, strict=False)
            yield Composed(" ".join(f"{joint}{each.text}" for joint, each in pairs), drawn, library)


def choice_rows(queries: Sequence[Composed]) -> Iterator[dict[str, object]]:
    """Yield rows for each choice of thresholds, and for no verifying: which skills are chosen."""

    def paths_of(query: Composed) -> Made:
        return Made("", 0, [part.skill.path for part in query.library.page(query.text).parts])

    shipped = choosing.WHOLE_SHARE, choosing.SKILL_COST, choosing.LEAST_CHANCE
    for values in product(SHARES, COSTS, CHANCES):
        choosing.WHOLE_SHARE, choosing.SKILL_COST, choosing.LEAST_CHANCE = values
        method = "{:g} of the query's odds, a skill costs {:g}, chance {:g}".format(*values)
        print(method, file=sys.stderr)
        yield from summed("choice", queries, method, None, [paths_of(query) for query in queries])
    choosing.WHOLE_SHARE, choosing.SKILL_COST, choosing.LEAST_CHANCE = shipped
    with unverified():
        made = [paths_of(query) for query in queries]
    yield from summed("choice", queries, "as shipped, not verified", None, made)
    for most in (1, 2, 3):
        made = [Made("", 0, top(query, most)) for query in queries]
        yield from summed("choice", queries, f"top {most}", None, made)


@contextmanager
def unverified() -> Iterator[None]:
    """Have every skill cover every query."""
    shipped, gaps.LEAST_COVERED = gaps.LEAST_COVERED, 0.0
    yield
    gaps.LEAST_COVERED = shipped


def top(query: Composed, most: int) -> list[Path]:
    """Return the folders of the best skills for a query."""
    return [each.skill.path for each in query.library.route(query.text, k=most).skills]


def page_rows(queries: Sequence[Composed]) -> Iterator[dict[str, object]]:
    """Yield a row for each method and ceiling: what its pages hold."""
    for limit in CEILINGS:
        for name, make in methods().items():
            print(f"{name}, {limit}", file=sys.stderr)
            yield from summed("page", queries, name, limit, [make(query, limit) for query in queries])


def methods() -> Mapping[str, Callable[[Composed, int | None], Made]]:
    """Return the methods: a page from several skills, and what one can do with a ranking alone."""

    def ask(query: Composed, limit: int | None) -> Made:
        page = query.library.page(query.text, max_tokens=limit)
        return Made(page.text, page.tokens, [part.skill.path for part in page.parts])

    def ask_right(query: Composed, limit: int | None) -> Made:
        # all of the right skills are chosen, whatever their chances
        shipped = choosing.SKILL_COST, choosing.LEAST_CHANCE
        choosing.SKILL_COST, choosing.LEAST_CHANCE = -1.0, 0.0
        query.library.only = frozenset(each.path for each in query.tasks)
        with unverified():
            made = ask(query, limit)
        query.library.only = frozenset()
        choosing.SKILL_COST, choosing.LEAST_CHANCE = shipped
        return made

    def split(query: Composed, paths: Sequence[Path], limit: int | None, *, whole: bool = False) -> Made:
        pager = query.library.pager
        each = None if limit is None else limit // max(1, len(paths))
        pages = [
            pager.whole(path, max_tokens=each) if whole else pager.page(path, query.text, max_tokens=each)
            for path in paths
        ]
        return Made("\n".join(page.text for page in pages), sum(page.tokens for page in pages), paths)

    made: dict[str, Callable[[Composed, int | None], Made]] = {"ask": ask}
    for most in (1, 2, 3):
        made[f"top {most}, pages"] = lambda query, limit, most=most: split(query, top(query, most), limit)
    made["top 1, document"] = lambda query, limit: split(query, top(query, 1), limit, whole=True)
    made["top 2, documents"] = lambda query, limit: split(query, top(query, 2), limit, whole=True)
    made["right skills, ask"] = ask_right
    made["right skills, pages"] = lambda query, limit: split(
        query, [each.path for each in query.tasks], limit
    )
    return made


def summed(
    kind: str, queries: Sequence[Composed], method: str, limit: int | None, made: Sequence[Made]
) -> Iterator[dict[str, object]]:
    """Yield a row for each number of tasks."""
    for tasks in QUERIES:
        pairs = [pair for pair in zip(queries, made, strict=True) if len(pair[0].tasks) == tasks]
        found = [len({each.path for each in query.tasks} & {*own.paths}) for query, own in pairs]
        shown = sum(len(own.paths) for _, own in pairs)
        row: dict[str, object] = {
            "rows": kind,
            "tasks": tasks,
            "queries": len(pairs),
            "method": method,
            "skills": f"{shown / len(pairs):.2f}",
            "found": f"{sum(found) / tasks / len(pairs):.3f}",
            "right": f"{sum(found) / max(1, shown):.3f}",
            "none": f"{fmean(not own.paths for _, own in pairs):.3f}",
        }
        if kind == "page":
            held = [
                [evidence_coverage(own.text, each.lines, each.evidence) for each in query.tasks]
                for query, own in pairs
            ]
            row |= {
                "max_tokens": "" if limit is None else limit,
                "sufficient": f"{fmean(all(is_enough for _, is_enough in each) for each in held):.3f}",
                "coverage": f"{fmean(share for each in held for share, _ in each):.3f}",
                "tokens": f"{fmean(own.tokens for _, own in pairs):.0f}",
            }
        yield row


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])

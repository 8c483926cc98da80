"""Which skills a page from several is made of: `python benchmarks/several.py FOLDER…`, to choose thresholds.

The folders are of annotated documents, as for `several.csv` those of the training data. They become libraries
of `LIBRARY_SKILLS` skills, drawn at random; near copies are left out. A query of two or three tasks is
composed of the queries of so many skills of a library. Rows compare the skills that are chosen with those
that were asked for: for some values of `WHOLE_SHARE`, `SKILL_COST` and `LEAST_CHANCE`
(`library/several/choosing.py`), with the skills verified; for the shipped values without that; and the top of
the ranking alone. `skillpager bench ask` measures the pages themselves.

Nothing here is measured on documents that reports use. The models have learned from the same documents: the
numbers compare methods with each other, they are none of unseen skills. The router never says here that no
skill fits, since each query has its skills; how often none covers its tasks is in the column `none`.
"""

import csv
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean

from skillpager import SkillPager
from skillpager.bench.routing.asked import SEED, Asked, Composed, compose, read_originals, write_documents
from skillpager.library import Library, Route
from skillpager.library.several import choosing
from skillpager.library.several.assemble import TASK_ROUTED
from skillpager.pages import gaps

TARGET = Path(__file__).with_name("several.csv")
# as many as people have; the queries were asked of one skill, and few of them name what it is about
LIBRARY_SKILLS = 25
QUERIES = {1: 40, 2: 48, 3: 24}  # by number of tasks
SHARES = (0.2, 0.5)
COSTS = (1.0, 2.0, 3.0)
CHANCES = (0.1, 0.2)
COLUMNS = ("tasks", "queries", "method", "skills", "found", "right", "none")

# a query, and the library that it is asked
Case = tuple[Composed, Library]


class Certain(Library):
    """A library whose routes say that a skill fits, whatever the chance."""

    def route(
        self,
        query: str,
        *,
        k: int = TASK_ROUTED,
        for_model: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Route:
        """Return the route, with a threshold of 0."""
        return replace(super().route(query, k=k, for_model=for_model, progress=progress), threshold=0.0)


def main(folders: Sequence[Path]) -> None:
    """Measure, and write the rows."""
    with tempfile.TemporaryDirectory() as scratch:
        pager = SkillPager(store=Path(scratch) / "cache")
        rows = list(choice_rows(list(compose_cases(make_libraries(folders, Path(scratch), pager)))))
    with TARGET.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def make_libraries(
    folders: Sequence[Path], target: Path, pager: SkillPager
) -> list[tuple[Library, list[Asked]]]:
    """Return libraries of all documents, and the long queries of the skills that each offers."""
    documents = list(read_originals(folders))
    Random(SEED).shuffle(documents)
    libraries: list[tuple[Library, list[Asked]]] = []
    for start in range(0, len(documents), LIBRARY_SKILLS):
        path = target / f"library-{start}"
        asked = write_documents(documents[start : start + LIBRARY_SKILLS], path)
        library = Certain(pager, [path])
        library.prepare()
        offered = {skill.path for skill in library.skills()}
        own = [each for each in asked if each.path in offered and each.kind.endswith(", long")]
        libraries.append((library, own))
    return libraries


def compose_cases(libraries: Sequence[tuple[Library, Sequence[Asked]]]) -> Iterator[Case]:
    """Yield the queries, those of one task first, from each library in turn."""
    random = Random(SEED)
    for tasks, count in QUERIES.items():
        for number in range(count):
            library, asked = libraries[number % len(libraries)]
            yield compose(asked, tasks, random), library


def choice_rows(cases: Sequence[Case]) -> Iterator[dict[str, object]]:
    """Yield rows for each choice of thresholds, for no verifying, and for the ranking alone."""

    def chosen() -> list[list[Path]]:
        return [[part.skill.path for part in library.page(query.text).parts] for query, library in cases]

    shipped = choosing.WHOLE_SHARE, choosing.SKILL_COST, choosing.LEAST_CHANCE
    for values in product(SHARES, COSTS, CHANCES):
        choosing.WHOLE_SHARE, choosing.SKILL_COST, choosing.LEAST_CHANCE = values
        method = "{:g} of the query's odds, a skill costs {:g}, chance {:g}".format(*values)
        print(method, file=sys.stderr)
        yield from summed(cases, method, chosen())
    choosing.WHOLE_SHARE, choosing.SKILL_COST, choosing.LEAST_CHANCE = shipped
    with unverified():
        yield from summed(cases, "as shipped, not verified", chosen())
    for most in (1, 2, 3):
        top = [
            [each.skill.path for each in library.route(query.text, k=most).skills] for query, library in cases
        ]
        yield from summed(cases, f"top {most}", top)


@contextmanager
def unverified() -> Iterator[None]:
    """Have every skill cover every query."""
    shipped, gaps.LEAST_COVERED = gaps.LEAST_COVERED, 0.0
    yield
    gaps.LEAST_COVERED = shipped


def summed(
    cases: Sequence[Case], method: str, chosen: Sequence[Sequence[Path]]
) -> Iterator[dict[str, object]]:
    """Yield a row for each number of tasks."""
    for tasks in QUERIES:
        pairs = [
            (query, own) for (query, _), own in zip(cases, chosen, strict=True) if len(query.tasks) == tasks
        ]
        found = sum(len(query.paths & {*own}) for query, own in pairs)
        shown = sum(len(own) for _, own in pairs)
        yield {
            "tasks": tasks,
            "queries": len(pairs),
            "method": method,
            "skills": f"{shown / len(pairs):.2f}",
            "found": f"{found / tasks / len(pairs):.3f}",
            "right": f"{found / max(1, shown):.3f}",
            "none": f"{fmean(not own for _, own in pairs):.3f}",
        }


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])

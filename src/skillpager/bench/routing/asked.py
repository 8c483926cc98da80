"""Queries whose evidence is known, of one skill or composed of those of several, and their skills."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from skillpager.bench.data.evidence import Document, read_documents
from skillpager.bench.judge.evidence_measure import evidence_coverage
from skillpager.bench.routing.data import pool_records
from skillpager.parsing.skill import ENTRY_FILE

SEED = 20
# what stands before each task of a composed query
JOINTS = (
    ("", "", ""),
    ("", "Also, ", "And "),
    ("First: ", "Then: ", "Finally: "),
    ("", "After that: ", "Last: "),
)
KINDS = {2: "two tasks", 3: "three tasks"}
# skills in a folder of the pool, so that none has too many entries
SKILLS_A_FOLDER = 1_000


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
class Composed:
    """A query of one or several tasks; `tasks` are the queries that it is composed of."""

    id: str
    kind: str
    text: str
    tasks: Sequence[Asked]

    @property
    def paths(self) -> set[Path]:
        """The folders of the skills that it needs."""
        return {task.path for task in self.tasks}

    def held_by(self, text: str) -> tuple[float, bool]:
        """Return the mean share of the tasks' evidence in a text, and whether it suffices for each."""
        held = [evidence_coverage(text, task.lines, task.evidence) for task in self.tasks]
        return sum(share for share, _ in held) / len(held), all(enough for _, enough in held)


def read_originals(folders: Iterable[Path]) -> Iterator[tuple[str, Document]]:
    """Yield the name of the folder and the document of all evidence data, without near copies.

    Raises:
        BenchError: As `read_documents`.
    """
    for folder in folders:
        for document in read_documents(folder):
            if not document.provenance.near_copy_of:
                yield folder.name, document


def write_documents(documents: Iterable[tuple[str, Document]], target: Path) -> list[Asked]:
    """Write documents as skills of a library, and return their queries."""
    asked = []
    for data, document in documents:
        name = document.annotation.skill
        path = target / data / name  # two folders may have one of the same name
        path.mkdir(parents=True)
        (path / ENTRY_FILE).write_bytes(document.text.encode())
        lines = document.text.split("\n")
        short = document.short.queries if document.short else ()
        for kind, queries in (("long", document.annotation.queries), ("short", short)):
            asked += [
                Asked(
                    f"{data}/{query.id}", f"{data}, {kind}", query.query.strip(), path, lines, query.critical
                )
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


def compose(asked: Sequence[Asked], tasks: int, random: Random) -> Composed:
    """Return a query that is composed of the queries of so many skills.

    Args:
        asked: Queries of at least as many skills.
        tasks: Number of skills.
        random: Draws queries and joints.
    """
    drawn = random.sample(asked, tasks)
    while len({each.path for each in drawn}) < tasks:
        drawn = random.sample(asked, tasks)
    joints = random.choice(JOINTS) if tasks > 1 else ("",)
    text = " ".join(f"{joint}{each.text}" for joint, each in zip(joints, drawn, strict=False))
    kind = KINDS[tasks] if tasks > 1 else drawn[0].kind
    return Composed("+".join(each.id for each in drawn), kind, text, drawn)


def compose_all(asked: Sequence[Asked], count: int) -> list[Composed]:
    """Return each query by itself, then `count` composed of the long ones of two, and of three skills."""
    queries = [Composed(each.id, each.kind, each.text, [each]) for each in asked]
    long = [each for each in asked if each.kind.endswith(", long")]
    random = Random(SEED)  # noqa: S311 - a sample
    for tasks in KINDS:
        if len({each.path for each in long}) >= tasks:
            queries += [compose(long, tasks, random) for _ in range(count)]
    return list({query.id: query for query in queries}.values())

"""SkillRouter-Eval-Core: draws 395 skills as in the paper, and reads the tasks written by people.

    tasks.jsonl   relevance.json   easy/part-*.jsonl.gz

A line of a part is a skill. Ids of ground-truth skills begin with `gt/`, those of the pool with their
namespace, such as `devops/`.

Reference: paper §4.1. It says neither how the 200 are divided among the namespaces nor how they are drawn, so
both rules are ours: `allocate`, and the smallest SHA-256 of seed and id.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillpager.bench.data.records import Record, SkillRecord, read_json, read_records
from skillpager.errors import BenchError
from skillpager.files import ENTRY_FILE
from skillpager.json_types import JsonObject

DATASET = "pipizhao/SkillRouter-Eval-Core"
PARTITION = "easy"
TASKS, RELEVANCE = "tasks.jsonl", "relevance.json"
GROUND_TRUTH, POOL = "gt", "pool"
# tasks that need none but general skills, such as `pdf`; SkillRouter does not score them
GENERIC = "generic_only"

# paper §4.1
NAMESPACES = ("other", "development", "data", "design", "devops", "testing", "documents")
POOL_SKILLS = 200
SEED = 42


@dataclass(frozen=True, slots=True)
class RouterSkill(Record):
    """A line of a part."""

    skill_id: str
    name: str | None = None
    description: str | None = None
    body: str | None = None
    source: object = None

    @classmethod
    def from_json(cls, line: bytes | str) -> "RouterSkill":
        """Return the record of a line; question marks replace lone surrogates, which scraped text has."""
        if isinstance(line, bytes) and b"\\ud" in line:
            line = json.dumps(json.loads(line), ensure_ascii=False).encode(errors="replace")
        return super(RouterSkill, cls).from_json(line)

    @property
    def prefix(self) -> str:
        """The part before the first slash of the id: `gt`, or a namespace; empty without a slash."""
        return self.skill_id.rpartition("/")[0].partition("/")[0]


@dataclass(frozen=True, slots=True)
class Task(Record):
    """A line of `tasks.jsonl`."""

    task_id: str
    instruction_text: str
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Relevance:
    """The entry of a task in `relevance.json`."""

    gt_skill_ids: tuple[str, ...] = ()  # all skills that solve it
    task_type: str = ""  # `clean`, `mixed` or `generic_only`


def draw_skills(folder: Path, *, pool_skills: int = POOL_SKILLS) -> tuple[list[SkillRecord], JsonObject]:
    """Return all ground-truth skills with a body and a sample of the pool; and how they were drawn.

    The ground truth comes first; each of the two is sorted by id. The second value is for the manifest.
    """
    ids: dict[str, set[str]] = {name: set() for name in (GROUND_TRUTH, *NAMESPACES)}
    for record in _read_parts(folder):
        if record.prefix in ids:
            ids[record.prefix].add(record.skill_id)

    def rank(skill_id: str) -> bytes:
        return hashlib.sha256(f"{SEED}\n{skill_id}".encode()).digest()

    sizes = {name: len(ids[name]) for name in NAMESPACES}
    shares = allocate(pool_skills, sizes)
    chosen = ids[GROUND_TRUTH].union(*(sorted(ids[name], key=rank)[: shares[name]] for name in NAMESPACES))
    drawn = [_skill(record) for record in _read_parts(folder) if record.skill_id in chosen]
    details: JsonObject = {"dataset": DATASET, "partition": PARTITION, "seed": SEED}
    details |= {"namespaces": sizes, "allocation": shares}
    return sorted(drawn, key=lambda skill: (skill.subset, skill.id)), details


def allocate(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return how many to draw from each stratum: in proportion to its size, largest remainders first.

    Ties go to the earlier stratum. No stratum gives more than it has.
    """
    available = sum(sizes.values())
    if total >= available:
        return dict(sizes)
    shares = {name: total * size // available for name, size in sizes.items()}
    left = total - sum(shares.values())
    for name in sorted(sizes, key=lambda name: -(total * sizes[name] % available))[:left]:
        shares[name] += 1
    return shares


def _read_parts(folder: Path) -> Iterator[RouterSkill]:
    """Yield the records with a body."""
    parts = sorted((folder / PARTITION).glob("part-*.jsonl.gz"))
    if not parts:
        raise BenchError(
            f"{folder} is not laid out as {DATASET}, it has no {PARTITION}/part-*.jsonl.gz: name the folder "
            f"of the data set, which `hf download {DATASET} --repo-type dataset --local-dir {folder}` makes."
        )
    for part in parts:
        for record in read_records(part, RouterSkill):
            if record.body and record.body.strip():
                yield record


def _skill(record: RouterSkill) -> SkillRecord:
    body = record.body or ""
    source = record.source if isinstance(record.source, str) else json.dumps(record.source)
    is_truth = record.prefix == GROUND_TRUTH
    return SkillRecord(
        id=record.skill_id,
        name=record.name or record.skill_id.rpartition("/")[2],
        description=record.description or "",
        files=((ENTRY_FILE, body),),
        subset=GROUND_TRUTH if is_truth else POOL,
        namespace="" if is_truth else record.prefix,
        source={
            **{"dataset": DATASET, "partition": PARTITION, "skill_id": record.skill_id, "source": source},
            "sha256": hashlib.sha256(body.encode()).hexdigest(),
        },
    )


def read_tasks(folder: Path) -> list[tuple[Task, Relevance]]:
    """Return the tasks that SkillRouter scores: neither excluded, nor in need of general skills only."""
    for name in (TASKS, RELEVANCE):
        if not (folder / name).is_file():
            raise BenchError(f"{folder} has no {name} of {DATASET}: download it.")
    relevance = read_json(folder / RELEVANCE, dict[str, Relevance])
    return [
        (task, entry)
        for task in read_records(folder / TASKS, Task)
        if (entry := relevance.get(task.task_id)) and not task.excluded and entry.task_type != GENERIC
    ]

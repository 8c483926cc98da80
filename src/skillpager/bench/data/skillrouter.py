"""The paper's 395 skills and people's tasks, from the published layout of SkillRouter-Eval-Core.

    manifest.json   tasks.jsonl   relevance.json   easy/part-*.jsonl.gz

A line of a part is a skill: `skill_id`, `name`, `description`, `body`, `source`. Ids of ground-truth skills
begin with `gt/`, those of the pool with their namespace, such as `devops/`. The parts are read once, line by
line; no more than the records that may still be drawn are held.

Reference: paper §4.1. It says neither how the 200 are divided among the namespaces nor how they are drawn, so
both rules are ours: `allocate`, and the smallest SHA-256 of seed and id, which is a uniform draw without
replacement that does not depend on the order of the parts.
"""

import gzip
import hashlib
import json
import statistics
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import QueryRecord, Record, SkillRecord, first_fault
from skillpager.errors import BenchError
from skillpager.json_types import JsonObject
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.settings import MAX_SKILL_BYTES

DATASET = "pipizhao/SkillRouter-Eval-Core"
PARTITION = "easy"
MANIFEST, TASKS, RELEVANCE = "manifest.json", "tasks.jsonl", "relevance.json"
GROUND_TRUTH, POOL = "gt", "pool"
ORIGIN = "tasks"
# tasks that need none but general skills, such as `pdf`; SkillRouter does not score them
GENERIC = "generic_only"

# paper §4.1
NAMESPACES = ("other", "development", "data", "design", "devops", "testing", "documents")
POOL_SKILLS = 200
SEED = 42

# a record is a skill and a few short fields; JSON may write a character as six
MAX_LINE_BYTES = 8 * MAX_SKILL_BYTES
# Git LFS leaves a pointer of about 130 bytes where a file was not fetched
MAX_POINTER_BYTES = 1024


@dataclass(frozen=True, slots=True)
class RouterSkill(Record):
    """A line of a part."""

    skill_id: str
    name: str | None = None
    description: str | None = None
    body: str | None = None
    source: object = None

    @property
    def prefix(self) -> str:
        """The part before the first slash of the id: `gt`, or a namespace; empty without a slash."""
        return self.skill_id.rpartition("/")[0].partition("/")[0]


@dataclass(slots=True)
class Census:
    """Counts of the parts.

    Attributes:
        parts: Number of part files.
        records: Records by subset, `gt` and `pool`.
        empty: Ids of records of the ground truth without a body.
        namespaces: Pool records with a body by namespace.
    """

    parts: int = 0
    records: Counter[str] = field(default_factory=Counter)
    empty: list[str] = field(default_factory=list)
    namespaces: Counter[str] = field(default_factory=Counter)

    def count(self, record: RouterSkill) -> bool:
        """Count a record; return whether it has a body."""
        has_body = bool(record.body and record.body.strip())
        if record.prefix == GROUND_TRUTH:
            self.records[GROUND_TRUTH] += 1
            if not has_body:
                self.empty.append(record.skill_id)
        else:
            self.records[POOL] += 1
            self.namespaces[record.prefix] += has_body
        return has_body


@dataclass(frozen=True, slots=True)
class Draw:
    """The skills of the benchmark, and what they were drawn from.

    Attributes:
        skills: Ground truth, then pool, each sorted by id.
        census: Counts of the parts.
        allocation: Pool skills by namespace.
        seed: Of the sample.
    """

    skills: tuple[SkillRecord, ...]
    census: Census
    allocation: Mapping[str, int]
    seed: int

    @property
    def lengths(self) -> tuple[int, int, float]:
        """Smallest, largest and median number of characters of a skill."""
        sizes = [len(skill.text) for skill in self.skills]
        return min(sizes), max(sizes), statistics.median(sizes)

    @property
    def details(self) -> JsonObject:
        """How they were drawn, for the manifest."""
        return {
            "dataset": DATASET,
            "partition": PARTITION,
            "seed": self.seed,
            "records": dict(sorted(self.census.records.items())),
            "namespaces": {name: self.census.namespaces[name] for name in self.allocation},
            "allocation": dict(self.allocation),
        }


@dataclass(frozen=True, slots=True)
class Task(Record):
    """A line of `tasks.jsonl`."""

    task_id: str
    instruction_text: str
    difficulty: str = ""
    domain: str = ""
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Relevance:
    """The entry of a task in `relevance.json`.

    Attributes:
        gt_skill_ids: All skills that solve it.
        core_gt_ids: Those that are made for it; None in data without this field.
        task_type: `clean`, `mixed` or `generic_only`.
    """

    gt_skill_ids: tuple[str, ...] = ()
    core_gt_ids: tuple[str, ...] | None = None
    task_type: str = ""

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills that the task is about."""
        if self.task_type == GENERIC:
            return ()
        return self.gt_skill_ids if self.core_gt_ids is None else self.core_gt_ids


def draw_skills(folder: Path, *, pool_skills: int = POOL_SKILLS, seed: int = SEED) -> Draw:
    """Return all ground-truth skills with a body, and a stratified sample of the pool.

    Args:
        folder: Holds the published layout.
        pool_skills: Size of the sample; all of a smaller pool.
        seed: Of the sample.

    Raises:
        BenchError: The folder is of another layout, or a line is damaged or repeats an id.
    """
    census = Census()
    truth: dict[str, RouterSkill] = {}
    samples = {namespace: _Sample(pool_skills, seed) for namespace in NAMESPACES}
    for part in find_parts(folder):
        census.parts += 1
        for place, record in _read_part(part):
            if not census.count(record):
                continue
            is_new = True
            if record.prefix == GROUND_TRUTH:
                is_new = truth.setdefault(record.skill_id, record) is record
            elif record.prefix in samples:
                is_new = samples[record.prefix].offer(record)
            if not is_new:
                raise BenchError(
                    f"{place} repeats the id {record.skill_id!r}: are there parts of two downloads in the "
                    "folder?"
                )
    shares = allocate(pool_skills, {name: census.namespaces[name] for name in NAMESPACES})
    drawn = [record for name in NAMESPACES for record in samples[name].smallest(shares[name])]
    skills = [_record(truth[key], GROUND_TRUTH) for key in sorted(truth)]
    skills += [_record(record, POOL) for record in sorted(drawn, key=lambda record: record.skill_id)]
    if not skills:
        raise BenchError(f"{folder}: no record of {PARTITION}/ is a ground-truth or pool skill with a body.")
    return Draw(tuple(skills), census, shares, seed)


def find_parts(folder: Path) -> list[Path]:
    """Return the files of the partition, sorted by name.

    Raises:
        BenchError: There are none.
    """
    parts = sorted((folder / PARTITION).glob("part-*.jsonl.gz"))
    if not parts:
        raise BenchError(
            f"{folder} is not laid out as {DATASET}, it has no {PARTITION}/part-*.jsonl.gz: name the folder "
            "that holds the data set, or fetch it with --download."
        )
    return parts


def allocate(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return how many to draw from each stratum: in proportion to its size, largest remainders first.

    Ties go to the earlier stratum. No stratum gives more than it has.

    Args:
        total: How many to draw together.
        sizes: Size of each stratum.
    """
    available = sum(sizes.values())
    if total >= available:
        return dict(sizes)
    shares = {name: total * size // available for name, size in sizes.items()}
    remainders = {name: total * size % available for name, size in sizes.items()}
    left = total - sum(shares.values())
    for name in sorted(remainders, key=lambda name: -remainders[name])[:left]:
        shares[name] += 1
    return shares


class _Sample:
    """The records of a stratum whose rank by seed and id is smallest, at most `size` of them."""

    def __init__(self, size: int, seed: int) -> None:
        self._size = size
        self._seed = seed
        self._held: dict[str, tuple[bytes, RouterSkill]] = {}

    def offer(self, record: RouterSkill) -> bool:
        """Hold a record if it is among the smallest; return False for an id that is held already."""
        if record.skill_id in self._held:
            return False
        rank = hashlib.sha256(f"{self._seed}\n{record.skill_id}".encode()).digest()
        self._held[record.skill_id] = rank, record
        # now and then, so that a large pool is never in memory as a whole
        if len(self._held) > 2 * self._size + 1:
            self._held = {kept.skill_id: self._held[kept.skill_id] for kept in self.smallest(self._size)}
        return True

    def smallest(self, count: int) -> list[RouterSkill]:
        """Return the records of smallest rank, that one first."""
        return [record for _, record in nsmallest(count, self._held.values(), key=lambda held: held[0])]


def _read_part(part: Path) -> Iterator[tuple[str, RouterSkill]]:
    """Yield each record of a part with its file and line."""
    number = 0
    try:
        with gzip.open(part) as file:
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                place = f"{part}:{number}"
                if len(line) > MAX_LINE_BYTES:
                    raise BenchError(f"{place} is longer than {MAX_LINE_BYTES:,} bytes: restore the file.")
                if line.strip():
                    yield place, _parse(line, place)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        hint = " (a Git LFS pointer? run `git lfs pull`)" if part.stat().st_size < MAX_POINTER_BYTES else ""
        raise BenchError(
            f"{part}:{number + 1} is damaged ({error}){hint}: download the file anew."
        ) from error


def _parse(line: bytes, place: str) -> RouterSkill:
    try:
        # the strict reader refuses lone surrogates, which scraped text may hold
        if b"\\ud" in line:
            line = json.dumps(json.loads(line), ensure_ascii=False).encode(errors="replace")
        return RouterSkill.from_json(line)
    except ValueError as error:
        raise BenchError(f"{place} is no skill of {DATASET} ({error}): download the file anew.") from error


def _record(record: RouterSkill, subset: str) -> SkillRecord:
    body = record.body or ""
    source = record.source if isinstance(record.source, str) else json.dumps(record.source)
    return SkillRecord(
        id=record.skill_id,
        name=record.name or record.skill_id.rpartition("/")[2],
        description=record.description or "",
        files=((ENTRY_FILE, body),),
        subset=subset,
        namespace=record.prefix if subset == POOL else "",
        source={
            "dataset": DATASET,
            "partition": PARTITION,
            "skill_id": record.skill_id,
            "source": source,
            "sha256": hashlib.sha256(body.encode()).hexdigest(),
        },
    )


def read_task_queries(folder: Path, skills: Sequence[SkillRecord]) -> list[QueryRecord]:
    """Return one query for each scored task and each of its core skills, in the order of the tasks.

    A task is scored, as by SkillRouter, unless it is excluded or needs general skills only.

    Args:
        folder: Holds `tasks.jsonl` and `relevance.json`.
        skills: The skills of the benchmark; others are left out.

    Raises:
        BenchError: A file is missing or damaged.
    """
    for name in (TASKS, RELEVANCE):
        if not (folder / name).is_file():
            raise BenchError(f"{folder} has no {name}, where the queries of the tasks are: download it.")
    path = folder / RELEVANCE
    try:
        relevance = TypeAdapter(dict[str, Relevance]).validate_json(path.read_bytes())
    except ValidationError as error:
        raise BenchError(f"{path} cannot be read ({first_fault(error)}): download it anew.") from error
    known = {skill.id for skill in skills}
    return [
        QueryRecord(
            id=f"{skill}#{task.task_id}",
            skill=skill,
            query=task.instruction_text,
            origin=ORIGIN,
            difficulty=task.difficulty,
            angle=task.domain,
        )
        for task in read_records(folder / TASKS, Task)
        if not task.excluded and task.task_id in relevance
        for skill in relevance[task.task_id].skills
        if skill in known
    ]

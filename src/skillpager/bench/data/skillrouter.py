"""SkillRouter-Eval-Core: draws 395 skills as in the paper, and reads the tasks written by people.

    manifest.json   tasks.jsonl   relevance.json   easy/part-*.jsonl.gz

A line of a part is a skill: `skill_id`, `name`, `description`, `body`, `source`. Ids of ground-truth skills
begin with `gt/`, those of the pool with their namespace, such as `devops/`. The parts are read once, line by
line; only records that may still be drawn are held in memory.

Reference: paper §4.1. It says neither how the 200 are divided among the namespaces nor how they are drawn, so
both rules are ours: `allocate`, and the smallest SHA-256 of seed and id, which is a uniform draw without
replacement that does not depend on the order of the parts.
"""

import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain
from pathlib import Path
from statistics import median

from pydantic import TypeAdapter, ValidationError

from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import QueryRecord, Record, SkillRecord, first_fault
from skillpager.bench.report import paper
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

# namespaces that are listed; another data set may have thousands
MAX_LISTED = 20
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
        records: Records by subset, `gt` and `pool`.
        empty: Ids of records of the ground truth without a body.
        namespaces: Pool records with a body by namespace.
    """

    records: Counter[str] = field(default_factory=Counter)
    empty: list[str] = field(default_factory=list)
    namespaces: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Draw:
    """The skills of the benchmark, and what they were drawn from.

    Attributes:
        skills: Ground truth, then pool, each sorted by id.
        allocation: Pool skills by namespace.
        seed: Of the sample.
    """

    skills: tuple[SkillRecord, ...]
    census: Census
    allocation: Mapping[str, int]
    seed: int

    @property
    def details(self) -> JsonObject:
        """The draw, for the manifest."""
        return {
            "dataset": DATASET,
            "partition": PARTITION,
            "seed": self.seed,
            "records": dict(sorted(self.census.records.items())),
            "namespaces": {name: self.census.namespaces[name] for name in self.allocation},
            "allocation": dict(self.allocation),
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One number or name of the composition.

    Attributes:
        measure: Its name.
        expected: The paper's value.
        found: The value here.
        reason: Why the two may differ; empty where they should not.
    """

    measure: str
    expected: str
    found: str
    reason: str

    @property
    def agrees(self) -> bool:
        """Whether the two are the same."""
        return self.expected == self.found


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
        core_gt_ids: Skills that are made for it; None in data without this field.
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
    """Return all ground-truth skills with a body, and a stratified sample of the pool (all of a small one).

    Raises:
        BenchError: The data set is of another layout or damaged, or repeats an id.
    """
    parts = sorted((folder / PARTITION).glob("part-*.jsonl.gz"))
    if not parts:
        raise BenchError(
            f"{folder} is not laid out as {DATASET}, it has no {PARTITION}/part-*.jsonl.gz: name the folder "
            "that holds the data set, or fetch it with --download."
        )

    def rank(record: RouterSkill) -> bytes:
        return hashlib.sha256(f"{seed}\n{record.skill_id}".encode()).digest()

    census = Census()
    held = _hold(chain.from_iterable(map(_read_part, parts)), census, pool_skills, rank)
    shares = allocate(pool_skills, {name: census.namespaces[name] for name in NAMESPACES})
    drawn = [nsmallest(shares[name], held[name].values(), key=rank) for name in NAMESPACES]
    skills = [
        _skill(record, subset)
        for subset, records in ((GROUND_TRUTH, held[GROUND_TRUTH].values()), (POOL, chain(*drawn)))
        for record in sorted(records, key=lambda record: record.skill_id)
    ]
    if not skills:
        raise BenchError(f"{folder}: no record of {PARTITION}/ is a ground-truth or pool skill with a body.")
    return Draw(tuple(skills), census, shares, seed)


def check_composition(draw: Draw) -> tuple[Check, ...]:
    """Return the composition of a draw beside the paper's (§4.1, Table 2)."""
    census, sizes = draw.census, [len(skill.text) for skill in draw.skills]
    truths = sum(skill.subset == GROUND_TRUTH for skill in draw.skills)
    listed = ", ".join(sorted(+census.namespaces)[:MAX_LISTED])
    drawn = "which 200 of the pool the paper drew is not published"
    rows: list[tuple[str, float | str, float | str, str]] = [
        ("gt records", paper.GROUND_TRUTH_RECORDS, census.records[GROUND_TRUTH], ""),
        ("gt records without a body", paper.EMPTY_RECORD, ", ".join(sorted(census.empty)), ""),
        ("gt skills", paper.GROUND_TRUTH_SKILLS, truths, ""),
        ("pool records", paper.POOL_RECORDS, census.records[POOL], ""),
        ("pool skills", paper.POOL_SKILLS, len(sizes) - truths, ""),
        ("skills", paper.SKILLS, len(sizes), ""),
        ("namespaces", ", ".join(sorted(NAMESPACES)), listed, "others are not drawn from"),
        ("shortest skill, characters", paper.CHARACTERS_MIN, min(sizes), drawn),
        ("longest skill, characters", paper.CHARACTERS_MAX, max(sizes), drawn),
        ("median skill, characters", paper.CHARACTERS_MEDIAN, median(sizes), drawn),
    ]
    return tuple(Check(measure, _shown(there), _shown(here), why) for measure, there, here, why in rows)


def _shown(value: float | str) -> str:
    return (value or "none") if isinstance(value, str) else f"{value:,.6g}"


def _hold(
    records: Iterable[tuple[str, RouterSkill]],
    census: Census,
    pool_skills: int,
    rank: Callable[[RouterSkill], bytes],
) -> dict[str, dict[str, RouterSkill]]:
    """Count records in `census`; return by subset or namespace, then id, those that may be drawn."""
    held: dict[str, dict[str, RouterSkill]] = {name: {} for name in (GROUND_TRUTH, *NAMESPACES)}
    for place, record in records:
        is_truth, has_body = record.prefix == GROUND_TRUTH, bool(record.body and record.body.strip())
        census.records[GROUND_TRUTH if is_truth else POOL] += 1
        if not is_truth:
            census.namespaces[record.prefix] += has_body
        elif not has_body:
            census.empty.append(record.skill_id)
        if not has_body or record.prefix not in held:
            continue
        stratum = held[record.prefix]
        if stratum.setdefault(record.skill_id, record) is not record:
            raise BenchError(
                f"{place} repeats the id {record.skill_id!r}: are there parts of two downloads in the folder?"
            )
        # now and then, so that a large pool is never in memory as a whole
        if not is_truth and len(stratum) > 2 * pool_skills + 1:
            smallest = nsmallest(pool_skills, stratum.values(), key=rank)
            held[record.prefix] = {kept.skill_id: kept for kept in smallest}
    return held


def allocate(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return how many to draw from each stratum: in proportion to its size, largest remainders first.

    Ties go to the earlier stratum. No stratum gives more than it has.
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
                if not line.strip():
                    continue
                try:
                    # the strict reader refuses lone surrogates, which scraped text may hold
                    if b"\\ud" in line:
                        line = json.dumps(json.loads(line), ensure_ascii=False).encode(errors="replace")
                    yield place, RouterSkill.from_json(line)
                except ValueError as error:
                    raise BenchError(
                        f"{place} is no skill of {DATASET} ({error}): download the file again."
                    ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        hint = " (a Git LFS pointer? run `git lfs pull`)" if part.stat().st_size < MAX_POINTER_BYTES else ""
        raise BenchError(
            f"{part}:{number + 1} is damaged ({error}){hint}: download the file again."
        ) from error


def _skill(record: RouterSkill, subset: str) -> SkillRecord:
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

    A task is scored, as by SkillRouter, unless it is excluded or needs general skills only. Skills that are
    not among `skills` are left out.

    Raises:
        BenchError: A file is missing or damaged.
    """
    if not (folder / TASKS).is_file():
        raise BenchError(f"{folder} has no {TASKS}, where the queries of the tasks are: download it.")
    relevance = _read_relevance(folder)
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


def _read_relevance(folder: Path) -> dict[str, Relevance]:
    """Return the relevance of each task.

    Raises:
        BenchError: The file is missing or damaged.
    """
    path = folder / RELEVANCE
    try:
        return TypeAdapter(dict[str, Relevance]).validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise BenchError(
            f"{folder} has no {RELEVANCE}, which says which skills solve a task: download it."
        ) from error
    except ValidationError as error:
        raise BenchError(f"{path} cannot be read ({first_fault(error)}): download it again.") from error

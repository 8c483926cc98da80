"""Runs: every method on every query, over processes, resumable.

A run appends to its folder as skills are finished, so that a killed run goes on where it stopped. What
is done is known from the files alone. At the end each file is put into the order of the queries, so
that two runs differ in their times and in nothing else.

Reference: paper §4, §5.
"""

import logging
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from skillpager.bench.data.folder import NODES, QUERIES, SKILLS, BenchFolder, append_records, write_records
from skillpager.bench.data.records import JudgmentRecord, QueryRecord, SelectionRecord, SkillRecord
from skillpager.bench.judge.evidence import EVIDENCE
from skillpager.bench.run.methods import parse_method
from skillpager.bench.run.selecting import Cases, Made, Plan, select_all
from skillpager.errors import BenchError, SkillPagerError, require_extra
from skillpager.json_types import JsonObject
from skillpager.pager import SkillPager
from skillpager.settings import Settings

logger = logging.getLogger(__name__)
Result = TypeVar("Result", SelectionRecord, JudgmentRecord)
Work = tuple[SkillRecord, Cases]  # what is left to do for one skill

SEED = 42  # paper §4.1, §5.3.1
# what tells one data set from another in the manifest
DATA_IDENTITY = ("skills", "queries", "skills_sha256", "queries_sha256")


def run_settings(settings: Settings, *, style: str) -> Settings:
    """Return settings whose page defaults are the paper's, whatever the user's own are."""
    bare = Settings()
    return replace(
        settings,
        style=style,
        scope=bare.scope,
        strategy=bare.strategy,
        mmr_lambda=bare.mmr_lambda,
        max_nodes=None,
        max_tokens=None,
        sufficiency=None,
    )


def prepare(
    folder: BenchFolder,
    skills: Sequence[SkillRecord],
    queries: Sequence[QueryRecord],
    plan: Plan,
    *,
    data: JsonObject,
) -> None:
    """Put the data of a run into its folder, or check that it is the data that is there.

    Args:
        folder: The folder of the run.
        skills: All skills.
        queries: The queries about them.
        plan: How contexts are made.
        data: What the manifest says of the data, with its digests.

    Raises:
        BenchError: The folder holds a run on other data or with other parts, or there are no queries.
    """
    if not queries:
        raise BenchError("The data has no queries: write them with `skillpager bench queries`.")
    if plan.judge_evidence and not any(query.critical for query in queries):
        raise BenchError(
            "The evidence judge needs queries with critical lines, and this data has none: "
            "run with `--judge none` and judge with `skillpager bench judge`."
        )
    # what the contexts depend on besides data and methods
    parts: JsonObject = {**asdict(SkillPager(settings=plan.settings).recipe), "style": plan.settings.style}
    known = folder.manifest()
    described = {"run": parts, "data": {name: data[name] for name in DATA_IDENTITY}}
    # a folder without results can be used again
    for part, now in described.items() if "run" in known else ():
        entry = known.get(part)
        before = entry if isinstance(entry, Mapping) else {}
        changed = [
            f"{name} {before.get(name)}, now {now[name]}" for name in now if before.get(name) != now[name]
        ]
        if changed:
            raise BenchError(
                f"{folder.path} holds a run of another kind ({'; '.join(changed)}): choose another --out, "
                "or remove the folder."
            )
    if not (folder.path / SKILLS).exists():
        write_records(folder.path / SKILLS, skills)
    if not (folder.path / QUERIES).exists():
        write_records(folder.path / QUERIES, queries)
    folder.update_manifest({"data": data, "run": parts, "seed": SEED, "version": version("skillpager")})


def run_methods(
    folder: BenchFolder,
    labels: Sequence[str],
    plan: Plan,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Run methods on all queries of a prepared folder; return how many contexts were made.

    Args:
        folder: Where data and results stand.
        labels: Methods; what is done already is skipped.
        plan: How contexts are made.
        jobs: Processes.
        progress: Called with the contexts done and all contexts to do.

    Raises:
        BenchError: A method is unknown, or some skills failed; the results of the others are written.
    """
    methods = {method.label: method for method in map(parse_method, labels)}
    skills, queries = folder.skills(), folder.queries()
    left = list(_work_left(folder, list(methods), skills, queries, plan))
    known = folder.manifest().get("methods")
    knobs = {
        label: {name: value for name, value in asdict(method).items() if value is not None}
        for label, method in methods.items()
    }
    folder.update_manifest({"methods": {**(known if isinstance(known, Mapping) else {}), **knobs}})
    total, done = sum(_contexts(cases) for _, cases in left), 0
    failures: dict[str, SkillPagerError] = {}
    parsed = {record.skill for record in folder.nodes()}
    for skill, cases, outcome in _outcomes(left, plan, jobs):
        if isinstance(outcome, SkillPagerError):
            failures[skill.id] = outcome
            logger.warning("%s: %s", skill.id, outcome)
        else:
            nodes, selections, judgments = outcome
            if skill.id not in parsed:
                append_records(folder.path / NODES, nodes)
            # verdicts first, because a selection without one is made again
            for label, verdicts in _by_method(judgments).items():
                append_records(folder.judgments_file(EVIDENCE, label), verdicts)
            for label, made in _by_method(selections).items():
                append_records(folder.selections_file(label), made)
        done += _contexts(cases)
        if progress:
            progress(done, total)
    _put_in_order(folder, methods, skills, queries)
    if failures:
        first = next(iter(failures))
        raise BenchError(
            f"{len(failures)} of {len(left)} skills failed, the first was {first}: {failures[first]} "
            "The results of the others are written: fix the cause and repeat the command."
        )
    return total


def _work_left(
    folder: BenchFolder,
    labels: Sequence[str],
    skills: Sequence[SkillRecord],
    queries: Sequence[QueryRecord],
    plan: Plan,
) -> Iterator[Work]:
    """Yield for each skill the queries and methods that are not done."""
    done: dict[str, set[str]] = {}
    for label in labels:
        selections = folder.selections(label)
        done[label] = {
            each.query for each in selections if each.context is not None or not plan.keep_contexts
        }
        if plan.judge_evidence:
            done[label] &= {record.query for record in folder.judgments(EVIDENCE, label)}
    left: dict[str, list[tuple[QueryRecord, list[str]]]] = {}
    for query in queries:
        if missing := [label for label in labels if query.id not in done[label]]:
            left.setdefault(query.skill, []).append((query, missing))
    yield from ((skill, left[skill.id]) for skill in skills if skill.id in left)


def _contexts(cases: Cases) -> int:
    return sum(len(labels) for _, labels in cases)


def _outcomes(
    left: Sequence[Work], plan: Plan, jobs: int
) -> Iterator[tuple[SkillRecord, Cases, Made | SkillPagerError]]:
    """Yield what comes of each skill's work, as it is finished."""
    if jobs <= 1 or len(left) <= 1:
        yield from ((*work, _attempt(*work, plan)) for work in left)
        return
    # here, because a worker that fails to begin breaks the pool without a word
    require_extra("threadpoolctl", extra="bench", purpose="The benchmark")
    # a forked child would share the threads and locks of the parent's models
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(left)), context, initializer=_use_one_thread) as pool:
        longest_first = sorted(left, key=lambda work: _contexts(work[1]) * len(work[0].text), reverse=True)
        pending = {pool.submit(_attempt, *work, plan): work for work in longest_first}
        try:
            yield from ((*pending[future], future.result()) for future in as_completed(pending))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _attempt(skill: SkillRecord, cases: Cases, plan: Plan) -> Made | SkillPagerError:
    try:
        return select_all(skill, cases, plan)
    except SkillPagerError as error:
        return error


def _use_one_thread() -> None:
    """Keep matrix products of a worker to one thread: the processes share the processors."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


def _by_method(records: Iterable[Result]) -> Mapping[str, list[Result]]:
    grouped: dict[str, list[Result]] = {}
    for record in records:
        grouped.setdefault(record.method, []).append(record)
    return grouped


def _put_in_order(
    folder: BenchFolder, labels: Iterable[str], skills: Sequence[SkillRecord], queries: Sequence[QueryRecord]
) -> None:
    order = {query.id: place for place, query in enumerate(queries)}
    for label in labels:
        _sort(folder.selections_file(label), folder.selections(label), order)
        _sort(folder.judgments_file(EVIDENCE, label), folder.judgments(EVIDENCE, label), order)
    places = {skill.id: place for place, skill in enumerate(skills)}
    nodes = folder.nodes()
    if nodes != (ordered := sorted(nodes, key=lambda record: places[record.skill])):
        write_records(folder.path / NODES, ordered)


def _sort(path: Path, records: Sequence[Result], order: Mapping[str, int]) -> None:
    """Write a file in the order of the queries, the last record of each, unless it is so."""
    latest = {record.query: record for record in records}
    ordered = [latest[query] for query in sorted(latest, key=order.__getitem__)]
    if ordered != list(records):
        write_records(path, ordered)

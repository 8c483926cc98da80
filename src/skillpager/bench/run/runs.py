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
from pathlib import Path

from skillpager.bench.data.folder import INDEXES, NODES, BenchFolder, append_records, write_records
from skillpager.bench.data.records import (
    IndexRecord,
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
)
from skillpager.bench.judge.evidence_judge import EVIDENCE
from skillpager.bench.run.methods import parse_method
from skillpager.bench.run.own_parts import check_own_parts
from skillpager.bench.run.selecting import Cases, Made, Plan, select_all
from skillpager.errors import BenchError, SkillPagerError, require_extra
from skillpager.settings import Settings

logger = logging.getLogger(__name__)
Result = SelectionRecord | JudgmentRecord
Work = tuple[SkillRecord, Cases]  # the work left for one skill


def run_settings(settings: Settings, *, style: str) -> Settings:
    """Return settings whose page defaults are the paper's, not the user's."""
    names = ("scope", "strategy", "mmr_lambda", "max_nodes", "max_tokens", "sufficiency", "fill")
    return replace(settings, style=style, **{name: getattr(Settings(), name) for name in names})


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
        BenchError: A method is unknown, or some skills failed, or a strategy, encoder or classifier of others
            on some queries; the results of the others are written.
        SettingsError: A part of others cannot be loaded, or is none of its kind.
    """
    methods = {method.label: method for method in map(parse_method, labels)}
    check_own_parts(folder, methods, plan.settings)
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
    failed: list[str] = []  # contexts that code of others did not make
    parsed, indexed = ({record.skill for record in records} for records in (folder.nodes(), folder.indexes()))
    for skill, cases, outcome in _outcomes(left, plan, jobs):
        if isinstance(outcome, SkillPagerError):
            failures[skill.id] = outcome
            logger.warning("%s: %s", skill.id, outcome)
        else:
            failed += outcome.failed
            if skill.id not in indexed:
                append_records(folder.path / INDEXES, [outcome.index])
            if skill.id not in parsed:
                append_records(folder.path / NODES, outcome.nodes)
            for label in methods:
                # verdicts first, because a selection without one is made again
                _append(folder.judgments_file(EVIDENCE, label), outcome.judgments, label)
                _append(folder.selections_file(label), outcome.selections, label)
        done += _contexts(cases)
        if progress:
            progress(done, total)
    _put_in_order(folder, methods, skills, queries)
    if failures or failed:
        raise _failure(failures, failed, len(left), total)
    return total


def _failure(
    failures: Mapping[str, SkillPagerError], failed: Sequence[str], skills: int, contexts: int
) -> BenchError:
    """Return the error for skills that failed, by id, and for contexts that code of others did not make."""
    told = []
    if failures:
        first = next(iter(failures))
        told.append(f"{len(failures)} of {skills} skills failed, the first was {first}: {failures[first]}")
    if failed:
        told.append(f"{len(failed)} of {contexts} contexts were not made, the first: {failed[0]}")
    return BenchError(
        f"{' '.join(told)} The results of the others are written: fix the cause and repeat the command."
    )


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
    """Yield the results of each skill, as soon as it is finished."""
    if jobs <= 1 or len(left) <= 1:
        yield from ((*work, _attempt(*work, plan)) for work in left)
        return
    # here, because a worker that fails to begin breaks the pool without a message
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


def _append(path: Path, records: Iterable[Result], label: str) -> None:
    """Append the records of a method, if there are any."""
    if mine := [record for record in records if record.method == label]:
        append_records(path, mine)


def _put_in_order(
    folder: BenchFolder, labels: Iterable[str], skills: Sequence[SkillRecord], queries: Sequence[QueryRecord]
) -> None:
    """Write files in the order of the queries, the last record of each query, unless they are so."""
    order = {query.id: place for place, query in enumerate(queries)}
    for label in labels:
        files: tuple[tuple[Path, Sequence[Result]], ...] = (
            (folder.judgments_file(EVIDENCE, label), folder.judgments(EVIDENCE, label)),
            (folder.selections_file(label), folder.selections(label)),
        )
        for path, records in files:
            latest = {record.query: record for record in records}
            ordered = [latest[query] for query in sorted(latest, key=order.__getitem__)]
            if ordered != records:
                write_records(path, ordered)
    places = {skill.id: place for place, skill in enumerate(skills)}
    stages: tuple[tuple[str, Sequence[NodeRecord] | Sequence[IndexRecord]], ...] = (
        (NODES, folder.nodes()),
        (INDEXES, folder.indexes()),
    )
    for name, made in stages:
        if made != (by_skill := sorted(made, key=lambda record: places[record.skill])):
            write_records(folder.path / name, by_skill)

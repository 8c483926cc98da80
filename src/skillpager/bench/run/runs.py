"""Runs: from data to selections and verdicts of every method on every query, over processes, resumable.

A run appends to its folder as skills are finished, so that a killed run goes on where it stopped. What
is done is known from the files alone. At the end each file is put into the order of the queries, so
that two runs differ in their times and in nothing else.

Reference: paper §4 and §5, every table and figure.
"""

import logging
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from skillpager.bench.data import load_data
from skillpager.bench.data.folder import DATA, INDEXES, NODES, QUERIES, SKILLS, BenchFolder, data_entry
from skillpager.bench.data.records import (
    IndexRecord,
    JudgmentRecord,
    NodeRecord,
    QueryRecord,
    Record,
    SelectionRecord,
    SkillRecord,
    append_records,
    write_records,
)
from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.run.learned import LEARNED, count_learned, noted_learned, refusal
from skillpager.bench.run.methods import parse_method
from skillpager.bench.run.own_parts import check_own_parts
from skillpager.bench.run.selecting import Cases, Made, Plan, select_all
from skillpager.bench.run.suites import SUITES
from skillpager.encoders.builtin import usable_processors
from skillpager.errors import BenchError, SkillPagerError, require_extra
from skillpager.json_types import JsonObject
from skillpager.pager import SkillPager
from skillpager.settings import Settings
from skillpager.strategies.baselines.graph import describe_fit, fits_of

logger = logging.getLogger(__name__)

SEED = 42  # paper §4.1, §5.3.1
# the facts by which the manifest distinguishes data sets
DATA_IDENTITY = ("skills", "queries", "skills_sha256", "queries_sha256")

Work = tuple[SkillRecord, Cases]  # the work left for one skill


def run_settings(settings: Settings, *, style: str) -> Settings:
    """Return settings whose page defaults are the paper's, not the user's."""
    names = ("scope", "strategy", "mmr_lambda", "max_nodes", "max_tokens", "sufficiency", "fill")
    return replace(settings, style=style, **{name: getattr(Settings(), name) for name in names})


def open_run(data: Path | None, out: Path | None, plan: Plan) -> BenchFolder:
    """Return the folder of a run, with its data in it.

    Args:
        data: A benchmark folder or a folder of evidence data; None for the data that `out` holds.
        out: Folder of the run; None for `data` itself, when that is a benchmark folder.
        plan: How contexts are made.

    Raises:
        BenchError: There is no data, it has no queries that the judge can use, or `out` holds another run.
    """
    source = data or out
    if source is None:
        raise BenchError(
            "There is no data: name a benchmark folder or a folder of evidence data with --data."
        )
    skills, queries = load_data(source)
    if out is None and not (source / SKILLS).is_file():
        raise BenchError(f"{source} is evidence data: name a folder for the results with --out.")
    if not queries:
        raise BenchError("The data has no queries: write them with `skillpager bench queries`.")
    if plan.judge_evidence and not any(query.critical for query in queries):
        raise BenchError(
            "The evidence judge needs queries with critical lines, and this data has none: "
            "run with `--judge none` and judge with `skillpager bench judge`."
        )
    # the description of the data by its source, with the digests of now
    known = _entry(BenchFolder(source).manifest(), DATA) if (source / SKILLS).is_file() else {}
    known = known or {"source": "evidence", "subset": source.resolve().name}
    described = {**known, **data_entry(skills, queries, source=str(known["source"]), details={})}
    # what the contexts depend on, apart from data and methods
    recipe = SkillPager(settings=plan.settings).recipe
    parts: JsonObject = {
        **asdict(recipe),
        "style": plan.settings.style,
        "baselines": describe_fit(recipe, fits_of(plan.settings)),
    }
    folder = BenchFolder(out or source)
    manifest = folder.manifest()
    # a folder without results can be used again
    for part, now in (("run", parts), (DATA, {name: described[name] for name in DATA_IDENTITY})):
        before = _entry(manifest, part)
        changed = [f"{key} {before.get(key)}, now {now[key]}" for key in now if before.get(key) != now[key]]
        if "run" in manifest and changed:
            raise BenchError(
                f"{folder.path} holds a run of another kind ({'; '.join(changed)}): choose another --out, "
                "or remove the folder."
            )
    for name, records in ((SKILLS, skills), (QUERIES, queries)):
        if not (folder.path / name).exists():
            write_records(folder.path / name, records)
    folder.update_manifest({DATA: described, "run": parts, "seed": SEED, "version": version("skillpager")})
    return folder


def run_suites(
    folder: BenchFolder,
    suites: Mapping[str, Sequence[str]],
    plan: Plan,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Run the methods of suites, each once; return how many contexts were made.

    The manifest notes which suite has which methods. Methods that have learned from skills of the folder are
    left out unless the plan allows them. By default there is a process for each processor that may be used.

    Args:
        folder: A folder that `open_run` returned.
        suites: Labels of each suite.
        plan: How contexts are made.
        jobs: Processes.
        progress: Called with the contexts done and all contexts to do.

    Raises:
        BenchError: A method is unknown, or some skills failed, or all methods have learned from the skills.
    """
    suites = _without_trained(folder, suites, plan)
    labels = [label for name in suites for label in suites[name]]
    made = run_methods(folder, labels, plan, jobs=jobs or usable_processors(), progress=progress)
    merged = {**_entry(folder.manifest(), "suites"), **{name: list(suites[name]) for name in suites}}
    # in the order of the tables, however the runs were ordered
    names = dict.fromkeys(name for name in (*SUITES, *merged) if name in merged)
    folder.update_manifest({"suites": {name: merged[name] for name in names}})
    return made


def _without_trained(
    folder: BenchFolder, suites: Mapping[str, Sequence[str]], plan: Plan
) -> dict[str, list[str]]:
    """Return suites without the methods that have learned from skills of the folder, unless they are allowed.

    The manifest notes how many skills each of those that stay has learned from.

    Raises:
        BenchError: A method is unknown, or none would be left.
    """
    given = {name: [parse_method(label).label for label in labels] for name, labels in suites.items()}
    skills = folder.skills()
    learned = count_learned(
        (label for labels in given.values() for label in labels),
        skills,
        encoder=plan.settings.encoder,
        classifier=plan.settings.classifier,
    )
    if learned and plan.allow_trained:
        folder.update_manifest({LEARNED: {**noted_learned(folder.manifest()), **learned}})
    if not learned or plan.allow_trained:
        return given
    left = {name: [label for label in labels if label not in learned] for name, labels in given.items()}
    if not any(left.values()):
        raise BenchError(refusal(learned, len(skills)))
    logger.warning("Methods are left out: %s", refusal(learned, len(skills)))
    return {name: labels for name, labels in left.items() if labels}


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
    knobs = {
        label: {name: value for name, value in asdict(method).items() if value is not None}
        for label, method in methods.items()
    }
    folder.update_manifest({"methods": {**_entry(folder.manifest(), "methods"), **knobs}})
    total, done = sum(_contexts(cases) for _, cases in left), 0
    failures: dict[str, SkillPagerError] = {}
    failed: list[str] = []  # contexts that code of others did not make
    indexed = {record.skill for record in folder.nodes()} & {record.skill for record in folder.indexes()}
    for skill, cases, outcome in _outcomes(left, plan, jobs):
        if isinstance(outcome, SkillPagerError):
            failures[skill.id] = outcome
            logger.warning("%s: %s", skill.id, outcome)
        else:
            failed += outcome.failed
            made: dict[Path, list[Record]] = {}
            # verdicts first, because a selection without one is made again
            for record in (*outcome.judgments, *outcome.selections, *outcome.nodes, outcome.index):
                if skill.id not in indexed or not isinstance(record, NodeRecord | IndexRecord):
                    made.setdefault(_file_of(folder, record), []).append(record)
            for path, records in made.items():
                append_records(path, records)
        done += _contexts(cases)
        if progress:
            progress(done, total)
    asked = {query.id: place for place, query in enumerate(queries)}
    places = {skill.id: place for place, skill in enumerate(skills)}
    for label in methods:
        _put_in_order(folder.judgments_file(EVIDENCE, label), folder.judgments(EVIDENCE, label), asked)
        _put_in_order(folder.selections_file(label), folder.selections(label), asked)
    _put_in_order(folder.path / NODES, folder.nodes(), places)
    _put_in_order(folder.path / INDEXES, folder.indexes(), places)
    if failures or failed:
        raise _failure(failures, failed, len(left), total)
    return total


def _file_of(folder: BenchFolder, record: Record) -> Path:
    """Return the file that holds a record."""
    match record:
        case JudgmentRecord():
            return folder.judgments_file(EVIDENCE, record.method)
        case SelectionRecord():
            return folder.selections_file(record.method)
    return folder.path / (NODES if isinstance(record, NodeRecord) else INDEXES)


def _put_in_order(path: Path, records: Sequence[Any], places: Mapping[str, int]) -> None:
    """Write records in the order of their queries or skills, of two for the same the last."""
    parts = ("skill", "query", "id")  # a record has two of these
    latest = {tuple(getattr(record, part, "") for part in parts): record for record in records}
    ordered = sorted(latest.values(), key=lambda record: places[getattr(record, "query", record.skill)])
    if records != ordered:
        write_records(path, ordered)


def _failure(
    failures: Mapping[str, SkillPagerError], failed: Sequence[str], skills: int, contexts: int
) -> BenchError:
    """Return the error for skills that failed, by id, and for contexts that code of others did not make."""
    reasons = []
    if failures:
        first = next(iter(failures))
        reasons.append(f"{len(failures)} of {skills} skills failed, the first was {first}: {failures[first]}")
    if failed:
        reasons.append(f"{len(failed)} of {contexts} contexts were not made, the first: {failed[0]}")
    return BenchError(
        f"{' '.join(reasons)} The results of the others are written: fix the cause and repeat the command."
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


def _entry(manifest: JsonObject, name: str) -> Mapping[str, Any]:
    """Return an entry of a manifest; empty if it is not there."""
    found = manifest.get(name)
    return found if isinstance(found, Mapping) else {}

"""Runs: from data to selections and verdicts of every method on every query, over processes, resumable.

A run appends to its folder as skills are finished, so that a killed run goes on where it stopped. What
is done is known from the files alone. At the end each file is put into the order of the queries, so
that two runs differ in their times and in nothing else.

Reference: paper §4 and §5, every table and figure.
"""

import hashlib
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from skillpager.bench.data import load_data
from skillpager.bench.data.folder import DATA, NODES, QUERIES, SKILLS, BenchFolder, data_entry
from skillpager.bench.data.records import (
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
from skillpager.bench.run.methods import Method, is_ours, parse_method
from skillpager.bench.run.selecting import Cases, Plan, select_all
from skillpager.bulk.workers import open_processes
from skillpager.errors import BenchError, SkillPagerError
from skillpager.factories import make_strategy
from skillpager.json_types import JsonObject
from skillpager.pager import SkillPager
from skillpager.settings import Settings
from skillpager.strategies.baselines.graph import describe_fit, fits_of

logger = logging.getLogger(__name__)

SEED = 42  # paper §4.1, §5.3.1
# the facts by which the manifest distinguishes data sets
DATA_IDENTITY = ("skills", "queries", "skills_sha256", "queries_sha256")
# entry of the manifest: the SHA-256 of the code of each strategy that is not ours
OWN = "own"

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
    known = _entry(BenchFolder(source), DATA) if (source / SKILLS).is_file() else {}
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
    # a folder without results can be used again
    for part, now in (("run", parts), (DATA, {name: described[name] for name in DATA_IDENTITY})):
        before = _entry(folder, part)
        changed = [f"{key} {before.get(key)}, now {now[key]}" for key in now if before.get(key) != now[key]]
        if "run" in folder.manifest() and changed:
            raise BenchError(
                f"{folder.path} holds a run of another kind ({'; '.join(changed)}): choose another --out, "
                "or remove the folder."
            )
    for name, records in ((SKILLS, skills), (QUERIES, queries)):
        if not (folder.path / name).exists():
            write_records(folder.path / name, records)
    folder.update_manifest({DATA: described, "run": parts, "seed": SEED, "version": version("skillpager")})
    return folder


def run_methods(
    folder: BenchFolder,
    labels: Iterable[str],
    plan: Plan,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Run methods on all queries of a prepared folder; return how many contexts were made.

    What is done already is skipped. Methods that have learned from skills of the folder are left out unless
    the plan allows them; then the manifest notes from how many each has learned.

    Args:
        folder: A folder that `open_run` returned.
        labels: Methods.
        plan: How contexts are made.
        jobs: Processes.
        progress: Called with the contexts done and all contexts to do.

    Raises:
        BenchError: A method is unknown, or some skills failed, while the results of the others are written,
            or all methods have learned from the skills.
        SettingsError: A strategy of others cannot be loaded, or is none.
    """
    methods = _without_learned(folder, map(parse_method, labels), plan)
    _check_own_strategies(folder, methods.values(), plan.settings)
    left = list(_work_left(folder, list(methods), plan))
    knobs = {
        label: {name: value for name, value in asdict(method).items() if value is not None}
        for label, method in methods.items()
    }
    folder.update_manifest({"methods": {**_entry(folder, "methods"), **knobs}})
    total, done = sum(_contexts(cases) for _, cases in left), 0
    failures: dict[str, SkillPagerError] = {}
    indexed = {record.skill for record in folder.nodes()}
    for skill, cases, outcome in _outcomes(left, plan, jobs):
        if isinstance(outcome, SkillPagerError):
            failures[skill.id] = outcome
            logger.warning("%s: %s", skill.id, outcome)
        else:
            is_indexed = skill.id in indexed
            _append(folder, [each for each in outcome if not (is_indexed and isinstance(each, NodeRecord))])
        done += _contexts(cases)
        if progress:
            progress(done, total)
    asked = {query.id: place for place, query in enumerate(folder.queries())}
    places = {skill.id: place for place, skill in enumerate(folder.skills())}
    for label in methods:
        _put_in_order(folder.judgments_file(EVIDENCE, label), folder.judgments(EVIDENCE, label), asked)
        _put_in_order(folder.selections_file(label), folder.selections(label), asked)
    _put_in_order(folder.path / NODES, folder.nodes(), places)
    if failures:
        first = next(iter(failures))
        raise BenchError(
            f"{len(failures)} of {len(left)} skills failed, the first was {first}: {failures[first]} "
            "The results of the others are written: fix the cause and repeat the command."
        )
    return total


def _without_learned(folder: BenchFolder, methods: Iterable[Method], plan: Plan) -> dict[str, Method]:
    """Return by label the methods that have not learned from skills of the folder, or all if the plan allows.

    Raises:
        BenchError: None is left.
    """
    found = {method.label: method for method in methods}
    documents = [skill.text_sha256 for skill in folder.skills()]
    learned = count_learned(
        found, documents, encoder=plan.settings.encoder, classifier=plan.settings.classifier
    )
    if not learned:
        return found
    if plan.allow_trained:
        folder.update_manifest({LEARNED: {**noted_learned(folder.manifest()), **learned}})
        return found
    reason = refusal(learned, len(documents))
    if found.keys() <= learned.keys():
        raise BenchError(reason)
    logger.warning("Methods are left out: %s", reason)
    return {label: method for label, method in found.items() if label not in learned}


def _check_own_strategies(folder: BenchFolder, methods: Iterable[Method], settings: Settings) -> None:
    """Load the strategies that are not ours, so that mistakes come before the run, and note their code.

    Raises:
        BenchError: The code of a strategy has changed since its results were made.
        SettingsError: A strategy is unknown, cannot be loaded, or is none.
    """
    digests: dict[str, str] = {}
    for name in {method.strategy for method in methods if not is_ours(method.strategy)}:
        strategy = make_strategy(name, settings, mmr_lambda=settings.mmr_lambda)
        code = inspect.getfile(type(strategy))
        digests[name] = hashlib.sha256(Path(code).read_bytes()).hexdigest()
    if not digests:
        return
    before = _entry(folder, OWN)
    for label in folder.methods():
        name = parse_method(label).strategy
        if name in digests and before.get(name, digests[name]) != digests[name]:
            raise BenchError(
                f"The code of {name} has changed since the results of {label} were made: remove "
                f"{folder.selections_file(label)}, or choose another --out."
            )
    folder.update_manifest({OWN: {**before, **digests}})


def _append(folder: BenchFolder, records: Iterable[Record]) -> None:
    """Append records to their files."""
    made: dict[Path, list[Record]] = {}
    for record in records:
        match record:
            case JudgmentRecord():
                path = folder.judgments_file(EVIDENCE, record.method)
            case SelectionRecord():
                path = folder.selections_file(record.method)
            case _:
                path = folder.path / NODES
        made.setdefault(path, []).append(record)
    for path, some in made.items():
        append_records(path, some)


def _put_in_order(path: Path, records: Sequence[Any], places: Mapping[str, int]) -> None:
    """Write records in the order of their queries or skills, of two for the same the last."""
    parts = ("skill", "query", "id")  # a record has two of these
    latest = {tuple(getattr(record, part, "") for part in parts): record for record in records}
    ordered = sorted(latest.values(), key=lambda record: places[getattr(record, "query", record.skill)])
    if records != ordered:
        write_records(path, ordered)


def _work_left(folder: BenchFolder, labels: Sequence[str], plan: Plan) -> Iterator[Work]:
    """Yield for each skill the queries and methods that are not done."""
    done: dict[str, set[str]] = {}
    for label in labels:
        done[label] = {
            each.query
            for each in folder.selections(label)
            if each.context is not None or not plan.keep_contexts
        }
        if plan.judge_evidence:
            done[label] &= {record.query for record in folder.judgments(EVIDENCE, label)}
    left: dict[str, list[tuple[QueryRecord, list[str]]]] = {}
    for query in folder.queries():
        if missing := [label for label in labels if query.id not in done[label]]:
            left.setdefault(query.skill, []).append((query, missing))
    yield from ((skill, left[skill.id]) for skill in folder.skills() if skill.id in left)


def _contexts(cases: Cases) -> int:
    return sum(len(labels) for _, labels in cases)


def _outcomes(
    left: Sequence[Work], plan: Plan, jobs: int
) -> Iterator[tuple[SkillRecord, Cases, list[Record] | SkillPagerError]]:
    """Yield the results of each skill, as soon as it is finished."""
    if jobs <= 1 or len(left) <= 1:
        yield from ((*work, _attempt(*work, plan)) for work in left)
        return
    with open_processes(min(jobs, len(left))) as pool:
        longest_first = sorted(left, key=lambda work: _contexts(work[1]) * len(work[0].text), reverse=True)
        pending = {pool.submit(_attempt, *work, plan): work for work in longest_first}
        try:
            yield from ((*pending[future], future.result()) for future in as_completed(pending))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _attempt(skill: SkillRecord, cases: Cases, plan: Plan) -> list[Record] | SkillPagerError:
    try:
        return select_all(skill, cases, plan)
    except SkillPagerError as error:
        return error


def _entry(folder: BenchFolder, name: str) -> Mapping[str, Any]:
    """Return an entry of a manifest; empty if it is not there."""
    found = folder.manifest().get(name)
    return found if isinstance(found, Mapping) else {}

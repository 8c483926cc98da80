"""Runs (paper §4 and §5): from data to selections and verdicts of every method on every query.

Records are appended skill by skill, in the order of the data, so that two runs on one machine (`machine`)
differ in their times and in nothing else. The manifest names the methods that are finished; any other starts
anew, which is fast because indexes are cached.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

from skillpager.bench.data import load_data, to_skill
from skillpager.bench.data.folder import DATA, NODES, QUERIES, SKILLS, BenchFolder, data_entry
from skillpager.bench.data.records import (
    NodeRecord,
    QueryRecord,
    SelectionRecord,
    SkillRecord,
    append_records,
    read_records,
    write_records,
)
from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.run.learned import LEARNED, count_learned, refusal
from skillpager.bench.run.methods import Method, is_ours, parse_method
from skillpager.bench.run.selecting import Made, Plan, machine, notes_in_folder, select_all
from skillpager.bench.run.windows import chunk_tokens_of
from skillpager.bulk.workers import open_processes
from skillpager.enrichment.notes import digest_of
from skillpager.errors import BenchError, SettingsError
from skillpager.factories import make_strategy
from skillpager.json_types import JsonObject
from skillpager.library.discovery import Progress, no_progress
from skillpager.pager import SkillPager
from skillpager.parsing.fragments import split_skill
from skillpager.settings import Settings
from skillpager.strategies.registry import FAMILIES
from skillpager.types import Fragment

logger = logging.getLogger(__name__)

SEED = 42  # paper §4.1, §5.3.1
# the facts by which the manifest distinguishes data sets
DATA_IDENTITY = ("skills", "queries", "skills_sha256", "queries_sha256")
METHODS = "methods"  # entry of the manifest: the options of each finished method, as they were used


def run_settings(settings: Settings, *, style: str) -> Settings:
    """Return settings whose page defaults are the paper's, not the user's."""
    names = ("scope", "strategy", "mmr_lambda", "max_nodes", "max_tokens", "sufficiency", "fill")
    return replace(settings, style=style, **{name: getattr(Settings(), name) for name in names})


def open_run(data: Path | None, out: Path | None, plan: Plan) -> BenchFolder:
    """Return the folder of a run, with its data in it.

    `data` is a benchmark folder or a folder of evidence data, None for the data that `out` holds; `out` is
    the folder of the run, None for `data` itself.

    Raises:
        BenchError: The data has no queries that the judge can use, or `out` holds another run.
        SettingsError: `data` or `out` is missing.
    """
    source = data or out
    if source is None:
        raise SettingsError(
            "There is no data: name a benchmark folder or a folder of evidence data with --data."
        )
    skills, queries = load_data(source)
    if out is None and not (source / SKILLS).is_file():
        raise SettingsError(f"{source} is evidence data: name a folder for the results with --out.")
    if not queries:
        raise BenchError("The data has no queries: write them with `skillpager bench queries`.")
    if plan.judge_evidence and not any(query.critical for query in queries):
        raise BenchError(
            "The evidence judge needs queries with critical lines, and this data has none: "
            "run with `--judge none` and judge with `skillpager bench judge`."
        )
    # the description of the data by its source, with the digests of now
    known = BenchFolder(source).entry(DATA) if (source / SKILLS).is_file() else {}
    known = known or {"source": "evidence", "subset": source.resolve().name}
    described = {**known, **data_entry(skills, queries)}
    # what the contexts depend on, apart from data and methods
    recipe = SkillPager(settings=plan.settings).recipe
    parts: JsonObject = {**asdict(recipe), "style": plan.settings.style}
    folder = BenchFolder(out or source)
    # a folder without results can be used again
    for part, now in (("run", parts), (DATA, {name: described[name] for name in DATA_IDENTITY})):
        before = folder.entry(part)
        changed = [f"{key} {before.get(key)}, now {now[key]}" for key in now if before.get(key) != now[key]]
        if "run" in folder.manifest() and changed:
            raise BenchError(
                f"{folder.path} holds a run of another kind ({'; '.join(changed)}): choose another --out, "
                "or remove the folder."
            )
    for name, records in ((SKILLS, skills), (QUERIES, queries)):
        if not (folder.path / name).exists():
            write_records(folder.path / name, records)
    made: JsonObject = {"seed": SEED, "version": version("skillpager"), "machine": {**machine()}}
    folder.update_manifest({DATA: described, "run": parts, **made})
    return folder


def run_methods(
    folder: BenchFolder,
    labels: Iterable[str],
    plan: Plan,
    *,
    jobs: int = 1,
    complete: bool = False,
    progress: Progress = no_progress,
) -> int:
    """Run methods on all queries of a prepared folder; return how many contexts were made.

    A finished method is not run again, unless its strategy is not ours or it reads notes: code and notes may
    have changed. Methods that have learned from skills of the folder are left out unless the plan allows
    them; then the manifest notes from how many each has learned.

    With `complete` it is an error if one method has learned from the skills. `progress` is called with the
    contexts done and all contexts to do.

    Raises:
        BenchError: A skill fails, or all methods, or one that must be `complete`, learned from the skills.
        SettingsError: A method is unknown, or a strategy of others cannot be loaded, or is none.
    """
    methods = _without_learned(folder, map(parse_method, labels), plan, complete=complete)
    # before the run, so that a mistake in a strategy of others stops it
    used = {label: _options(method, plan.settings) for label, method in methods.items()}
    places = {method.notes for method in methods.values() if method.notes}
    _check_notes(folder, sorted(places), plan.settings.splitter)
    left = [label for label, method in methods.items() if not _is_finished(folder, method, plan)]
    if not left:
        return 0
    finished = {label: knobs for label, knobs in folder.entry(METHODS).items() if label not in left}
    folder.update_manifest({METHODS: finished})
    for label in left:
        folder.selections_file(label).unlink(missing_ok=True)
        folder.judgments_file(EVIDENCE, label).unlink(missing_ok=True)
    queries: dict[str, list[QueryRecord]] = {}
    for query in folder.queries():
        queries.setdefault(query.skill, []).append(query)
    work = [(skill, queries[skill.id]) for skill in folder.skills() if skill.id in queries]
    total, done = len(left) * sum(map(len, queries.values())), 0
    nodes: list[NodeRecord] = []
    for (_, asked), made in zip(work, _select(work, left, plan, jobs), strict=True):
        nodes += made.nodes
        for label in left:
            append_records(folder.selections_file(label), made.selections[label])
            if plan.judge_evidence:
                append_records(folder.judgments_file(EVIDENCE, label), made.judgments[label])
        done += len(left) * len(asked)
        progress(done, total)
    write_records(folder.path / NODES, nodes)
    folder.update_manifest({METHODS: {**finished, **{label: used[label] for label in left}}})
    return total


def _options(method: Method, settings: Settings) -> JsonObject:
    """Return the options of a method as they are used: those of its label, and what its strategy then has.

    A strategy of others is made, to read its numbers and texts.
    """
    given = {name: value for name, value in asdict(method).items() if value is not None}
    family = FAMILIES.get("mmr" if chunk_tokens_of(method.strategy) else method.strategy.partition(":")[0])
    if is_ours(method.strategy):
        return {"mmr_lambda": settings.mmr_lambda, **given} if family and family.weighs else given
    made = vars(make_strategy(method.strategy, mmr_lambda=method.mmr_lambda))
    return {name: value for name, value in made.items() if isinstance(value, str | int | float)} | given


def _check_notes(folder: BenchFolder, places: Iterable[str], splitter: str) -> None:
    """Raise an error for a folder that has notes on none of the skills; tell on how many another has."""
    skills = folder.skills()
    for place in places:
        known, noted = notes_in_folder(place), 0
        for skill in skills:
            tiles = split_skill(to_skill(skill), splitter)
            noted += any(isinstance(tile, Fragment) and digest_of(tile) in known for tile in tiles)
        if not noted:
            raise BenchError(
                f"{place} has no notes on these skills: name one that `skillpager enrich` wrote."
            )
        if noted < len(skills):
            logger.warning("%s has notes on %d of %d skills", place, noted, len(skills))


def _without_learned(
    folder: BenchFolder, methods: Iterable[Method], plan: Plan, *, complete: bool
) -> dict[str, Method]:
    """Return by label the methods that may be run: none that has learned from the skills, or all."""
    found = {method.label: method for method in methods}
    documents = [skill.digests for skill in folder.skills()]
    learned = count_learned(
        found, documents, encoder=plan.settings.encoder, classifier=plan.settings.classifier
    )
    if not learned:
        return found
    if plan.allow_trained:
        folder.update_manifest({LEARNED: {**folder.entry(LEARNED), **learned}})
        return found
    reason = refusal(learned, len(documents))
    if complete or found.keys() <= learned.keys():
        raise BenchError(reason)
    logger.warning("Methods are left out: %s", reason)
    return {label: method for label, method in found.items() if label not in learned}


def _is_finished(folder: BenchFolder, method: Method, plan: Plan) -> bool:
    """Return whether a method was run, with the contexts and verdicts that the plan wants, and stays so."""
    if method.label not in folder.entry(METHODS) or method.notes or not is_ours(method.strategy):
        return False
    first = next(iter(read_records(folder.selections_file(method.label), SelectionRecord)), None)
    if first is None or (plan.keep_contexts and first.context is None):
        return False
    return not plan.judge_evidence or folder.judgments_file(EVIDENCE, method.label).exists()


def _select(
    work: Sequence[tuple[SkillRecord, Sequence[QueryRecord]]], labels: Sequence[str], plan: Plan, jobs: int
) -> Iterator[Made]:
    """Yield the results of each skill, in order."""
    select = partial(select_all, labels=labels, plan=plan)
    skills, queries = zip(*work, strict=True)
    if min(jobs, len(work)) == 1:
        yield from map(select, skills, queries)
        return
    with open_processes(min(jobs, len(work))) as pool:
        yield from pool.map(select, skills, queries)

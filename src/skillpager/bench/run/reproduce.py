"""From data to results: the methods of one or more suites, run and judged in one folder.

Reference: paper §4 and §5, every table and figure.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from skillpager.bench.data import load_data
from skillpager.bench.data.folder import DATA, QUERIES, SKILLS, BenchFolder, data_entry, write_records
from skillpager.bench.run.learned import LEARNED, count_learned, noted_learned, refusal
from skillpager.bench.run.methods import parse_method
from skillpager.bench.run.runs import run_methods
from skillpager.bench.run.selecting import Plan
from skillpager.bench.run.suites import SUITES
from skillpager.encoders.builtin import usable_processors
from skillpager.errors import BenchError
from skillpager.json_types import JsonObject
from skillpager.pager import SkillPager
from skillpager.strategies.baselines.fitted import describe_fit, fits_of

logger = logging.getLogger(__name__)

SEED = 42  # paper §4.1, §5.3.1
# the facts by which the manifest distinguishes data sets
DATA_IDENTITY = ("skills", "queries", "skills_sha256", "queries_sha256")


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
    # what its source said of the data, with the digests of now
    said = BenchFolder(source).manifest().get(DATA) if (source / SKILLS).is_file() else None
    if not isinstance(said, Mapping):
        said = {"source": "evidence", "subset": source.resolve().name}
    described = {**said, **data_entry(skills, queries, source=str(said["source"]), details={})}
    # what the contexts depend on, apart from data and methods
    recipe = SkillPager(settings=plan.settings).recipe
    parts: JsonObject = {
        **asdict(recipe),
        "style": plan.settings.style,
        "baselines": describe_fit(recipe, fits_of(plan.settings)),
    }
    folder = BenchFolder(out or source)
    _check_kind(folder, {"run": parts, DATA: {name: described[name] for name in DATA_IDENTITY}})
    for name, records in ((SKILLS, skills), (QUERIES, queries)):
        if not (folder.path / name).exists():
            write_records(folder.path / name, records)
    folder.update_manifest({DATA: described, "run": parts, "seed": SEED, "version": version("skillpager")})
    return folder


def _check_kind(folder: BenchFolder, described: Mapping[str, JsonObject]) -> None:
    """Raise BenchError if the folder holds results of other data or other parts than described."""
    known = folder.manifest()
    # a folder without results can be used again
    for part, now in described.items() if "run" in known else ():
        entry = known.get(part)
        before = entry if isinstance(entry, Mapping) else {}
        changed = [f"{key} {before.get(key)}, now {now[key]}" for key in now if before.get(key) != now[key]]
        if changed:
            raise BenchError(
                f"{folder.path} holds a run of another kind ({'; '.join(changed)}): choose another --out, "
                "or remove the folder."
            )


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
    known = folder.manifest().get("suites")
    run = {name: list(suites[name]) for name in suites}
    merged = {**(known if isinstance(known, Mapping) else {}), **run}
    # in the order of the tables, however the runs were ordered
    order = {name: place for place, name in enumerate(SUITES)}
    folder.update_manifest(
        {"suites": {n: merged[n] for n in sorted(merged, key=lambda n: order.get(n, len(order)))}}
    )
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

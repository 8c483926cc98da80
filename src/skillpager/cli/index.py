"""`skillpager index`: many skills into the store, one bad one without harm to the others."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.cli.messages import are_notes_heard, print_json, tell_error
from skillpager.cli.session import find_skill, tell_oddities
from skillpager.cli.views import one_line, print_table
from skillpager.errors import ClassifierError, EncoderError, SkillError, SkillPagerError
from skillpager.library import discover, search_folders
from skillpager.output.json import error_json
from skillpager.settings import Settings

if TYPE_CHECKING:
    from skillpager.pager import SkillPager

# an endpoint that is down fails every skill, each after its own repetitions
MAX_FAILURES_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one skill.

    Attributes:
        path: The skill's folder or file.
        name: Its name.
        key: Cache key; empty when it failed.
        nodes: Number of nodes.
        tokens: Tokens of the whole skill.
        seconds: Time it took.
        cached: Whether it was in the store before.
        kept: Whether it is in the store now.
        error: Why it failed; None when it did not.
    """

    path: Path
    name: str = ""
    key: str = ""
    nodes: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cached: bool = False
    kept: bool = False
    error: SkillPagerError | None = None


def find_targets(texts: Sequence[str], settings: Settings) -> list[Path | Outcome]:
    """Return the skills that the arguments mean, each once, and a failure for each that means none.

    Without arguments these are all the skills in use.

    Raises:
        SkillError: There are no arguments, and no skill is found anywhere.
    """
    targets = [target for text in texts for target in _named(text, settings)] if texts else _known(settings)
    first: dict[Path, Path | Outcome] = {}
    for target in targets:
        first.setdefault((target.path if isinstance(target, Outcome) else target).resolve(), target)
    return list(first.values())


def index_all(
    pager: "SkillPager", targets: Sequence[Path | Outcome], *, scope: str | None, jobs: int
) -> list[Outcome]:
    """Return what became of each skill, in the order of `targets`.

    Raises:
        SkillPagerError: What fails one skill would fail them all, such as a setting.
    """
    paths = [target for target in targets if isinstance(target, Path)]
    before = _keys(pager)
    done: dict[Path, Outcome] = {}
    with _bar(len(paths)) as advance:
        for outcome in _in_parallel(pager, paths, scope=scope, jobs=jobs):
            done[outcome.path] = replace(outcome, cached=outcome.key in before)
            advance(outcome.path.name)
    after = _keys(pager)
    outcomes = [target if isinstance(target, Outcome) else done[target] for target in targets]
    return [replace(outcome, kept=outcome.key in after) for outcome in outcomes]


def report(outcomes: Sequence[Outcome], *, exact: bool, as_json: bool) -> None:
    """Print the summary to stdout and failures to stderr."""
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    done = [outcome for outcome in outcomes if outcome.error is None]
    if as_json:
        skills, failures = [_json(outcome) for outcome in done], [_json(outcome) for outcome in failed]
        print_json({"skills": skills, "failed": failures, "tokens_exact": exact})
    elif done:
        about = "" if exact else "about "
        rows = [[o.name, f"{o.nodes:,}", f"{about}{o.tokens:,}", _time(o), str(o.path)] for o in done]
        print_table(["skill", "nodes", "tokens", "time", "path"], rows, right=["nodes", "tokens", "time"])
    for outcome in failed:
        if outcome.error is not None:
            tell_error(outcome.error, as_json=as_json)


def _named(text: str, settings: Settings) -> list[Path | Outcome]:
    """Return the skills that one argument means."""
    try:
        path = find_skill(text, settings)
    except SkillError as error:
        return [Outcome(Path(text), text, error=error)]
    # a folder without skills stands for itself: indexing tells what is wrong with it
    return [skill.path for skill in discover([path])] or [path]


def _known(settings: Settings) -> list[Path]:
    folders = search_folders(settings.skills_dir)
    found = [skill.path for skill in discover(folders) if skill.shadowed_by is None]
    if not found:
        raise SkillError(
            f"No skills are found in {', '.join(map(str, folders))}: name skill folders, Markdown files or "
            "folders that contain skills."
        )
    return found


def _keys(pager: "SkillPager") -> frozenset[str]:
    return frozenset(entry.key for entry in pager.store.entries())


def _in_parallel(
    pager: "SkillPager", paths: Sequence[Path], *, scope: str | None, jobs: int
) -> Iterator[Outcome]:
    """Yield one outcome a path as they come; after failures in a row the rest are not tried."""
    pool = ThreadPoolExecutor(jobs, "skillpager-index")
    remaining = dict.fromkeys(paths)
    try:
        futures = [pool.submit(_index_one, pager, path, scope) for path in paths]
        for outcome in _until_hopeless(as_completed(futures)):
            del remaining[outcome.path]
            yield outcome
    finally:
        # a Ctrl-C must not wait for an endpoint
        pool.shutdown(wait=False, cancel_futures=True)
    for path in remaining:
        yield Outcome(path, path.name, error=SkillError(f"{path} was not tried: see the failures before it."))


def _until_hopeless(futures: Iterable[Future[Outcome]]) -> Iterator[Outcome]:
    in_a_row = 0
    for future in futures:
        outcome = future.result()
        yield outcome
        passing = outcome.error is None or isinstance(outcome.error, SkillError)
        in_a_row = 0 if passing else in_a_row + 1
        if in_a_row == MAX_FAILURES_IN_A_ROW:
            return


def _index_one(pager: "SkillPager", path: Path, scope: str | None) -> Outcome:
    start = time.perf_counter()
    try:
        index = pager.index(path, scope=scope)
    except (SkillError, EncoderError, ClassifierError) as error:
        return Outcome(path, path.name, error=error)
    tell_oddities(index)
    seconds = time.perf_counter() - start
    return Outcome(path, index.skill.name, index.key, len(index.nodes), index.full_tokens, seconds)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on a terminal; yield what moves it on, given the name of what is done."""
    if not (are_notes_heard() and sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda name: progress.update(task, advance=1, description=escape(one_line(name)))


def _time(outcome: Outcome) -> str:
    if not outcome.kept:
        return "not kept"
    return "cached" if outcome.cached else f"{outcome.seconds:.2f} s"


def _json(outcome: Outcome) -> dict[str, object]:
    if outcome.error is not None:
        return {"path": str(outcome.path), **error_json(outcome.error)}
    return {
        "path": str(outcome.path),
        "name": outcome.name,
        "nodes": outcome.nodes,
        "full_tokens": outcome.tokens,
        "cached": outcome.cached,
        "kept": outcome.kept,
        "seconds": round(outcome.seconds, 4),
        "key": outcome.key,
    }

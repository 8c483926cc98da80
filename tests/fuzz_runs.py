"""Runs of the fuzzer: many inputs of one kind, in this process or shared among several."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path

from conftest import SAMPLES, TRAPS
from fuzzing import compose, draw_for, mutate, query, read_pool, window
from page_claims import assert_gaps_can_be_read, assert_page, assert_tiles
from plain_parts import NoStore, plain_pager
from processor_time import cpu_limit, processor_seconds, standard_seconds
from skillpager import SkillPager
from skillpager.errors import SettingsError, SkillPagerError
from skillpager.parsing.skill import read_skill, skill_from_text
from skillpager.settings import Settings
from skillpager.types import Skill, Style

SEED = "skillpager-1"
WORKERS = 2
CHUNK = 2_000
# CPU seconds after which an input counts as one that hangs
TIME_LIMIT = 30
# what docs/security.md promises of reading and splitting: a second for 100 kB, beside what a call itself takes
SECONDS_A_BYTE, CONSTANT = 1e-5, 0.05
# a slower text than this share is timed again
SUSPECT = 0.3
# shorter texts tell of the call, not of the text
TIMED_CHARS = 1_000
MAX_POOL = 3_000
POOL_STEP = 6
MAX_KEPT = 20


@dataclass
class Figures:
    """Figures of many inputs.

    Attributes:
        count: Number of inputs.
        slowest: CPU microseconds a character of the slowest input of `TIMED_CHARS` or more, and its number.
        failures: Number, problem and text of inputs that broke an invariant.
    """

    count: int = 0
    slowest: tuple[float, int] = (0.0, 0)
    failures: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, other: "Figures") -> None:
        """Add the figures of other inputs."""
        self.count += other.count
        self.slowest = max(self.slowest, other.slowest)
        self.failures += other.failures


@dataclass(frozen=True)
class Run:
    """One kind of inputs: its name, how many, and the folder and files that it works with."""

    kind: str
    count: int
    folder: Path
    pool: Path | None = None


def run_all(run: Run, *, workers: int) -> Figures:
    """Return the figures of all inputs of a run; with more than one worker they are shared among processes."""
    figures = Figures()
    starts = range(0, run.count, CHUNK)
    if workers == 1:
        for start in starts:
            figures.add(run_some(run, start))
        return figures
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for done in pool.map(run_some, [run] * len(starts), starts):
            figures.add(done)
            if len(figures.failures) >= MAX_KEPT:  # the rest would only repeat them
                pool.shutdown(cancel_futures=True)
                break
    return figures


def run_some(run: Run, start: int) -> Figures:
    """Return the figures of the inputs from number `start`, of `CHUNK` at most."""
    texts = _texts(run.pool)
    check = CHECKS[run.kind]
    figures = Figures()
    for number in range(start, min(start + CHUNK, run.count)):
        if len(figures.failures) < MAX_KEPT:
            check(run, number, texts, figures)
    return figures


@cache
def _texts(pool: Path | None) -> list[str]:
    own = [path.read_text(encoding="utf-8") for path in sorted([*SAMPLES.rglob("*.md"), *TRAPS.glob("*.md")])]
    return [*own, *read_pool(pool, most=MAX_POOL, step=POOL_STEP)] if pool else own


def _guarded(number: int, text: str, figures: Figures, work: Callable[[], None]) -> None:
    """Run the checks of one input; whatever but a `SkillPagerError` comes out is a failure."""
    figures.count += 1
    try:
        with cpu_limit(TIME_LIMIT):
            work()
    except SkillPagerError as error:
        if not str(error).strip():
            figures.failures.append((number, "an error without a message", text))
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # a panic of Rust is no Exception
        figures.failures.append((number, f"{type(problem).__name__}: {problem}"[:400], text))


def make_text(number: int, texts: list[str]) -> str:
    """Return the text of a number: nine of ten are short, so that there can be very many."""
    draw = draw_for(SEED, number)
    size = draw.choices((120, 400, 2_000, 12_000), (55, 35, 9, 1))[0]
    if draw.random() < 0.3:
        text = compose(draw, draw.randint(1, size))
        return mutate(text, draw, texts) if draw.random() < 0.5 else text
    return mutate(window(texts, draw, size), draw, texts)


def check_text(_run: Run, number: int, texts: list[str], figures: Figures) -> None:
    """Split a mutated or composed text."""
    text = make_text(number, texts)

    def work() -> None:
        def split() -> None:
            assert_tiles(skill_from_text(text))

        spent = processor_seconds(split)
        allowed = CONSTANT + SECONDS_A_BYTE * len(text)
        for _ in range(3):  # again, because the machine may have been busy, or something was loaded first
            if spent > SUSPECT * SECONDS_A_BYTE * len(text):
                spent = min(spent, processor_seconds(split))
        if spent > allowed:
            spent = standard_seconds(split)
        assert spent <= allowed, f"{spent:.3f} s for {len(text)} characters, {allowed:.3f} s are allowed"
        if len(text) >= TIMED_CHARS:
            figures.slowest = max(figures.slowest, (1e6 * spent / len(text), number))

    _guarded(number, text, figures, work)


def check_page(run: Run, number: int, texts: list[str], figures: Figures) -> None:
    """Render pages of a mutated text in a style under a hard ceiling."""
    draw = draw_for(f"{SEED}/page", number)
    text = mutate(window(texts, draw, draw.choice((300, 1_500, 6_000))), draw, texts)
    if draw.random() < 0.3:
        text = compose(draw, draw.choice((300, 2_000)))
    asked = query(draw, texts)[:300]

    def work() -> None:
        pager = _plain(run.folder)
        index = pager.index(skill_from_text(text))
        most = draw.choice((0, 1, 30, 100, 300, 1_000, 10_000))
        style, nodes = draw.choice(tuple(Style)), draw.choice((None, 0, 1, 5))
        known = draw.sample([node.id for node in index.nodes], min(len(index.nodes), draw.choice((0, 0, 3))))
        strategy = draw.choice(("mmr", "topk", "sections", "head"))
        page = pager.page(index, asked, max_tokens=most, max_nodes=nodes, style=style, strategy=strategy)
        assert_page(pager, index, page, limit=most)
        assert_gaps_can_be_read(pager, index, page)
        again = pager.page(
            index, asked, max_tokens=most, max_nodes=nodes, style=style, strategy=strategy, known=known
        )
        assert again.tokens <= most, "the ceiling, with known nodes"
        whole = pager.whole(index, max_tokens=most, style=style)
        assert_page(pager, index, whole, limit=most)

    _guarded(number, text, figures, work)


def check_query(run: Run, number: int, texts: list[str], figures: Figures) -> None:
    """Make a page for a hostile query with the models that ship."""
    text = query(draw_for(f"{SEED}/query", number), texts)

    def work() -> None:
        pager, samples = _shipped(run.folder)
        draw = draw_for(f"{SEED}/budget", number)
        index = pager.index(draw.choice(samples))
        most = draw.choice((None, 50, 300, 2_000))
        try:
            page = pager.page(index, text, max_tokens=most, style=draw.choice(tuple(Style)))
        except SettingsError:
            assert not text.strip() or "\ud800" <= max(text) <= "\udfff" or len(text) > 1_000, "refused"
            raise
        assert_page(pager, index, page, limit=most)

    _guarded(number, text, figures, work)


@cache
def _plain(folder: Path) -> SkillPager:
    return plain_pager(folder, NoStore())


@cache
def _shipped(folder: Path) -> tuple[SkillPager, list[Skill]]:
    names = ("postgres-backup", "git-bisect", "zhongwen-boke-fabu")
    pager = SkillPager(store=NoStore(), settings=Settings(cache_dir=folder))
    return pager, [read_skill(SAMPLES / name) for name in names]


CHECKS: dict[str, Callable[[Run, int, list[str], Figures], None]] = {
    "texts": check_text,
    "pages": check_page,
    "queries": check_query,
}

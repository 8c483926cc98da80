"""Time and memory of every construct of Markdown at two sizes, for each step from a text to a page."""

import gc
import math
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from constructs import CONSTRUCTS
from fuzz_runs import cpu_limit
from plain_parts import plain_pager
from skillpager import SkillPager
from skillpager.errors import SkillPagerError
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import skill_from_text
from skillpager.stores.sql import NoStore
from skillpager.types import SkillIndex
from torture_scale import Torture

# times are only compared in full. Characters of the smaller and the larger text, in `make test` and in full
SHORT_SIZES, FULL_SIZES = (300, 1_200), (15_000, 60_000)
# half of the longest front matter at most, because longer ones are read as text
FRONT_MATTER_SIZES = (7_500, 30_000)
# what docs/security.md promises of every step, beside what a call itself takes
SECONDS_A_CHARACTER, CONSTANT = 1e-5, 0.05
# of splitting; a node of an index takes its row of numbers, and HTML has several tags a word
BYTES_A_CHARACTER, CONSTANT_BYTES = 200, 2_000_000
# each node of an index is compared with all others
SECONDS_A_NODE = {"indexing": 5e-4}
# of the steps that promise it; what seems to grow faster is measured again at sizes so many times as large
MAX_EXPONENT, EXPONENT_OF, LARGER = 1.15, ("splitting",), 4
# shorter times tell of the machine
TIMED_SECONDS = 0.02
REPEATS = 4
# CPU seconds for one step on one construct, all its tries together
SHORT_LIMIT, FULL_LIMIT = 30, 40


@dataclass(frozen=True)
class Measured:
    """CPU seconds at the larger size and their limit, how they grow (the exponent), bytes at the smaller size."""

    seconds: float
    limit: float
    exponent: float
    memory: int


def split(pager: SkillPager, text: str) -> Callable[[], object]:
    """Return the reading and splitting of a text."""
    return lambda: split_skill(skill_from_text(text))


def index(pager: SkillPager, text: str) -> Callable[[], object]:
    """Return the building of an index, without models."""
    skill = skill_from_text(text)
    builder = pager.builder
    return lambda: builder.build(skill, "key")


def page(pager: SkillPager, text: str) -> Callable[[], object]:
    """Return the making of a page of a tenth of the tokens."""
    built: SkillIndex = pager.index(skill_from_text(text))
    limit = built.full_tokens // 10 + 100

    def make() -> object:
        pager._renderers._entries.clear()
        return pager.page(built, "run the next step", max_tokens=limit, strategy="topk")

    return make


STEPS = {"splitting": split, "indexing": index, "page": page}


def measure(step: str, construct: str, sizes: tuple[int, int], pager: SkillPager) -> Measured:
    """Return the figures of a step on a construct; the best of several tries, as long as they are too high."""
    small, large = (CONSTRUCTS[construct](size) for size in sizes)
    works = [STEPS[step](pager, text) for text in (small, large)]
    limit = CONSTANT + SECONDS_A_CHARACTER * len(large)
    if step in SECONDS_A_NODE:
        limit += SECONDS_A_NODE[step] * len(split_skill(skill_from_text(large)))
    times = [math.inf, math.inf]
    for _ in range(REPEATS):
        for place, work in enumerate(works):
            start = time.thread_time()
            work()
            times[place] = min(times[place], time.thread_time() - start)
        exponent = math.log(times[1] / times[0]) / math.log(len(large) / len(small))
        grows = step in EXPONENT_OF and times[1] >= TIMED_SECONDS and exponent > MAX_EXPONENT
        if times[1] <= limit and not grows:
            break
    tracemalloc.start()
    works[0]()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Measured(times[1], limit, exponent if times[1] >= TIMED_SECONDS else 0.0, peak)


@pytest.mark.parametrize("step", STEPS)
def test_no_construct_takes_more_than_its_size(step: str, torture: Torture, tmp_path: Path) -> None:
    pager = plain_pager(tmp_path, NoStore())

    def sizes_of(name: str) -> tuple[int, int]:
        if not torture.scale:
            return SHORT_SIZES
        return FRONT_MATTER_SIZES if name.startswith("front matter") else FULL_SIZES

    gc.collect()
    gc.freeze()  # or each collection would look at all modules of the test run
    problems: list[str] = []
    rates: dict[str, float] = {}
    exponents: dict[str, float] = {}
    memory: dict[str, float] = {}
    every = 1 if torture.scale else 8  # in `make test` an eighth of the constructs for each step
    for name in list(CONSTRUCTS)[list(STEPS).index(step) % every :: every]:
        try:
            with cpu_limit(FULL_LIMIT if torture.scale else SHORT_LIMIT):
                small, large = sizes_of(name)
                found = measure(step, name, (small, large), pager)
                if torture.scale and step in EXPONENT_OF and found.exponent > MAX_EXPONENT:
                    again = measure(step, name, (small * LARGER, large * LARGER), pager)
                    found = replace(found, exponent=min(found.exponent, again.exponent))
        except SkillPagerError:
            continue
        except BaseException as problem:
            if isinstance(problem, KeyboardInterrupt):
                raise
            tracemalloc.stop()
            problems.append(f"{name}: {type(problem).__name__}: {problem}"[:300])
            continue
        characters = [len(CONSTRUCTS[name](size)) for size in sizes_of(name)]
        rates[name] = 1e6 * found.seconds / characters[1]
        exponents[name] = found.exponent
        memory[name] = found.memory / characters[0]
        if torture.scale and found.seconds > found.limit:
            problems.append(f"{name}: {found.seconds:.2f} s for {characters[1]:,} characters")
        if torture.scale and step in EXPONENT_OF and found.exponent > MAX_EXPONENT:
            problems.append(f"{name}: time grows with exponent {found.exponent:.2f}")
        if step == "splitting" and found.memory > CONSTANT_BYTES + BYTES_A_CHARACTER * characters[0]:
            problems.append(f"{name}: {found.memory / characters[0]:.0f} bytes a character")
    gc.unfreeze()
    torture.record(f"{step}: constructs", len(rates))
    for what, figures, unit in (
        ("CPU time", rates, "µs a character"),
        ("memory", memory, "bytes a character"),
        ("exponent of the time", exponents, ""),
    ):
        worst = max(figures, key=lambda name: figures[name])
        torture.record(f"{step}: {what}, median", sorted(figures.values())[len(figures) // 2], unit)
        torture.record(f"{step}: {what}, most", figures[worst], unit)
        torture.record(f"{step}: {what}, worst construct", worst)
    torture.record(f"{step}: constructs over a limit", len(problems))
    assert problems == []

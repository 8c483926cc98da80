"""CPU time and memory of every construct of Markdown, for each step from a text to a page, grow with its size."""

import gc
import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from constructs import CONSTRUCTS
from page_claims import assert_tiles
from plain_parts import NoStore, plain_pager
from processor_time import cpu_limit, processor_seconds, standard_seconds
from skillpager import SkillPager
from skillpager.classifiers.features import describe
from skillpager.errors import SkillPagerError
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.markdown import link_targets
from skillpager.parsing.skill import skill_from_text
from skillpager.types import Fragment
from torture_scale import Torture

# characters of the smaller and the larger text. Short: above a single piece, from which on a text is divided, and below
# the 2,000 parts that may be nearly empty
SHORT_SIZES, FULL_SIZES = (1_950, 3_900), (15_000, 60_000)
# half of the longest front matter at most, because longer ones are read as text
FRONT_MATTER_SIZES = (7_500, 30_000)
# constructs that once took long, or much memory; they are large in short runs as well
COSTLY_SIZES = (20_000, 40_000)
COSTLY = {
    *(name for name in CONSTRUCTS if name.startswith("heading of ")),
    *("square table", "full square table", "table", "wide table row", "words", "empty lines of code"),
    *("growing backtick runs", "inline cdata", "brackets", "quotation marks"),
}
# of every step, beside what a call itself takes: half as much again as docs/security.md says, because times vary
SECONDS_A_CHARACTER, CONSTANT = 1.5e-5, 0.05
# of splitting; a node of an index takes its row of numbers, and HTML has several tags a word
BYTES_A_CHARACTER, CONSTANT_BYTES = 200, 2_000_000
# of a step in short runs, where what a call itself takes counts most
SHORT_SECONDS = 1.5
# each node of an index is compared with all others; a page under a ceiling looks at all nodes at each of its tries
SECONDS_A_NODE = {"indexing": 5e-4, "page": 2e-5}
# of the steps that promise it; what seems to grow faster is measured again at sizes so many times as large
MAX_EXPONENT, EXPONENT_OF, LARGER = 1.15, ("splitting",), 4
# shorter times tell of the machine
TIMED_SECONDS = 0.02
# CPU seconds for one step on one construct, all its tries together
LIMIT = 40


@dataclass(frozen=True)
class Measured:
    """CPU seconds at the larger size and their limit, how they grow (the exponent), bytes at the smaller size."""

    seconds: float
    limit: float
    exponent: float
    memory: int


def split(pager: SkillPager, text: str) -> Callable[[], object]:
    """Return the reading and splitting of a text, and the search for linked files."""

    def read() -> None:
        link_targets(text)
        split_skill(skill_from_text(text))

    assert_tiles(skill_from_text(text))
    return read


def classify(pager: SkillPager, text: str) -> Callable[[], object]:
    """Return the making of the features of node types."""
    fragments = [tile for tile in split_skill(skill_from_text(text)) if isinstance(tile, Fragment)]
    return lambda: describe(fragments)


def index(pager: SkillPager, text: str) -> Callable[[], object]:
    """Return the building of an index, without models; nodes have all types in turn."""
    skill = skill_from_text(text)
    return lambda: pager.builder.build(skill, "key")


def page(pager: SkillPager, text: str) -> Callable[[], object]:
    """Return the making of a page of a tenth of the tokens."""
    built = pager.index(skill_from_text(text))
    limit = built.full_tokens // 10 + 100
    return lambda: pager.page(built, "run the next step", max_tokens=limit, strategy="topk")


STEPS = {"splitting": split, "classifying": classify, "indexing": index, "page": page}


def measure(
    step: str, construct: str, sizes: tuple[int, int], max_exponent: float, pager: SkillPager
) -> Measured:
    """Return the figures of a step on a construct; too long times are measured again, beside the processor's speed."""
    small, large = (CONSTRUCTS[construct](size) for size in sizes)
    works = [STEPS[step](pager, text) for text in (small, large)]
    limit = CONSTANT + SECONDS_A_CHARACTER * len(large)
    if step in SECONDS_A_NODE:
        limit += SECONDS_A_NODE[step] * len(split_skill(skill_from_text(large)))
    for seconds_of in (processor_seconds, standard_seconds):
        times = [seconds_of(work) for work in works]
        exponent = math.log(times[1] / times[0]) / math.log(len(large) / len(small))
        exponent = exponent if times[1] >= TIMED_SECONDS else 0.0
        if times[1] <= limit and exponent <= max_exponent:
            break
    tracemalloc.start()
    works[0]()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Measured(times[1], limit, exponent, peak)


def sizes_of(construct: str, torture: Torture) -> tuple[int, int]:
    """Return the characters of the smaller and the larger text."""
    if not torture.scale:
        return COSTLY_SIZES if construct in COSTLY else SHORT_SIZES
    return FRONT_MATTER_SIZES if construct.startswith("front matter") else FULL_SIZES


@pytest.mark.parametrize("step", STEPS)
def test_no_construct_takes_more_than_its_size(step: str, torture: Torture, tmp_path: Path) -> None:
    pager = plain_pager(tmp_path, NoStore())
    max_exponent = MAX_EXPONENT if torture.scale and step in EXPONENT_OF else math.inf
    gc.collect()
    gc.freeze()  # or each collection would look at all modules of the test run
    problems: list[str] = []
    found: dict[str, Measured] = {}
    characters = {
        name: [len(make(size)) for size in sizes_of(name, torture)] for name, make in CONSTRUCTS.items()
    }
    for name, (small, large) in characters.items():
        try:
            with cpu_limit(LIMIT):
                one = measure(step, name, sizes_of(name, torture), max_exponent, pager)
                if one.exponent > max_exponent:
                    larger = (FULL_SIZES[0] * LARGER, FULL_SIZES[1] * LARGER)
                    again = measure(step, name, larger, max_exponent, pager)
                    one = replace(one, exponent=min(one.exponent, again.exponent))
        except SkillPagerError:
            continue
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # a panic of Rust is no Exception
            tracemalloc.stop()
            problems.append(f"{name}: {type(problem).__name__}: {problem}"[:300])
            continue
        found[name] = one
        if one.seconds > (one.limit if torture.scale else max(one.limit, SHORT_SECONDS)):
            problems.append(f"{name}: {one.seconds:.2f} s for {large:,} characters")
        if one.exponent > max_exponent:
            problems.append(f"{name}: time grows with exponent {one.exponent:.2f}")
        if step == "splitting" and one.memory > CONSTANT_BYTES + BYTES_A_CHARACTER * small:
            problems.append(f"{name}: {one.memory / small:.0f} bytes a character")
    gc.unfreeze()
    times = {name: 1e6 * each.seconds / characters[name][1] for name, each in found.items()}
    memory = {name: each.memory / characters[name][0] for name, each in found.items()}
    exponents = {name: each.exponent for name, each in found.items()}
    for what, unit, figures in (
        ("CPU time", "µs a character", times),
        ("memory", "bytes a character", memory),
        ("exponent of the time", "", exponents),
    ):
        worst = max(figures, key=lambda name: figures[name])
        torture.record(f"{step}: {what}, most", figures[worst], unit)
        torture.record(f"{step}: {what}, worst construct", worst)
    assert problems == []

"""Every construct is read, split and linked in time and memory that grow with its size, or is refused clearly."""

import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from itertools import cycle
from math import log2
from time import thread_time

import pytest

from constructs import CONSTRUCTS
from skillpager.classifiers.features import describe
from skillpager.graph.edges import condition_edges, reference_edges
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.markdown import linked_paths
from skillpager.parsing.skill import skill_from_text
from skillpager.types import Fragment, Node, NodeType

# below the 2,000 parts that may be nearly empty
SIZE = 3_900
# ten times the time that the slowest construct takes on a machine with other work
SECONDS = 1.5


def typed(fragments: list[Fragment]) -> tuple[Node, ...]:
    """Return nodes that can be linked in every way: steps and preconditions in turn."""
    types = cycle((NodeType.PRECONDITION, NodeType.STEP))
    return tuple(
        Node(
            **{item.name: getattr(fragment, item.name) for item in fields(Fragment)},
            id=f"n{fragment.ordinal}",
            type=kind,
            type_confidence=1.0,
            tokens=1,
        )
        for fragment, kind in zip(fragments, types, strict=False)
    )


def read(text: str) -> None:
    """Do all of the offline stage that depends on the form of the text."""
    skill = skill_from_text(text + "\nx")  # so that it is not empty
    linked_paths(text)
    tiles = split_skill(skill)
    assert "".join(tile.text for tile in tiles) == skill.files[0].text
    fragments = [tile for tile in tiles if isinstance(tile, Fragment)]
    describe(fragments)
    nodes = typed(fragments)
    reference_edges(nodes)
    condition_edges(nodes)


def seconds(work: Callable[[str], object], text: str) -> float:
    """Return the processor time of `work` in this thread: others may still end the work of other tests."""
    begin = thread_time()
    work(text)
    return thread_time() - begin


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_time_grows_with_the_size(name: str) -> None:
    large = seconds(read, CONSTRUCTS[name](SIZE))
    if large > SECONDS / 5:  # other work on the machine may make one measurement grow
        assert any(exponent(CONSTRUCTS[name]) < 1.5 for _ in range(3))
        large = min(large, seconds(read, CONSTRUCTS[name](SIZE)))
    assert large < SECONDS


def exponent(construct: Callable[[int], str]) -> float:
    """Return how the seconds grow with the size: 1 if in proportion.

    Both sizes are above that of a single piece, from which on a text is divided.
    """
    small, large = (min(seconds(read, construct(size)) for _ in range(3)) for size in (SIZE // 2, SIZE))
    return log2(large / small)


@pytest.mark.parametrize(
    "name",
    [name for name in CONSTRUCTS if name.startswith("heading of ")]
    + [
        "square table",
        "growing backtick runs",
        "inline cdata",
        "brackets",
        "quotation marks",
    ],
)
def test_what_took_long_is_fast_in_large_documents(name: str) -> None:
    assert seconds(read, CONSTRUCTS[name](40_000)) < 4


@pytest.mark.parametrize("name", ["table", "full square table", "wide table row", "square table", "words"])
def test_memory_is_at_most_two_hundred_bytes_a_byte(name: str) -> None:
    text = CONSTRUCTS[name](20_000)
    skill = skill_from_text(text)
    tracemalloc.start()
    split_skill(skill)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * len(text)


def test_blank_lines_are_searched_once_for_cues() -> None:
    text = "```\nx" + "\n" * 1190 + "y\n```\n\n"
    fragments = [tile for tile in split_skill(skill_from_text(text * 10)) if isinstance(tile, Fragment)]
    begin = thread_time()
    describe(fragments)
    assert thread_time() - begin < 1

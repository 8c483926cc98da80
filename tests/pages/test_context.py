"""Contexts: document order, breadcrumbs, lead-ins, markers that tell the truth, hard ceilings."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from golden import check, pages_text
from skillpager import SkillPager
from skillpager.pages.addresses import find_nodes
from skillpager.pages.assemble import PageMeter
from skillpager.pages.render import PageRenderer, whole_text
from skillpager.parsing.skill import skill_from_files
from skillpager.types import SkillIndex, Style

# long enough for gaps that are worth a marker
INTRO = " ".join(
    f"Intro sentence {number} explains what the demo is about in general terms." for number in range(9)
)
DETAILS = " ".join(
    f"Detail {number} matters little to most readers and can be left out." for number in range(9)
)

DOCUMENT = f"""---
name: demo
description: A demo.
---
# Demo

{INTRO}

## Setup

Install the following tools before you begin with anything else at all:

- The first tool, which is needed for building the whole thing from source code, and which takes a while to
  install because it brings a compiler, a linker, a debugger, a profiler and a long list of header files.
- The second tool, which is needed for testing the whole thing on your machine, and which takes a while to
  install because it brings a browser, a driver for it, fonts in many scripts and recordings of old runs.
- The third tool, which is needed for shipping the whole thing to its many users, and which takes a while to
  install because it brings keys, certificates, templates for letters and a directory of all the users.

## Use

Run it. Then stop it again when the work is done and nobody needs it any longer.

### Details

{DETAILS}
"""


@pytest.fixture
def demo(quick_pager: SkillPager) -> SkillIndex:
    """The index of DOCUMENT."""
    return quick_pager.index(DOCUMENT)


def page_of(index: SkillIndex, pager: SkillPager, *, style: Style = Style.MARKED) -> PageRenderer:
    """Return a renderer with a show command."""
    return PageRenderer(index, pager.token_counter, style=style, show="skillpager show demo")


def ordinal(index: SkillIndex, words: str) -> int:
    """Return the node that holds `words`."""
    return next(node.ordinal for node in index.nodes if words in node.text)


def test_every_gap_is_a_mark_whose_lines_and_headings_are_true(
    demo: SkillIndex, quick_pager: SkillPager
) -> None:
    context = page_of(demo, quick_pager).render([ordinal(demo, "The second tool")])
    marks = re.findall(r"^\[… (L(\d+)(?:-(\d+))?)(?:: (.+))?\]$", context.text, re.MULTILINE)
    assert [titles for *_, titles in marks] == ["", "Use"]
    for (address, first, last, _), omission in zip(marks, context.omitted, strict=True):
        assert (int(first), int(last or first)) == (omission.start_line, omission.end_line)
        nodes = [demo.nodes[number] for number in find_nodes(demo, [address])]
        assert tuple(node.id for node in nodes) == omission.nodes
        assert omission.tokens == sum(node.tokens for node in nodes)
        assert omission.types == Counter(node.type for node in nodes)
    shown = {node.id for node in context.nodes}
    hidden = {name for omission in context.omitted for name in omission.nodes}
    assert shown | hidden == {node.id for node in demo.nodes}
    assert not shown & hidden


def test_one_blank_line_stands_around_the_name_of_a_file(quick_pager: SkillPager) -> None:
    files = [("SKILL.md", "\n\nX first. \n\n\n\n"), ("b.md", "\n\n  code\n"), ("c.md", "X third X\n\n")]
    index = quick_pager.index(skill_from_files(files))
    assert whole_text(index) == "X first.\n\n[file: b.md]\n\n  code\n\n[file: c.md]\n\nX third X\n"


@pytest.fixture(scope="module")
def sample_indexes(quick_pager: SkillPager) -> list[tuple[SkillIndex, SkillPager]]:
    """Indexes of all samples."""
    return [(quick_pager.index(path), quick_pager) for path in sorted(SAMPLES.iterdir())]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_meter_prices_what_is_rendered(
    sample_indexes: list[tuple[SkillIndex, SkillPager]], data: st.DataObject
) -> None:
    index, pager = data.draw(st.sampled_from(sample_indexes))
    page = page_of(index, pager, style=data.draw(st.sampled_from(list(Style))))
    meter = PageMeter(page)
    chosen = data.draw(st.lists(st.integers(0, len(index.nodes) - 1), unique=True, min_size=1, max_size=25))
    for number in chosen:
        expected = meter.cost(number)
        meter.add(number)
        assert meter.tokens == expected
    context = page.render(chosen)
    if not context.complete:
        # parts counted one by one never come out far below the whole, nor more than a token a part above
        assert context.tokens <= meter.tokens + 2
        assert meter.tokens <= context.tokens + 3 * len(chosen) + 6


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_ceiling_is_hard(
    sample_indexes: list[tuple[SkillIndex, SkillPager]], data: st.DataObject
) -> None:
    index, pager = data.draw(st.sampled_from(sample_indexes))
    limit = data.draw(st.integers(0, 3000))
    context = pager.page(
        index,
        data.draw(st.sampled_from(["restore one table", "404", "Deployment stuck", "周五 发布"])),
        max_tokens=limit,
        strategy=data.draw(st.sampled_from(["mmr", "topk", "full"])),
        style=data.draw(st.sampled_from(list(Style))),
        show="skillpager show x",
    )
    assert context.tokens <= limit
    assert context.tokens == pager.token_counter.count(context.text)


def test_pages_of_the_samples_are_what_they_were(sample_pager: SkillPager) -> None:
    pytest.importorskip("rs_bpe")  # the golden file has exact token counts
    check("pages.txt", pages_text(sample_pager))

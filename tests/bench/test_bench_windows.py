"""Windows of the source: they tile the body, fit their size, and their pages name lines that can be read."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from messages import raises
from skillpager import SkillPager
from skillpager.bench.run.windows import chunk_tokens_of, split_windows, window_index, window_offsets
from skillpager.errors import SettingsError
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import read_skill, skill_from_text
from skillpager.tokens import EstimatedCounter, default_counter
from skillpager.types import Fragment, Heading, Page, Skill, SkillIndex, SourceFile, TokenCounter

KUBERNETES = SAMPLES / "kubernetes-debugging"
QUERIES = ["pod stuck in Pending", "404", "restore one table", "周五 发布"]
COUNTERS = [default_counter(), EstimatedCounter()]

# words, white space of every kind, scripts without spaces, and signs
_PARTS = st.sampled_from([
    "word ", "`code`", "\n", "\r\n", "\r", "  ", "\t- item", "\n\n    ",
    "# Title\n", "节点", "é", "x" * 70, "🙂", "---\n",
])  # fmt: skip
TEXTS = st.one_of(st.lists(_PARTS, max_size=60).map("".join), st.text(max_size=80))


class CharacterCounter:
    """A token a character, and a record of how many characters were counted."""

    id, exact = "characters", True

    def __init__(self) -> None:
        self.counted = 0

    def count(self, text: str) -> int:
        self.counted += len(text)
        return len(text)


def file_of(text: str, *, body_start: int = 0) -> SourceFile:
    return SourceFile("SKILL.md", text, hashlib.sha256(text.encode()).hexdigest(), body_start)


def windows(text: str, counter: TokenCounter, size: int) -> list[str]:
    """Return the texts of the windows of a file without front matter."""
    spans = window_offsets(file_of(text), counter, chunk_tokens=size)
    return [text[start:end] for start, end in spans]


def chunks_of(skill: Skill, size: int) -> list[Fragment]:
    headings = [tile for tile in split_skill(skill) if isinstance(tile, Heading)]
    return split_windows(skill, headings, default_counter(), chunk_tokens=size)


def windows_of(pager: SkillPager, source: Path | str, size: int) -> SkillIndex:
    """Return the window index of a skill, built by the parts of a pager."""
    return window_index(pager.builder, pager.index(source).skill, size)


def page_of(pager: SkillPager, source: Path | str, query: str, size: int, **options: Any) -> Page:
    """Return the page of the chunk baseline."""
    return pager.page(windows_of(pager, source, size), query, strategy="mmr", **options)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, size=st.integers(1, 40), counter=st.sampled_from(COUNTERS), start=st.integers(0, 20))
def test_windows_tile_the_body_and_fit(text: str, size: int, counter: TokenCounter, start: int) -> None:
    file = file_of(text, body_start=min(start, len(text)))
    spans = list(window_offsets(file, counter, chunk_tokens=size))
    assert "".join(text[begin:end] for begin, end in spans) == text[file.body_start :]
    assert all(begin < end for begin, end in spans)
    assert all(end - begin == 1 or counter.count(text[begin:end]) <= size for begin, end in spans)


@settings(max_examples=100, deadline=None)
@given(
    words=st.lists(st.text("abc", min_size=1, max_size=9), min_size=1, max_size=80), size=st.integers(10, 40)
)
def test_a_window_holds_as_many_words_as_fit(words: list[str], size: int) -> None:
    text = " ".join(words)
    expected = [""]
    for word in re.findall(r"\S+\s*", text):
        if len(expected[-1]) + len(word) > size:
            expected.append("")
        expected[-1] += word
    assert windows(text, CharacterCounter(), size) == expected


def test_a_window_ends_at_white_space_and_an_indentation_goes_with_its_line() -> None:
    text = "first words\n    indented\n\n  - item one\r\n  - item two\n"
    found = windows(text, CharacterCounter(), 16)
    assert found == ["first words\n", "    indented\n\n", "  - item one\r\n", "  - item two\n"]


@pytest.mark.parametrize("unit", ["some words of a line ", "Zm9vYmFyYmF6", " "])
def test_a_line_of_two_megabytes_is_counted_a_bounded_number_of_times(unit: str) -> None:
    text = unit * (2_000_000 // len(unit))
    counter = CharacterCounter()
    assert "".join(windows(text, counter, 256)) == text
    assert counter.counted < 25 * len(text)


def test_chunks_leave_out_front_matter_and_blank_space_and_tell_true_lines() -> None:
    skill = read_skill(KUBERNETES)
    found = chunks_of(skill, 64)
    assert [chunk.ordinal for chunk in found] == list(range(len(found)))
    for file in skill.files:
        own = [chunk for chunk in found if chunk.span.file == file.path]
        assert "".join(chunk.text for chunk in own).strip() == file.text[file.body_start :].strip()
        for chunk in own:
            span = chunk.span
            assert chunk.text == file.text[span.start : span.end]
            assert span.start_line == file.text.count("\n", 0, span.start) + 1
            assert span.end_line == file.text.count("\n", 0, span.end - 1) + 1
    assert chunks_of(skill_from_text("---\nname: a\ndescription: b\n---\n \n\n", max_bytes=99), 64) == []


def test_a_chunk_is_told_the_headings_it_stands_under() -> None:
    text = "intro\n\n# A\n\none two three four five\n\n## B\n\nsix seven eight nine ten\n\n# C\n\nlast words of it\n"
    skill = skill_from_text(text, max_bytes=999)
    headings = [tile for tile in split_skill(skill) if isinstance(tile, Heading)]
    found = split_windows(skill, headings, CharacterCounter(), chunk_tokens=16)
    paths = {chunk.text.split()[0]: chunk.heading_path for chunk in found}
    a, b, c = ("A",), ("A", "B"), ("C",)
    expected = {"intro": (), "two": a, "five": a, "seven": b, "nine": b, "last": c, "it": c}
    assert paths == expected


def test_a_window_index_has_a_key_of_its_own(quick_pager: SkillPager) -> None:
    index, windows = quick_pager.index(KUBERNETES), windows_of(quick_pager, KUBERNETES, 256)
    assert windows.recipe == replace(index.recipe, splitter="chunks-256")
    assert windows.full_tokens == index.full_tokens
    assert windows.headings == index.headings
    assert [node.id for node in windows.nodes] == [f"c{number}" for number in range(len(windows.nodes))]
    assert all(node.tokens <= 256 for node in windows.nodes)
    assert len({index.key, windows.key, windows_of(quick_pager, KUBERNETES, 64).key}) == 3


@pytest.mark.parametrize(("strategy", "size"), [("chunk_mmr", 256), ("chunk_mmr:16", 16), ("mmr", None)])
def test_the_name_of_the_method_says_the_size(strategy: str, size: int | None) -> None:
    assert chunk_tokens_of(strategy) == size


@pytest.mark.parametrize("size", ["", "3", "1.5", "-20", "256 "])
def test_a_size_that_is_none_is_a_clear_error(size: str) -> None:
    with raises(SettingsError):
        chunk_tokens_of(f"chunk_mmr:{size}")


@pytest.mark.parametrize("name", ["chunk_mmr", "chunk_mmr:64"])
def test_pages_refuse_the_baseline_and_say_where_it_is(quick_pager: SkillPager, name: str) -> None:
    with raises(SettingsError):
        quick_pager.page(KUBERNETES, QUERIES[0], strategy=name)


def test_the_number_of_chunks_decides_on_the_dynamic_budget(hashing_pager: SkillPager) -> None:
    text = "\n\n".join(
        f"Sentence number {number} of a long text about {number * 7}." for number in range(700)
    )
    for size, expected in ((256, 20), (64, 60)):
        context = page_of(hashing_pager, text, "long text", size, style="plain", mmr_lambda=1.0)
        assert context.selection is not None
        assert len(context.selection.picks) == expected


def test_a_page_of_chunks_is_true_and_reads_like_the_document(pager: SkillPager) -> None:
    context = page_of(pager, KUBERNETES, QUERIES[0], 64, max_nodes=3, show="skillpager show k")
    assert context.tokens == pager.token_counter.count(context.text)
    files = {file.path: file.text.splitlines(keepends=True) for file in read_skill(KUBERNETES).files}
    for omission in context.omitted:
        assert 1 <= omission.start_line <= omission.end_line <= len(files[omission.file])
    positions = [context.text.index(node.text.strip()) for node in context.nodes]
    assert positions == sorted(positions)

"""Token counts: exact ones are o200k_base's, estimates come close and say that they are estimates."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SAMPLES
from messages import raises
from skillpager import SkillPager
from skillpager.errors import MissingExtraError
from skillpager.tokens import EstimatedCounter, O200kCounter, default_counter

# "hello world" is 24912 2375 in o200k_base; a special token's name in a text is plain text
KNOWN = {"": 0, "hello world": 2, "Hello, world!": 4, "<|endoftext|>": 7}


@pytest.mark.parametrize(("text", "count"), KNOWN.items())
def test_exact_counts(text: str, count: int) -> None:
    counter = O200kCounter()
    assert counter.exact
    assert counter.count(text) == count


PIECES = ["\n", "\n\n", "\r\n", " ", "  ", "/", "//", "```", "- a", "# T", ".", ":", "'s", "12345", "。", "é"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=60).map("".join))
def test_counting_in_parts_is_counting_the_whole(text: str) -> None:
    from rs_bpe.bpe import openai

    long = f"{text}\n" * (1 + 1200 // (len(text) + 1))
    assert O200kCounter().count(long) == openai.o200k_base().count(long)


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.iterdir()))
def test_the_estimate_is_within_a_quarter_on_every_sample(name: str) -> None:
    text = (SAMPLES / name / "SKILL.md").read_text(encoding="utf-8")
    exact, estimate = O200kCounter().count(text), EstimatedCounter().count(text)
    assert 0.75 < estimate / exact < 1.25


def test_without_the_extra_the_estimate_is_used_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillpager.tokens.find_spec", lambda name: None)
    default_counter.cache_clear()
    try:
        assert default_counter().id == "estimate-2"
        assert not default_counter().exact
    finally:
        default_counter.cache_clear()
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)
    with raises(MissingExtraError):
        O200kCounter()


def test_a_counter_of_ones_own_plugs_in(tmp_path: object) -> None:
    class Words:
        id = "words"
        exact = False

        def count(self, text: str) -> int:
            return len(text.split())

    pager = SkillPager(encoder="hashing", token_counter=Words(), store=tmp_path)  # type: ignore[arg-type]
    context = pager.page(SAMPLES / "postgres-backup", "restore a table", max_tokens=200)
    assert context.tokens == len(context.text.split()) <= 200
    pager.close()

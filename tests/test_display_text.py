"""Text of unknown origin on one line: nothing steers a terminal, hides, or looks like another line."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpager import display_text
from skillpager.tokens import EstimatedCounter, O200kCounter


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 40))
def test_one_line_is_one_plain_line_of_bounded_length(text: str, width: int) -> None:
    for line in (display_text.one_line(text), cut := display_text.one_line(text, width)):
        assert display_text.is_plain(line)
        assert line.splitlines() in ([], [line])
        assert display_text.one_line(line) == line
        line.encode()
    assert len(cut) <= width


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\u2028d\x85e", "a b c d e"),
        ("\x1b]0;owned\x07", "\ufffd]0;owned\ufffd"),
        ("\x9b2J", "\ufffd2J"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("\u2066x\u2069 \u200bz\ufeff", "x z"),
        ("hidden\U000e0041\U000e0042", "hidden"),
        ("a\ud800b\udcff", "a\ufffdb\ufffd"),
        ("👩\u200d💻 می\u200cخواهم 速率 é", "👩\u200d💻 می\u200cخواهم 速率 é"),
    ],
)
def test_one_line_shows_what_is_there_and_hides_nothing(text: str, shown: str) -> None:
    assert display_text.one_line(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_texts_for_a_terminal_keep_their_lines(text: str) -> None:
    assert display_text.printable(text).count("\n") == text.count("\n")
    assert display_text.encodable(text).encode().decode() == display_text.encodable(text)
    form = display_text.escaped_json(json.dumps([text], ensure_ascii=False))
    assert display_text.printable(form) == form
    assert json.loads(form) == [display_text.encodable(text)]


@pytest.mark.parametrize(
    ("chance", "words"),
    [(0.0099, "under 1 %"), (0.01, "1 %"), (0.5, "50 %"), (0.99, "99 %"), (0.9999, "over 99 %")],
)
def test_no_estimate_is_shown_as_certain_or_impossible(chance: float, words: str) -> None:
    assert display_text.chance_words(chance) == words
    told = display_text.sufficiency_words(chance, broad=False)
    assert told == f"holds all that is needed with an estimated chance of {words}"


@pytest.mark.parametrize(("chance", "word"), [(0.49, "hardly"), (0.5, "possibly"), (0.9, "likely")])
def test_the_chance_of_a_page_for_a_broad_query_is_told_in_words(chance: float, word: str) -> None:
    assert (
        display_text.sufficiency_words(chance, broad=True).partition(",")[0]
        == f"{word} holds all that is needed"
    )


@pytest.mark.parametrize("size", [1, 5_000])
def test_a_lone_surrogate_is_counted(size: int) -> None:
    text = "half \ud800 a character\n" * size
    assert EstimatedCounter().count(text) > 0
    pytest.importorskip("rs_bpe")
    assert O200kCounter().count(text) == O200kCounter().count(text.replace("\ud800", "\ufffd"))

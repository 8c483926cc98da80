"""Sentence boundaries: Latin and CJK, never inside code, links, URLs or after abbreviations."""

import re
from itertools import pairwise

import pytest

from rust_panics import PANICS, needs_panic
from skillpager.parsing.blocks import WINDOW, sentence_starts


def split(text: str) -> list[str]:
    """Return the sentences of `text`, cut at their starts."""
    return [text[start:end] for start, end in pairwise([*sentence_starts(text), len(text)])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four.", ["One. ", "Two! ", "Three? ", "Four."]),
        ("Use `a. B` now. Then stop.", ["Use `a. B` now. ", "Then stop."]),
        ("Use ``a`. B`` now. Stop.", ["Use ``a`. B`` now. ", "Stop."]),
        ("See [the docs. Part 2](http://x.org/a. b) first. Go.", ["See [the docs. Part 2](http://x.org/a. b) first. ", "Go."]),
        ("Open https://x.org/a.B?c.D! Now go.", ["Open https://x.org/a.B?c.D! ", "Now go."]),
        ("A tag <img alt='a. B'> here. Done.", ["A tag <img alt='a. B'> here. ", "Done."]),
        ("Tools, e.g. Make, help. Use one.", ["Tools, e.g. Make, help. ", "Use one."]),
        ("Ask Dr. Miller et al. Jones vs. Smith.", ["Ask Dr. Miller et al. Jones vs. Smith."]),
        ("Version 1.2.3 is out. Upgrade.", ["Version 1.2.3 is out. ", "Upgrade."]),
        ("Run npm ci. then build.", ["Run npm ci. then build."]),
        ("**Done.** Next one. *Yes.* No.", ["**Done.** ", "Next one. ", "*Yes.* ", "No."]),
        ("第一句。第二句！第三句？", ["第一句。", "第二句！", "第三句？"]),
        ("使用 `pip. X` 安装。版本 v1.2 发布了。", ["使用 `pip. X` 安装。", "版本 v1.2 发布了。"]),
        ("Nutze z. B. Make. Dann weiter.", ["Nutze z. B. Make. ", "Dann weiter."]),
        ("A\u00a0.NET application. Next.", ["A\u00a0.NET application. ", "Next."]),
        ("Seit A\u202f.B geht es.\u2003Dann weiter.", ["Seit A\u202f.B geht es.\u2003", "Dann weiter."]),
        ("**One. Two.** Three.", ["**One. Two.** ", "Three."]),
        ("**好。**行。", ["**好。**", "行。"]),
        ("见“一。二” usw. Then more. Go.", ["见“一。二” usw. Then more. ", "Go."]),
        ("好。**坏。**行。", ["好。", "**坏。**", "行。"]),
        ("好。`a`。[b](c)。行。", ["好。", "`a`。", "[b](c)。", "行。"]),
        ("**“好。”**下。", ["**“好。”**", "下。"]),
        ("***“好。”***下。", ["***“好。”***", "下。"]),
        ("Good. **Bad.** Fine.", ["Good. ", "**Bad.** ", "Fine."]),
        ("**One.**" + " " * 37 + "Two.", ["**One.**" + " " * 37, "Two."]),  # 40 characters are looked through
        ("**One.**" + " " * 38 + "Two.", ["**One.**" + " " * 38 + "Two."]),
        ("No end", ["No end"]),
        ("", [""]),
    ],
)  # fmt: skip
def test_boundaries(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_a_long_text_is_cut_in_windows_without_losing_boundaries() -> None:
    sentence = "This sentence stands in a very long paragraph. "
    assert sentence_starts(sentence * 3000) == [number * len(sentence) for number in range(3000)]


@pytest.mark.parametrize(("length", "starts"), [(3_000, [0]), (WINDOW, [0]), (WINDOW + 1, [0, WINDOW // 2])])
def test_a_text_is_cut_in_windows_only_if_it_is_longer_than_one(length: int, starts: list[int]) -> None:
    aside = "(One thing. Second thing.)"  # the segmenter sees no sentences in it, unless it begins within
    words = "word " * WINDOW
    text = words[: WINDOW // 2 - len("(One thing. ")] + aside + words
    assert sentence_starts(text[: length - 1] + ".") == starts


@needs_panic
@pytest.mark.parametrize("before", ["", "。 a "])
def test_text_on_which_the_segmenter_fails_is_one_sentence(
    before: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("skillpager.parsing.blocks._WIDE_BLANK", re.compile(r"(?!)"))
    text = f"{before}{PANICS}. Next."
    assert split(text) == [text]
    (message,) = caplog.messages
    said = r"sentencex cannot process a text \(\w+ .+\), which is left as one sentence"  # and why
    assert re.fullmatch(said, message)

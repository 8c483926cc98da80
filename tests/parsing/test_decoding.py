"""Bytes as text, and files that are not plain text."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messages import raises
from skillpager.errors import SkillError
from skillpager.files import decode

NO_TEXTS = {
    "plain.pdf": b"%PDF-1.4\nonly ASCII\n",
    "letter.rtf": b"{\\rtf1\\ansi Text.}",
    "SKILL.md.gz": gzip.compress(b"# Title", mtime=0),
    "late.md": b"x" * 8191 + b"\0",
    "wide.md": "# Title".encode("utf-16"),
    "latin.md": b"# Title\n\nM\xfcll\n",
}


@pytest.mark.parametrize("name", NO_TEXTS)
def test_what_is_not_plain_text_is_refused_with_a_remedy(name: str) -> None:
    with raises(SkillError):
        decode(NO_TEXTS[name], name)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.integers(0, 4))
def test_text_is_returned_as_it_is_and_a_beginning_up_to_a_whole_character(text: str, cut: int) -> None:
    # a beginning that is that of a document is covered above
    text = f" {text}"
    data = text.encode()
    assert decode(data, "x.md") == text
    part = data[: max(1, len(data) - cut)]
    assert text.startswith(decode(part, "x.md", complete=False))
    assert len(decode(part, "x.md", complete=False).encode()) > len(part) - 4


@pytest.mark.parametrize(
    "text", [b"GIF8 is how GIF files begin.", b"PK\x03\x04 in words", b"x" * 8192 + b"\0"]
)
def test_text_that_begins_as_other_files_do_stays_text(text: bytes) -> None:
    assert decode(text, "x.md") == text.decode()

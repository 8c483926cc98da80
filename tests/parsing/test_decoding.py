"""Bytes as text, and the kinds of files that are none."""

import gzip
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messages import raises
from skillpager.errors import SkillError
from skillpager.parsing.decoding import decode
from skillpager.parsing.skill import read_skill


def zipped() -> bytes:
    """Return a ZIP archive with one Markdown file."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("skill/SKILL.md", "# Title")
    return made.getvalue()


NO_TEXTS = {
    "paper.pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "plain.md": b"%PDF-1.4\nonly ASCII\n",
    "letter.rtf": b"{\\rtf1\\ansi Text.}",
    "skill.zip": zipped(),
    "letter.docx": zipped(),
    "SKILL.md.gz": gzip.compress(b"# Title", mtime=0),
    "picture.md": b"\x89PNG\r\n\x1a\n\0",
    "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "unknown.md": b"some\0thing",
    "wide.md": "# Title".encode("utf-16"),
    "latin.md": b"# Title\n\nM\xfcll\n",
}


@pytest.mark.parametrize("name", NO_TEXTS)
def test_the_kind_of_what_is_no_text_is_named(name: str) -> None:
    with raises(SkillError):
        decode(NO_TEXTS[name], name)


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.integers(0, 4))
def test_text_is_returned_as_it_is_and_a_beginning_up_to_its_last_whole_character(
    text: str, cut: int
) -> None:
    # a beginning that is that of a document is covered above
    text = f" {text}"
    data = text.encode()
    assert decode(data, "x.md") == text
    part = data[: max(1, len(data) - cut)]
    assert text.startswith(decode(part, "x.md", complete=False))
    assert len(decode(part, "x.md", complete=False).encode()) > len(part) - 4


@pytest.mark.parametrize("text", [b"GIF8 is how GIF files begin.", b"PK\x03\x04 in words"])
def test_text_that_begins_as_other_files_do_stays_text(text: bytes) -> None:
    assert decode(text, "x.md") == text.decode()


def test_a_linked_document_is_left_out_by_its_kind(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("Read [the paper](paper.md).\n", encoding="utf-8")
    (tmp_path / "paper.md").write_bytes(b"%PDF-1.7\n\xe2")
    assert [
        warning.replace(str(tmp_path), "")
        for warning in read_skill(tmp_path).warnings
        if warning.startswith("left out")
    ] == [
        "left out: /paper.md is a PDF document: convert it to Markdown, for instance with markitdown, and read "
        "the result."
    ]

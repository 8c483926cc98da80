"""Decode the bytes of a file as text; what is no text is refused by the name of its kind."""

import codecs
from pathlib import PurePath

from skillpager.errors import SkillError

_PROBE_BYTES = 8192
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_CONVERT = "convert it to Markdown, for instance with markitdown, and read the result"
_UNPACK = "unpack it, and name the folder or file inside"
_NAME_TEXT = "only Markdown and other plain text can be read"
_PACKED_DOCUMENTS = {
    ".docx": "a Word document",
    ".xlsx": "an Excel workbook",
    ".pptx": "a PowerPoint presentation",
}
# first bytes of common files that are no plain text: kind, and what to do with one
_KINDS = (
    (b"%PDF-", "a PDF document", _CONVERT),
    (b"{\\rtf", "an RTF document", _CONVERT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", _CONVERT),
    (b"PK\x03\x04", "a ZIP archive", _UNPACK),
    (b"\x1f\x8b", "a gzip archive", _UNPACK),
    (b"\x89PNG\r\n", "a PNG image", _NAME_TEXT),
    (b"\xff\xd8\xff", "a JPEG image", _NAME_TEXT),
    (b"GIF8", "a GIF image", _NAME_TEXT),
)
# such a document may be plain ASCII; the other beginnings only name what turned out to be no text
_ALWAYS = (b"%PDF-", b"{\\rtf")


def decode(data: bytes, place: str, *, complete: bool = True) -> str:
    """Return the text of UTF-8 data.

    Args:
        data: Content of a file, or its beginning.
        place: What it is called in errors; the name of a file, if it has one.
        complete: Whether `data` is all of it; if not, it may end within a character.

    Raises:
        SkillError: It is a document, an archive, an image or other binary data, or in another encoding.
    """
    if data.startswith(_UTF16_MARKS) and not data.startswith(codecs.BOM_UTF32_LE):
        raise SkillError(f"{place} is UTF-16: save it as UTF-8.")
    if data.startswith(_ALWAYS) or b"\0" in data[:_PROBE_BYTES]:
        kind, remedy = _kind(data, place) or ("a binary file", _NAME_TEXT)
        raise SkillError(f"{place} is {kind}: {remedy}.")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=complete)
    except UnicodeDecodeError as error:
        if known := _kind(data, place):
            raise SkillError(f"{place} is {known[0]}: {known[1]}.") from error
        line = data.count(b"\n", 0, error.start) + 1
        raise SkillError(
            f"{place}:{line} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start}): "
            "save the file as UTF-8."
        ) from error


def _kind(data: bytes, place: str) -> tuple[str, str] | None:
    """Return the kind of a file that is no plain text, and what to do with it; None if it is not known."""
    found = next(((kind, remedy) for start, kind, remedy in _KINDS if data.startswith(start)), None)
    packed = _PACKED_DOCUMENTS.get(PurePath(place).suffix.lower())
    return (packed, _CONVERT) if found == ("a ZIP archive", _UNPACK) and packed else found

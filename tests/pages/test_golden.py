"""Outlines, pages and traces of the samples are what they were; `make golden` writes them anew."""

import pytest

from golden import ASKED, FOLDER, NUMBER, QUERIES, golden_texts
from skillpager import SkillPager

# the encoder's rows differ in the last digits between processors
TOLERANCE = 0.02


@pytest.fixture(scope="module")
def texts(pager: SkillPager) -> dict[str, str]:
    """What the code makes now."""
    return dict(golden_texts(pager))


@pytest.mark.parametrize("kind", ["outline.txt", "page.md", "trace.txt"])
@pytest.mark.parametrize("name", QUERIES)
def test_golden(texts: dict[str, str], name: str, kind: str) -> None:
    expected = (FOLDER / f"{name}.{kind}").read_bytes().decode()
    found = texts[f"{name}.{kind}"]
    if kind == "page.md":
        assert found == expected
        return
    assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
    numbers = [float(number) for number in NUMBER.findall(found)]
    assert numbers == pytest.approx([float(number) for number in NUMBER.findall(expected)], abs=TOLERANCE)


def test_there_is_no_golden_file_without_a_test() -> None:
    assert {path.name.split(".")[0] for path in FOLDER.iterdir()} == {
        *(*QUERIES, "messages", "errors", "tiles", "edges", "features", "pages", "selections"),
        *(name.split(".")[0] for name in ASKED),
    }

"""Outlines and pages of the samples are what they were; `make golden` writes them anew."""

import pytest

from golden import ASKED, FOLDER, QUERIES, check, golden_texts
from skillpager import SkillPager


@pytest.fixture(scope="module")
def texts(pager: SkillPager) -> dict[str, str]:
    """What the code makes now."""
    return dict(golden_texts(pager))


@pytest.mark.parametrize("kind", ["outline.txt", "page.md"])
@pytest.mark.parametrize("name", QUERIES)
def test_golden(texts: dict[str, str], name: str, kind: str) -> None:
    check(f"{name}.{kind}", texts[f"{name}.{kind}"])


def test_there_is_no_golden_file_without_a_test() -> None:
    assert {path.name.split(".")[0] for path in FOLDER.iterdir()} == {
        *(*QUERIES, "messages", "errors", "tiles", "edges", "features", "pages", "selections", "kernels"),
        *(name.split(".")[0] for name in ASKED),
    }

"""Bounds of the package's size. They are raised only with a reason in the commit."""

import sys
from pathlib import Path
from types import FrameType

from conftest import SAMPLES
from skillpager import SkillPager
from skillpager.settings import Settings

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "skillpager"
MAX_LINES = 26_700
MAX_LINES_OF_TESTS = 32_000
MAX_FILES = 190
MAX_TOP_LEVEL_FILES = 16
MAX_WORDS_OF_DOCS = 30_000
MAX_PAGES_OF_DOCS = 13
MAX_LINES_OF_AGENTS_MD = 80
# modules of which a page of an indexed skill runs a function: in a new pager, and of a further query
MAX_MODULES_NEW = 21
MAX_MODULES_NEXT = 17


def test_lines_and_files() -> None:
    files = list(SOURCE.rglob("*.py"))
    for most, counted in (MAX_LINES, files), (MAX_LINES_OF_TESTS, (ROOT / "tests").rglob("*.py")):
        assert sum(file.read_bytes().count(b"\n") for file in counted) <= most
    assert len(files) <= MAX_FILES
    assert len(list(SOURCE.glob("*.py"))) <= MAX_TOP_LEVEL_FILES


def test_documents_are_short() -> None:
    pages = list((ROOT / "docs").glob("*.md"))
    assert len(pages) <= MAX_PAGES_OF_DOCS
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= MAX_WORDS_OF_DOCS
    assert len((ROOT / "AGENTS.md").read_text(encoding="utf-8").splitlines()) <= MAX_LINES_OF_AGENTS_MD


def modules_entered(pager: SkillPager, query: str) -> set[str]:
    """Return the modules of which the page of a sample runs a function; generated methods do not count."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            entered.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        pager.page(SAMPLES / "postgres-backup", query)
    finally:
        sys.setprofile(None)
    return entered


def test_a_page_of_an_indexed_skill_enters_few_modules(tmp_path: Path) -> None:
    for _ in range(2):  # the first time everything is imported, and the index is stored
        with_store = SkillPager(settings=Settings(cache_dir=tmp_path))
        entered = modules_entered(with_store, "restore one table")
    assert len(entered) <= MAX_MODULES_NEW, sorted(entered)
    again = modules_entered(with_store, "prove that a backup is good")
    assert len(again) <= MAX_MODULES_NEXT, sorted(again)
    with_store.close()

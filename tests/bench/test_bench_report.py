"""The report: complete, self-contained, escaped, and fit for a phone, in a real headless Chromium."""

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from bench_results import whole_run, write_results
from chromium import needs_chromium
from messages import raises
from skillpager.bench.report.report import write_report
from skillpager.errors import BenchError

HOSTILE = '<script>alert(1)</script>](x) & "it"'
PHONE, DESKTOP = 390, 1200
PNG = "data:image/png;base64,"
FIGURES = {"entry-bias", "k-sweep", "lambda-sweep", "matched-budgets", "pareto"}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of every suite, on skills one of which has a hostile name."""
    folder = tmp_path_factory.mktemp("run")
    made = write_results(folder, whole_run(), names=("", HOSTILE, "", ""), subsets=(HOSTILE, *["dev"] * 3))
    write_report(made, judge="evidence", out=folder / "report")
    return folder / "report"


def test_a_report_is_a_page_a_text_tables_and_figures(report: Path) -> None:
    assert {path.stem for path in (report / "figures").glob("*.png")} == FIGURES
    tables = {path.stem for path in (report / "tables").glob("*.csv")}
    assert {"main-results", "claims", "all-methods", "pairwise", "matched-budgets", "k-sweep"} <= tables
    assert not list(report.rglob("*.tmp"))


def test_the_page_needs_nothing_else(report: Path) -> None:
    page = (report / "report.html").read_text(encoding="utf-8")
    assert not re.search("<(script|link|iframe|object)", page)
    sources, links, ids = (re.findall(rf'<[^>]+ {name}="([^"]*)', page) for name in ("src", "href", "id"))
    assert len(sources) == len(FIGURES) == len(re.findall(r'<img [^>]*alt="[^"]', page))
    assert all(base64.b64decode(each.removeprefix(PNG)).startswith(b"\x89PNG") for each in sources)
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    assert len(set(ids)) == len(ids)


def test_what_is_not_ours_is_escaped(report: Path) -> None:
    page = (report / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert re.search('<th scope="colgroup" colspan="[45]" class="group">Here</th>', page)
    assert page.count("<table>") == len(list((report / "tables").glob("*.csv")))


def test_what_did_not_run_is_named_and_not_made_up(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run", {"mmr": [True, False], "full": [True]})
    files = write_report(folder, judge="evidence", out=tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    absent = text.partition('id="absent"')[2]
    assert "<li>k sweep: not run: skillpager bench run --methods k</li>" in absent
    assert "<li>Main results: " in absent
    assert tmp_path / "out" / "tables" / "main-results.csv" not in files
    assert "78.89" not in text


def test_verdicts_of_another_judge_are_another_report(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run", {"mmr": [True, False]}, judge="llm:http://host/v1 m#1")
    with raises(BenchError):
        write_report(folder, judge="evidence", out=tmp_path / "out")
    write_report(folder, judge="llm:http://host/v1 m#1", out=tmp_path / "out")
    assert "llm:http://host/v1 m#1" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


# ---- in a browser


@needs_chromium
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_screen_and_its_pictures_are_there(
    width: int, scheme: str, report: Path, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((report / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(i => i.complete && i.naturalWidth > 300)")
    assert not [url for url in requests if not url.startswith(("file:", "data:"))]
    ink, ground = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (_lightness(ground) > _lightness(ink)) == (scheme == "light")
    page.close()


def _lightness(color: str) -> int:
    return sum(map(int, re.findall(r"\d+", color)[:3]))

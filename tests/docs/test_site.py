"""The documentation site: built strictly, shows what GitHub shows, and asks nobody else for anything."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, Page

from chromium import needs_chromium
from conftest import ROOT
from skillpager import errors, index_types, types

DOCS = ROOT / "docs"
# its content is in docstrings
FROM_DOCSTRINGS = DOCS / "python.md"
WRITTEN = sorted(set(DOCS.glob("*.md")) - {FROM_DOCSTRINGS})
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    # not --quiet, with which warnings do not count
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A page of a phone's width."""
    with browser.new_context(viewport=PHONE, color_scheme="dark") as context:
        yield context.new_page()


def page_file(site: Path, name: str) -> Path:
    return site / "index.html" if name == "index" else site / name / "index.html"


def article(site: Path, document: Path) -> str:
    """Return what the site made of a document."""
    page = page_file(site, document.stem).read_text(encoding="utf-8")
    found = re.search(r"<article.*?>(.*?)</article>", page, re.DOTALL)
    assert found is not None
    return found[1].partition('<aside class="md-source-file">')[0]


def elements(html: str) -> Counter[str]:
    """Return how many there are of the elements that readers would miss."""
    return Counter(re.findall(r"<(h[1-6]|table|tr|td|li|pre|img|blockquote|strong)\b", html))


@pytest.mark.parametrize("document", WRITTEN, ids=lambda path: path.stem)
def test_the_site_shows_what_github_shows(site: Path, document: Path) -> None:
    github = MarkdownIt("commonmark").enable("table").render(document.read_text(encoding="utf-8"))
    assert elements(article(site, document)) == elements(github)


def test_links_out_of_the_documentation_lead_to_the_repository(site: Path) -> None:
    repository = "https://github.com/skillpager/skillpager"
    measured = article(site, DOCS / "measured.md")
    assert f'href="{repository}/blob/main/training/train.py"' in measured
    assert f'href="{repository}/tree/main/benchmarks/intraskill/dev"' in measured
    curve, readers = re.findall(r'<img[^>]* src="\.\./([^"]+)"', measured)
    assert (site / curve).read_bytes() == (ROOT / curve).read_bytes()
    assert (site / readers).read_bytes() == (DOCS / readers).read_bytes()
    assert not any('href="../src' in article(site, document) for document in WRITTEN)
    assert not list(site.rglob("*.py"))


def test_the_library_reference_has_every_public_type_and_error(site: Path) -> None:
    reference = article(site, FROM_DOCSTRINGS)
    modules = {each.__name__: each.__name__.rpartition(".")[2] for each in (types, index_types)}
    found = [(modules.get(getattr(each, "__module__", "")), name) for name, each in vars(types).items()]
    known = [f"{module}.{name}" for module, name in found if module and name[0].isupper()]
    known += [f"errors.{name}" for name in vars(errors) if name.endswith("Error")]
    assert len(known) > 40
    assert [name for name in known if f'id="skillpager.{name}"' not in reference] == []


@needs_chromium
def test_pages_are_read_on_a_phone_without_asking_anybody_else(phone: Page, site: Path, address: str) -> None:
    asked: list[str] = []
    said: list[str] = []
    phone.on("request", lambda request: asked.append(request.url))
    phone.on("console", lambda message: said.append(message.text))
    phone.on("pageerror", lambda error: said.append(str(error)))
    wide = []
    for document in sorted(DOCS.glob("*.md")):
        name = "" if document.stem == "index" else f"{document.stem}/"
        phone.goto(f"{address}/{name}")
        if phone.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
            wide.append(document.stem)
    assert wide == []
    assert said == []
    assert {url for url in asked if not url.startswith(address)} == set()

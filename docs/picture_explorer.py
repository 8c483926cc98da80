"""Take docs/explorer.png and docs/library.png: the explorer with a page of a skill, and of several.

Run it after the explorer has changed, with the extras [server,tokens,dev] and a Chromium on the PATH:
`python docs/picture_explorer.py`.
"""

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from playwright.sync_api import sync_playwright

from skillpager import SkillPager
from skillpager.http.options import ServerOptions
from skillpager.http.server import create_app, listen, server_config
from skillpager.library import Library
from skillpager.settings import Settings

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT = 1280, 860
STATE = {"skill": "postgres-backup", "query": "restore one dropped table"}
LIBRARY = {
    "view": "library",
    "query": "Find the commit that broke the build with git bisect, then restore one table from a dump.",
}
# the state of each picture, and what is there once it is shown
PICTURES: dict[str, tuple[Mapping[str, object], str]] = {
    "explorer.png": (STATE, "#document .lit"),
    "library.png": (LIBRARY, ".routed li"),
}


@contextmanager
def serving() -> Iterator[str]:
    """Serve the samples for a while; yield the address."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SkillPager(settings=Settings(cache_dir=Path(folder)))) as pager,
    ):
        options = ServerOptions(port=0)
        app = create_app(Library(pager, [ROOT / "examples" / "skills"]), options)
        with listen(options) as listener:
            server = uvicorn.Server(server_config(app))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                server.should_exit = True
                thread.join()


def take(url: str) -> None:
    """Write the pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (state, shown) in PICTURES.items():
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
            page.goto(f"{url}/#{urlencode(state)}")
            page.wait_for_selector(shown)
            page.wait_for_function("document.fonts.status === 'loaded'")
            # the query above, and the current pick below it
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=ROOT / "docs" / name)
        browser.close()


if __name__ == "__main__":
    with serving() as address:
        take(address)
    for picture in PICTURES:
        print(f"{picture}: {(ROOT / 'docs' / picture).stat().st_size:,} bytes")

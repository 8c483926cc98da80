"""What the site adds to MkDocs: pages are written for GitHub, and link to files outside of docs/.

Such a link leads to the repository; a picture is copied into the site.
"""

import re
from pathlib import Path
from xml.etree.ElementTree import Element

from markdown.treeprocessors import Treeprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files

from markdown import Extension, Markdown

ROOT = Path(__file__).parent.parent
OUTSIDE = "../"  # all pages are in docs/ itself
PICTURE = re.compile(r"!\[[^\]]*\]\(\.\./([^)\s]+)\)")

log = get_plugin_logger("links to the repository")


def on_config(config: MkDocsConfig) -> None:
    """Make links to files outside of docs/ work."""
    config.markdown_extensions.append(RepositoryLinks(config.extra["repository"]))


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pictures that pages show from outside of docs/."""
    pages = [file.content_string for file in files.documentation_pages()]
    for path in {path for page in pages for path in PICTURE.findall(page)}:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))


class RepositoryLinks(Extension):
    """Adds `_Outside` to Markdown."""

    def __init__(self, repository: str) -> None:
        super().__init__()
        self._repository = repository

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the library's name
        """Run after links are made, and before MkDocs looks at them."""
        md.treeprocessors.register(_Outside(self._repository), "outside", priority=10)


class _Outside(Treeprocessor):
    """Turns paths out of docs/ into addresses of the repository, those of pictures into paths of the site."""

    def __init__(self, repository: str) -> None:
        super().__init__()
        self._repository = repository

    def run(self, root: Element) -> None:
        for element in root.iter():
            name = "src" if element.tag == "img" else "href"
            target = element.get(name, "")
            if target.startswith(OUTSIDE):
                path = target.removeprefix(OUTSIDE)
                element.set(name, path if name == "src" else self._address(path))

    def _address(self, path: str) -> str:
        file = ROOT / path.partition("#")[0]
        if not file.exists():
            log.warning("there is no file %s", path)
        return f"{self._repository}/{'tree' if file.is_dir() else 'blob'}/main/{path}"

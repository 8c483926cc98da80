"""Write the tree of AGENTS.md: a line a file, from the first lines of the docstrings.

Run it after a module was added, moved or described anew: `python docs/generate_tree.py`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "AGENTS.md"
PACKAGE = ROOT / "src" / "skillpager"
BEGIN, END = "```text\nsrc/skillpager/\n", "```\n"

# from the ground to the front ends; what is not named here follows in alphabetical order
ORDER = (
    *("errors", "json_types", "types", "files", "sections", "sequence_net", "tokens", "caches"),
    *("settings", "parsing", "classifiers", "encoders", "graph", "stores", "strategies", "pages"),
    *("remote", "output", "factories", "indexing", "pager", "library", "install", "cli", "mcp"),
    *("http", "integrations", "bench"),
)
WIDTH = 34


def main() -> None:
    """Replace the tree in AGENTS.md."""
    text = TARGET.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    TARGET.write_text(f"{before}{BEGIN}{tree()}{END}{after}", encoding="utf-8")


def tree() -> str:
    """Return a line a file, indented by folder."""
    return "".join(f"{line}\n" for line in _lines(PACKAGE, 1))


def _lines(folder: Path, depth: int) -> Iterator[str]:
    for path in sorted(folder.iterdir(), key=_rank if depth == 1 else None):
        name = "  " * depth + path.name
        if path.suffix == ".py" and path.name not in ("__init__.py", "__main__.py"):
            yield f"{name:{WIDTH}} {_summary(path)}"
        elif (path / "__init__.py").exists():
            yield f"{name + '/':{WIDTH}} {_summary(path / '__init__.py')}"
            yield from _lines(path, depth + 1)


def _rank(path: Path) -> tuple[int, str]:
    return (ORDER.index(path.stem) if path.stem in ORDER else len(ORDER), path.stem)


def _summary(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


if __name__ == "__main__":
    main()

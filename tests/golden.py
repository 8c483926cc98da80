"""What the golden files hold and how they are made: `make golden` writes them anew."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cli_mistakes import MISTAKES, make, messages
from skillpager import SkillPager
from skillpager.output import outline as explain
from skillpager.settings import Settings

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "examples" / "skills"
FOLDER = Path(__file__).parent / "golden"
MESSAGES = "messages.txt"

QUERIES = {
    "api-rate-limits": "We get 429 answers in bursts; how long should the client wait before it tries again?",
    "csv-cleaning": "The amounts have commas as decimal signs and some rows are duplicated.",
    "git-bisect": "Find the commit that made the test slow.",
    "http-status-reference": "Which status do I send when the client's ETag does not match?",
    "konfiguration-pruefen": "Der Dienst startet nach der Änderung nicht mehr.",
    "kubernetes-debugging": "A pod restarts again and again with exit code 137.",
    "odd-markdown": "How do I show a code fence inside a code fence?",
    "postgres-backup": "Restore a single table from last night's dump.",
    "release-checklist": "The release is out and has a serious bug, take it back.",
    "zhongwen-boke-fabu": "文章里的图片太大了，发布之前要怎么处理？",
}


def golden_texts(pager: SkillPager) -> Iterator[tuple[str, str]]:
    """Yield file name and text of every golden file."""
    for name, query in QUERIES.items():
        index = pager.index(SAMPLES / name)
        yield f"{name}.outline.txt", explain.outline(index)
        show = f"skillpager show examples/skills/{name}"
        context = pager.page(index, query, max_nodes=12, show=show)
        assert context.selection is not None
        yield f"{name}.page.md", context.text
        yield f"{name}.trace.txt", explain.trace(context.selection)


def main() -> None:
    """Write every golden file."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pager = SkillPager(settings=Settings(cache_dir=Path(folder)))
        for name, text in golden_texts(pager):
            (FOLDER / name).write_text(text, encoding="utf-8", newline="")
        pager.close()
        text = "\n".join(messages(Path(folder), lambda name: make(MISTAKES[name], Path(folder))))
        (FOLDER / MESSAGES).write_text(text, encoding="utf-8", newline="")
    sys.stderr.write(
        f"{len(list(FOLDER.iterdir()))} golden files in tests/golden: review the diff like code\n"
    )


if __name__ == "__main__":
    main()

"""How a very large skill feels: `python benchmarks/large_skill.py FOLDER`, on quiet cores.

FOLDER is `skills/claude-api` of https://github.com/anthropics/skills, whose queries these are. Writes
`benchmarks/large_skill.csv`: seconds of the command line from an empty cache and of a loaded process, and for
each page its tokens and whether it shows lines of the file that the query is about.
"""

import csv
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from machine import describe
from options import SAMPLES
from processes import own_environment, skillpager, spend
from skillpager import SkillPager
from skillpager.settings import Settings
from timing import MILLISECONDS, median, seconds_of

TABLE = Path(__file__).with_suffix(".csv")
# each with the file that answers it
QUERIES = {
    "stream tool use responses in typescript": "typescript/claude-api/streaming.md",
    "batch api": "python/claude-api/batches.md",
    "prompt caching in python: where do breakpoints go": "shared/prompt-caching.md",
}
FURTHER = (
    "upload a file",
    "retry after a rate limit",
    "which model is cheapest",
    "count tokens",
    "use vision",
)


def main(folder: Path) -> None:
    """Measure, and write the table."""
    rows: list[tuple[str, str, object, str]] = []
    query = next(iter(QUERIES))
    with TemporaryDirectory() as cache:
        environment = own_environment(Path(cache))
        shown, ended = first_page(skillpager("page", folder, query), environment)
        rows += [("page", "first page, from an empty cache", f"{shown:.1f}", "s")]
        rows += [("page", "its command ends, all is indexed", f"{ended:.1f}", "s")]
    with TemporaryDirectory() as cache:
        spent = spend(skillpager("index", folder), environment=own_environment(Path(cache)))
        rows += [("index", "seconds", f"{spent.seconds:.1f}", "s")]
        rows += [("index", "processor time", f"{spent.processor_seconds:.1f}", "s")]
        with SkillPager(settings=Settings(cache_dir=Path(cache))) as pager:
            pager.page(next(SAMPLES.iterdir()), query)  # loads the models
            index = pager.index(folder)
            rows += [("index", "nodes", len(index.nodes), ""), ("index", "tokens", index.full_tokens, "")]
            seconds = seconds_of(lambda: pager.page(index, query))
            rows += [("page", "first page of a loaded process", f"{seconds:.2f}", "s")]
            new = [seconds_of(lambda each=each: pager.page(index, each)) for each in FURTHER]
            rows += [("page", "further query, median", f"{MILLISECONDS * median(new):.0f}", "ms")]
            for each, file in QUERIES.items():
                page = pager.page(index, each)
                holds = any(node.span.file == file for node in page.nodes)
                rows += [(each, "tokens", page.tokens, ""), (each, f"shows {file}", holds, "")]
    rows += [("run", name, value, "") for name, value in describe().items()]
    with TABLE.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerows([("part", "measure", "value", "unit"), *rows])


def first_page(command: list[str | Path], environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds until a command prints, and until it ends."""
    start = time.perf_counter()
    with subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        shown = time.perf_counter() - start
        process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return shown, time.perf_counter() - start


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))

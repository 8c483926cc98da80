"""Measure routing in a library of many skills: `python benchmarks/routing.py FOLDER --skills 1000 10000`.

The first skills of FOLDER, by name, are copied to a temporary library, catalogued, and searched in fresh
processes. Queries are made of the skills: the first words of a description (short), the beginning of a body
(long). Rows go to routing_speed.csv, beside those of other folders.
"""

import argparse
import csv
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from machine import load_average
from skillpager import SkillPager
from skillpager.files import ENTRY_FILE
from skillpager.library import Library

TABLE = Path(__file__).parent / "routing_speed.csv"
SHORT_WORDS, LONG_CHARS, QUERIES = 8, 1_500, 100
SEED = 42
MEGA = 1e6


def main() -> None:
    """Measure each number of skills and write the rows."""
    arguments = _parse()
    if arguments.step:
        step = {"build": build, "search": search}[arguments.step]
        print(json.dumps(step(arguments.folder, arguments.cache)))
        return
    places = sorted(path.parent for path in arguments.folder.rglob(ENTRY_FILE))
    for count in arguments.skills or [len(places)]:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            library = Path(scratch) / "skills"
            for number, place in enumerate(places[:count]):
                (library / f"{number:06}").mkdir(parents=True)
                shutil.copyfile(place / ENTRY_FILE, library / f"{number:06}" / ENTRY_FILE)
            row: dict[str, object] = {"corpus": arguments.label}
            for step in ("build", "search"):
                row |= _run(step, library, Path(scratch) / "cache")
            row["load_average"] = round(load_average(), 1)
            print(row)
            _save(row)


def build(folder: Path, cache: Path) -> dict[str, object]:
    """Catalogue the skills; return how long each part took, and the size of the file."""
    library = Library(SkillPager(store=cache), [folder])
    started = time.process_time()
    count = len(library.skills())
    read = time.process_time()
    library.route("words", k=1)
    words = time.process_time()
    return {
        "skills": count,
        "discover_s": round(read - started, 2),
        "words_s": round(words - read, 2),
        "file_mb": round(sum(path.stat().st_size for path in cache.iterdir()) / MEGA, 1),
        "build_peak_mb": round(_memory("VmHWM"), 0),
    }


def search(folder: Path, cache: Path) -> dict[str, object]:
    """Return the time to the first route, those of more, that after a new skill, and the memory."""
    pager = SkillPager(store=cache)
    before = _memory()
    started = time.process_time()
    library = Library(pager, [folder])
    library.route("words", k=1)
    row: dict[str, object] = {"load_s": round(time.process_time() - started, 2)}
    rng = random.Random(SEED)
    chosen = rng.choices(library.skills(), k=QUERIES)
    long = [(found.path / ENTRY_FILE).read_text(encoding="utf-8", errors="replace") for found in chosen]
    asked = {
        "short": [" ".join(found.description.split()[:SHORT_WORDS]) or found.name for found in chosen],
        "long": [text[len(text) // 3 :][:LONG_CHARS].strip() or "words" for text in long],
    }
    for kind, queries in asked.items():
        times = [_milliseconds(library, query) for query in queries]
        for part in (50, 95):
            row[f"{kind}_p{part}_ms"] = round(float(np.percentile(times, part)), 1)
    row["memory_mb"] = round(_memory(), 0)
    row["memory_of_library_mb"] = round(_memory() - before, 0)
    new = folder / "a-new-skill"
    new.mkdir(exist_ok=True)
    (new / ENTRY_FILE).write_text(
        "---\ndescription: Tame the wild quokkafish.\n---\nFeed it.\n", encoding="utf-8"
    )
    started = time.process_time()
    library.found(fresh=True)
    assert library.route("quokkafish", k=1).skills[0].skill.name == new.name
    row["add_one_s"] = round(time.process_time() - started, 3)
    return row


def _milliseconds(library: Library, query: str) -> float:
    started = time.process_time()
    library.route(query)
    return 1000 * (time.process_time() - started)


def _memory(kind: str = "VmRSS") -> float:
    """Return the memory of this process in MB; `VmHWM` is the most that it had."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(kind):
            return int(line.split()[1]) / 1000
    return float("nan")


def _run(step: str, folder: Path, cache: Path) -> dict[str, object]:
    """Return what a step prints in a process of its own."""
    words = [str(folder), "--step", step, "--cache", str(cache)]
    done = subprocess.run([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return row


def _save(row: dict[str, object]) -> None:
    """Write a row to the table, in place of the earlier one of the same library."""
    rows: list[dict[str, object]] = []
    if TABLE.exists():
        with TABLE.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    key = ("corpus", "skills")
    rows = [each for each in rows if any(str(each[name]) != str(row[name]) for name in key)]
    rows.append(row)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda each: int(str(each["skills"]))))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of skills")
    parser.add_argument("--skills", type=int, nargs="*", help="numbers of skills; default: all")
    parser.add_argument("--label", default="skills", help="name of the corpus in the table")
    parser.add_argument("--scratch", type=Path, help="where to put the temporary library")
    parser.add_argument("--step", choices=["build", "search"], help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()

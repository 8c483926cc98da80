"""Approximate against exact routing in a library in PostgreSQL: recall, times, memory, the first answer.

python benchmarks/approximate_routing.py --pool POOL.jsonl[.xz] --annotated DIR --out OUT.csv

The pool has one skill a line, its text as `skill_md`; each is published once, without an index. Queries are
the first words of descriptions, beginnings of bodies, and those that annotators wrote (`*.ann.json` in DIR).
--synthetic adds skills that are made of two each. Processor time is that of the process and of the server
together. The last measurement has an HNSW index of pgvector.
"""

import argparse
import csv
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from library_postgres import TESTS, fill_library, peak_memory, read_pool, read_rows, whole
from skillpager import SkillPager
from skillpager.library import Library
from skillpager.settings import Settings

KINDS = ("short", "long", "annotated")
WORDS_OF_A_SHORT_QUERY, FEWEST_WORDS = 8, 4
CHARS_OF_A_LONG_QUERY = 1_500
BEST = 10
INDEXED = "approximate with HNSW"
ROUTINGS = ("exact", "approximate", INDEXED)
MAKE_INDEX = (
    "CREATE EXTENSION IF NOT EXISTS vector",
    "CREATE INDEX skill_codes_nearest ON skillpager.skill_codes USING hnsw (code bit_hamming_ops)",
)
PUBLISHED = 200  # one by one, the others at once


def choose_queries(pool: Path, end: int, annotated: Path | None, count: int) -> list[tuple[str, str]]:
    """Return queries, each with its kind: at most `count` of each."""
    chosen = random.Random(0).sample(range(end), min(end, 2 * count))
    short, long = set(chosen[::2]), set(chosen[1::2])
    found = []
    for number, (name, text) in enumerate(read_pool(pool, 0, end)):
        skill = whole(name, text) if number in short | long else None
        if skill is None:
            continue
        words = skill.description.split()
        body = skill.files[0].text[skill.files[0].body_start :].strip()
        if number in short and len(words) >= FEWEST_WORDS:
            found.append(("short", " ".join(words[:WORDS_OF_A_SHORT_QUERY])))
        if number in long and body:
            found.append(("long", body[:CHARS_OF_A_LONG_QUERY]))
    files = [] if annotated is None else sorted(annotated.glob("*.ann.json"))
    written = [each["query"] for file in files for each in json.loads(file.read_text())["queries"]]
    return found + [
        ("annotated", query) for query in random.Random(0).sample(written, min(count, len(written)))
    ]


def worked(processes: Sequence[int]) -> dict[int, float]:
    """Return the milliseconds of processor time of this process (0) and of those of others that still run."""
    found = {0: 1000 * time.process_time()}
    for process in filter(None, processes):
        with suppress(FileNotFoundError, ProcessLookupError):  # the server starts and ends workers of its own
            text = Path(f"/proc/{process}/schedstat").read_text(encoding="utf-8")
            found[process] = int(text.split()[0]) / 1e6
    return found


def measure(
    url: str, routing: str, server: int, queries: Sequence[tuple[str, str]], cache: str
) -> dict[str, object]:
    """Return the routes of a new process for some queries, and what they cost."""
    sys.path.insert(0, str(TESTS))
    from postgres_server import children_of

    start = time.perf_counter()
    settings = Settings(cache_dir=Path(cache), store=url, routing=routing)
    pager = SkillPager(settings=settings, encoder="hashing")
    library = Library(pager, [], cache=Path(cache), published="default")
    library.route("the first query of a process")
    first, first_worked = time.perf_counter() - start, time.process_time()
    routes, waited, work = [], [], []
    for _, query in queries:
        processes = children_of(server)
        begun, busy = time.perf_counter(), worked(processes)
        route = library.route(query, k=BEST)
        waited.append(1000 * (time.perf_counter() - begun))
        work.append(sum(after - busy[process] for process, after in worked([*busy]).items()))
        routes.append([each.skill.name for each in route.skills])
    pager.close()
    return {
        "routes": routes,
        "waited": waited,
        "worked": work,
        "first": first,
        "first_worked": first_worked,
        "memory": peak_memory(),
    }


def summary(
    routing: str, queries: Sequence[tuple[str, str]], told: dict, exact: dict
) -> list[dict[str, object]]:  # type: ignore[type-arg]
    """Return a row for each kind of queries, and one for all."""
    rows = []
    for kind in (*KINDS, "all"):
        mine = [place for place, (each, _) in enumerate(queries) if kind in (each, "all")]
        if not mine:
            continue
        pairs = [(told["routes"][place], exact["routes"][place]) for place in mine]
        held = [len({*found} & {*wanted}) / len(wanted) for found, wanted in pairs if wanted]
        row: dict[str, object] = {
            "routing": routing,
            "queries": kind,
            "count": len(mine),
            "recall@10": round(statistics.mean(held), 4),
            "same first %": round(
                100 * statistics.mean(found[:1] == wanted[:1] for found, wanted in pairs), 1
            ),
            "same ten %": round(100 * statistics.mean(found == wanted for found, wanted in pairs), 1),
        }
        for name, times in (("processor", told["worked"]), ("waited", told["waited"])):
            some = sorted(times[place] for place in mine)
            row[f"{name} p50 ms"] = round(statistics.median(some), 1)
            row[f"{name} p95 ms"] = round(some[int(0.95 * len(some))], 1)
        row["first answer s"] = round(told["first"], 2)
        row["its processor s"] = round(told["first_worked"], 2)
        row["memory MB"] = round(told["memory"])
        rows.append(row)
    return rows


def main() -> None:
    """Measure libraries of each size, and write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--annotated", type=Path)
    parser.add_argument("--size", type=int, default=18_812)
    parser.add_argument("--synthetic", type=int, default=0, help="synthetic skills beside those of the pool")
    parser.add_argument("--count", type=int, default=100, help="queries of each kind, at most")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        url, routing, server, cache = arguments.measure
        print(json.dumps(measure(url, routing, int(server), json.loads(sys.stdin.read()), cache)))
        return
    sys.path.insert(0, str(TESTS))
    from postgres_server import PostgresServer

    with (
        PostgresServer(on_disk=True, shared_buffers="512MB") as server,
        tempfile.TemporaryDirectory() as cache,
    ):
        url = server.create_database("library")
        filled = fill_library(url, read_rows(arguments.pool, arguments.size, arguments.synthetic), PUBLISHED)
        sizes = dict(
            server.sql(
                "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' "
                "AND relnamespace = 'skillpager'::regnamespace",
                "library",
            )
        )
        print(filled, sizes, flush=True)
        queries = choose_queries(arguments.pool, arguments.size, arguments.annotated, arguments.count)
        told = {}
        (process,) = re.findall(r"^\d+", (server.data / "postmaster.pid").read_text())
        for routing in ROUTINGS:
            if routing == INDEXED:
                start = time.perf_counter()
                for statement in MAKE_INDEX:
                    server.sql(statement, "library")
                print(f"an index of the nearest codes in {time.perf_counter() - start:.0f} s", flush=True)
            command = [sys.executable, __file__, "--pool", str(arguments.pool)]
            command += ["--measure", url, routing.split()[0], process, str(Path(cache) / routing.split()[0])]
            done = subprocess.run(
                command, check=True, stdout=subprocess.PIPE, text=True, input=json.dumps(queries)
            )
            told[routing] = json.loads(done.stdout)
        rows = []
        for routing, measured in told.items():
            for row in summary(routing, queries, measured, told["exact"]):
                rows.append({**filled, **row})
                print(rows[-1], flush=True)
    if arguments.out:
        if arguments.out.exists():  # libraries of other sizes keep their rows
            with arguments.out.open(newline="", encoding="utf-8") as file:
                earlier = [row for row in csv.DictReader(file) if int(row["skills"]) != rows[0]["skills"]]
            rows = sorted([*earlier, *rows], key=lambda row: int(row["skills"]))
        with arguments.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()

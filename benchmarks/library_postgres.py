"""Libraries in PostgreSQL against folders and a file: routes, loading, memory, changes and publishing.

python benchmarks/library_postgres.py --pool POOL.jsonl.xz --out benchmarks/library_postgres.csv

The pool has one skill a line, its text as `skill_md`. The first --published skills are published one by one,
the others are written at once.
"""

import argparse
import csv
import hashlib
import json
import lzma
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple
from itertools import islice
from pathlib import Path

import psycopg

from skillpager import SkillPager
from skillpager.errors import SkillPagerError
from skillpager.library import Library
from skillpager.library.published import pack_skill
from skillpager.library.publishing import Publisher
from skillpager.library.routing.approximate import skill_terms
from skillpager.library.routing.words import words_of
from skillpager.parsing.skill import skill_from_text
from skillpager.settings import Settings
from skillpager.stores.postgres import PostgresStore
from skillpager.stores.postgres_text import escaped
from skillpager.types import PublishedSkill, Skill

TESTS = Path(__file__).parent.parent / "tests"
QUERIES = 200
EQUAL_QUERIES = 100
WORDS_OF_A_QUERY, FEWEST_WORDS = 12, 4
EVERY = 37  # skill of the pool has a query
BATCH = 10_000  # skills that are written together, for memory
STRIDE = 7_919  # between the two skills of which a synthetic one is made
_NAME = re.compile(r"^name: *(.*)$", re.MULTILINE)


def read_pool(path: Path, first: int, end: int) -> Iterator[tuple[str, str]]:
    """Yield name and text of the skills of the pool from number `first` to `end`; no two have one name."""
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(islice(file, end)):
            if number >= first:
                text = str(json.loads(line)["skill_md"])
                found = _NAME.search(text)
                own = re.sub(r"[^a-z0-9-]+", "-", found[1].lower())[:60].strip("-") if found else "skill"
                name = f"{own}-{number:05}"
                yield name, _NAME.sub(f"name: {name}", text, count=1)


def queries_of(path: Path, count: int) -> list[str]:
    """Return queries: the words of descriptions from their middle on, of skills all over the pool."""
    found = []
    for number, (name, text) in enumerate(read_pool(path, 0, count * EVERY)):
        skill = whole(name, text) if number % EVERY == 0 else None
        words = skill.description.split() if skill is not None else []
        if len(words) >= 2 * FEWEST_WORDS:
            found.append(" ".join(words[len(words) // 2 :][:WORDS_OF_A_QUERY]))
    return found


# a skill as it is published, its words, and its text
Row = tuple[PublishedSkill, bytes, bytes]


def read_rows(pool: Path, end: int, synthetic: int = 0) -> Iterator[Row]:
    """Yield the first skills of the pool as they are published, each with its words and its text.

    Args:
        pool: The pool.
        end: So many of its skills at most.
        synthetic: So many further ones: the name and description of one skill with the body of another.
    """
    read = (whole(name, text) for name, text in read_pool(pool, 0, end))
    skills = []
    for skill in filter(None, read):
        skills += [skill] if synthetic else []
        yield _row(skill.name, skill, skill, skill.files[0].digest, pack_skill(skill))
    for number in range(synthetic):
        turn, place = divmod(number, len(skills))
        of_body = skills[(place + STRIDE * (turn + 1)) % len(skills)]
        name = f"synthetic-{number:07}"
        yield _row(name, skills[place], of_body, hashlib.sha256(name.encode()).hexdigest(), b"")


def _row(name: str, described: Skill, of_body: Skill, digest: str, content: bytes) -> Row:
    entry = of_body.files[0]
    words = words_of(name, described.description, entry.text[entry.body_start :])
    told = (name, digest, described.description, False, "", "unknown", "", digest)
    return PublishedSkill(*told), words, content


def fill_library(url: str, rows: Iterable[Row], published: int) -> dict[str, object]:
    """Publish some skills, and write the others as publishing would leave them; return what that tells.

    To publish tens of thousands one by one would take an hour; an index that is made at once is smaller.
    """
    rows = iter(rows)
    times = []
    with closing(PostgresStore(url)) as store:
        library = store.library("default")
        for skill, words, content in islice(rows, published):
            start = time.perf_counter()
            library.publish(skill, words, content, skill_terms(words))
            times.append(1000 * (time.perf_counter() - start))
    filled, batch = len(times), list(islice(rows, BATCH))
    told = {"skills": filled, "publish p50 ms": round(statistics.median(times), 1)}
    if not batch:
        return told
    with psycopg.connect(url) as connection:
        ((number,),) = connection.execute("SELECT id FROM skillpager.libraries").fetchall()
        found = connection.execute("SELECT lexeme, holders FROM skillpager.lexemes").fetchall()
        holders = Counter(dict(found))
        connection.execute("DROP INDEX skillpager.skill_terms_by_lexeme")
        connection.execute("CREATE TEMP TABLE texts (skill integer, lengths integer[], lexemes text[])")
        while batch:
            _copy_skills(connection, number, filled + 1, batch, holders)
            filled += len(batch)
            batch = list(islice(rows, BATCH))
        connection.execute("DELETE FROM skillpager.lexemes")
        with connection.cursor().copy("COPY skillpager.lexemes FROM STDIN") as copy:
            for lexeme, count in sorted(holders.items()):
                copy.write_row([number, lexeme, count])
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute(
            "CREATE INDEX skill_terms_by_lexeme ON skillpager.skill_terms USING gin (lexemes)"
            " WITH (fastupdate = off)"
        )
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return told | {"skills": filled}


def _copy_skills(
    connection: psycopg.Connection, number: int, start: int, rows: Sequence[Row], holders: Counter[str]
) -> None:
    """Write skills into the library of a number, under ids from `start` on; count who holds each lexeme."""
    found = [(id_, *row, skill_terms(row[1])) for id_, row in enumerate(rows, start)]
    columns = "id, library, name, digest, description, user_only, stated_licence, licence, key, state"
    tables: dict[str, Iterable[Sequence[object]]] = {
        f"skillpager.skills ({columns}, version, removed, content)": (
            [id_, "default", *map(escaped, astuple(skill)), id_, False, content]
            for id_, skill, _, content, _ in found
        ),
        "texts": (
            [id_, list(terms.lengths), [f"{number}{each}" for each in terms.counted + terms.uncounted]]
            for id_, _, _, _, terms in found
        ),
        "skillpager.skill_words": ([id_, words, terms.vectors] for id_, _, words, _, terms in found),
        "skillpager.skill_codes": ([id_, number, terms.code] for id_, _, _, _, terms in found),
    }
    connection.execute("TRUNCATE texts")
    for table, values in tables.items():
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for row in values:
                copy.write_row(row)
    connection.execute(
        "INSERT INTO skillpager.skill_terms SELECT skill, lengths, array_to_tsvector(lexemes) FROM texts"
    )
    for *_, terms in found:
        holders.update(terms.counted)
    lengths = [sum(of_field) for of_field in zip(*(terms.lengths for *_, terms in found), strict=True)]
    connection.execute(
        "UPDATE skillpager.libraries SET version = version + %s, skills = skills + %s, lengths = ("
        "SELECT array_agg(old + new ORDER BY place) FROM unnest(lengths, %s::bigint[])"
        " WITH ORDINALITY AS pairs (old, new, place))",
        [len(found), len(found), lengths],
    )


def whole(name: str, text: str) -> Skill | None:
    """Return a skill of the pool; None for one that cannot be read."""
    try:
        return skill_from_text(text, name=name)
    except SkillPagerError:
        return None


def replica_of(url: str, cache: Path) -> Library:
    """Return a library without folders."""
    settings = Settings(cache_dir=cache, store=url)
    return Library(SkillPager(settings=settings, encoder="hashing"), [], cache=cache, published="default")


def measure_replica(url: str, pool: Path, cache: Path) -> dict[str, float]:
    """Return what a process costs that serves routes of a library: seconds, milliseconds, megabytes."""
    start = time.perf_counter()
    library = replica_of(url, cache)
    library.skills()
    listed = time.perf_counter() - start
    library.prepare()
    loaded = time.perf_counter() - start
    library.route("the first query of a process")
    times, processor = [], []
    for query in queries_of(pool, QUERIES):
        start, worked = time.perf_counter(), time.process_time()
        library.route(query)
        times.append(1000 * (time.perf_counter() - start))
        processor.append(1000 * (time.process_time() - worked))
    times.sort()
    processor.sort()
    with closing(PostgresStore(url)) as store:
        name, text = next(read_pool(pool, 0, 1))
        skill = skill_from_text(text + "\nchanged\n", name=name)
        publisher, before = Publisher(store.library("default")), library.skill(name)
        start = time.perf_counter()
        publisher.publish(skill, Path(name), str(time.time()))
        while library.skill(name) == before:
            time.sleep(0.005)
        seen = time.perf_counter() - start
    start = time.perf_counter()
    library.route("the first query after a change")
    changed = time.perf_counter() - start
    return {
        "list s": listed,
        "load s": loaded,
        "route p50 ms": statistics.median(times),
        "route p95 ms": times[int(0.95 * len(times))],
        "processor p50 ms": statistics.median(processor),
        "processor p95 ms": processor[int(0.95 * len(processor))],
        "publish to seen s": seen,
        "route after a change ms": 1000 * changed,
        "memory MB": peak_memory(),
    }


def peak_memory() -> float:
    """Return the most megabytes that this process had; unlike `getrusage`, without those of its parent."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def compare(url: str, pool: Path, size: int, cache: Path) -> dict[str, object]:
    """Return how many routes are those of folders and a file to the last digit, and how long they take."""
    folder = cache / "skills"
    for name, text in read_pool(pool, 0, size):
        if whole(name, text) is not None:
            path = folder / name
            path.mkdir(parents=True)
            (path / "SKILL.md").write_text(text, encoding="utf-8")
    local = Library(SkillPager(store=cache / "file", encoder="hashing"), [folder])
    shared = replica_of(url, cache / "equal")

    seconds: dict[Library, list[float]] = {local: [], shared: []}

    def told(library: Library, query: str) -> list[object]:
        start = time.perf_counter()
        route = library.route(query)
        seconds[library].append(time.perf_counter() - start)
        return [route.fits, *((each.skill.name, each.chance, each.features) for each in route.skills)]

    queries = queries_of(pool, EQUAL_QUERIES)
    equal = sum(told(local, query) == told(shared, query) for query in queries)
    # the first of each reads the library
    ratios = [mine / theirs for mine, theirs in zip(seconds[shared][1:], seconds[local][1:], strict=True)]
    return {
        "equal routes": f"{equal} of {len(queries)}",
        "times as long as from folders": round(statistics.median(ratios), 2),
    }


def main() -> None:
    """Measure libraries of each size, and write the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 60_000])
    parser.add_argument("--published", type=int, default=1000, help="skills that are published one by one")
    parser.add_argument("--equal-up-to", type=int, default=1000, help="largest library that is compared")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--replica", nargs=2, metavar=("URL", "CACHE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.replica:
        print(json.dumps(measure_replica(arguments.replica[0], arguments.pool, Path(arguments.replica[1]))))
        return
    sys.path.insert(0, str(TESTS))
    from postgres_server import PostgresServer

    rows: list[dict[str, object]] = []
    with (
        PostgresServer(on_disk=True, shared_buffers="128MB") as server,
        tempfile.TemporaryDirectory() as cache,
    ):
        for size in sorted(arguments.sizes):
            url = server.create_database(f"library_{size}")
            row = fill_library(url, read_rows(arguments.pool, size), min(size, arguments.published))
            if size <= arguments.equal_up_to:
                row |= compare(url, arguments.pool, size, Path(cache) / f"equal-{size}")
            for kind in ("empty cache", "warm cache"):
                command = [sys.executable, __file__, "--pool", str(arguments.pool)]
                command += ["--replica", url, str(Path(cache) / f"replica-{size}")]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                measured = {name: round(value, 3) for name, value in json.loads(done.stdout).items()}
                rows.append({**row, "cache": kind, **measured})
                print(rows[-1], flush=True)
    if arguments.out:
        names = list(dict.fromkeys(name for row in rows for name in row))
        with arguments.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()

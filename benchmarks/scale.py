"""Measure how a library grows: `python benchmarks/scale.py FOLDER --skills 1000 8000`.

For each number of skills their words are indexed, and searched in a fresh process. `--encode N` indexes N
skills fully, in the store that `--store` names, and makes pages of them; `--copies M` saves them again under
other keys until there are M, and makes pages again. Times of words and routes are processor time, of pages
and copies real time. Rows go to scale.csv, beside the earlier ones.
"""

import argparse
import csv
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from machine import load_average
from skillpager import SkillPager
from skillpager.indexing import index_key
from skillpager.library import FoundSkill, Library
from skillpager.library.routing.catalog import Catalog
from skillpager.library.routing.router import load_router, route_query
from skillpager.library.routing.word_index import WordIndex
from skillpager.parsing.skill import read_skill
from skillpager.settings import Settings

TABLE = Path(__file__).parent / "scale.csv"
COLUMNS = (
    *(
        "kind",
        "store",
        "skills",
        "nodes",
        "skills_per_core_second",
        "saves_per_second",
        "store_bytes_per_node",
        "store_bytes_per_skill",
    ),
    *("words_s", "catalog_mb", "build_peak_mb", "load_s", "memory_mb", "route_p50_ms", "route_p95_ms"),
    *("page_cold_p50_ms", "page_warm_p50_ms", "load_average"),
)
SEED_SKILLS, QUERIES, SHORT_WORDS = 1_000, 50, 8
SEED = 42
NO_LIMIT = 2**50
_TABLES_SIZE = """
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = to_regnamespace('skillpager')"""
MEGA = 1e6
KILO = 1_000
WORST = 95


def main() -> None:
    """Measure what the arguments name and write the rows."""
    arguments = _parse()
    if arguments.step:
        print(json.dumps(STEPS[arguments.step](arguments)))
        return
    for count in arguments.skills:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            cache = ["--cache", scratch, "--count", str(count)]
            row = {"kind": "real", "store": "words only", "skills": count}
            for step in ("words", "search"):
                row |= _run(step, arguments.folder, cache)
            _save(row)
    if arguments.encode:
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            options = ["--cache", scratch, "--count", str(arguments.encode), "--store", arguments.store]
            name = "PostgreSQL" if "://" in arguments.store else "SQLite"
            row = {"kind": "real", "store": name, "skills": arguments.encode}
            for step in ("encode", "pages"):
                row |= _run(step, arguments.folder, options)
            _save(row)
            for count in arguments.copies:
                row = {"kind": "copies", "store": name, "skills": count}
                for step in ("copies", "pages"):
                    row |= _run(step, arguments.folder, [*options, "--copies", str(count)])
                _save(row)


def make_words(arguments: argparse.Namespace) -> dict[str, object]:
    """Catalogue the words of skills; return the time, the size of the file and the most memory."""
    catalog = Catalog(arguments.cache)
    real = _real(arguments.folder, arguments.count)
    started = time.process_time()
    WordIndex(catalog.words_of("scale")).search_skills(real)
    return {
        "words_s": round(time.process_time() - started, 1),
        "catalog_mb": round(sum(path.stat().st_size for path in arguments.cache.rglob("*")) / MEGA, 1),
        "build_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KILO),
    }


def search(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the time to the first route, those of more, and the memory."""
    skills = _real(arguments.folder, arguments.count)
    library, model = WordIndex(Catalog(arguments.cache).words_of("scale")), load_router()
    started = time.process_time()
    words = library.search_skills(skills)
    route_query(words, skills, "words", k=1, model=model)
    row: dict[str, object] = {"load_s": round(time.process_time() - started, 2)}
    chosen = np.random.default_rng(SEED).choice(len(skills), QUERIES)
    queries = [" ".join(skills[n].description.split()[:SHORT_WORDS]) or "words" for n in chosen]
    times = []
    for query in queries:
        started = time.process_time()
        route_query(words, skills, query, k=10, model=model)
        times.append(KILO * (time.process_time() - started))
    return row | {
        "route_p50_ms": round(float(np.median(times)), 1),
        "route_p95_ms": round(float(np.percentile(times, WORST)), 1),
        "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KILO),
    }


def encode(arguments: argparse.Namespace) -> dict[str, object]:
    """Index skills in full; return how fast, and what they take in the store."""
    with closing(_pager(arguments)) as pager:
        pager.embed_query("loads the models")
        before = _stored_bytes(pager, arguments.store)
        started = time.process_time()
        nodes = sum(len(pager.index(skill.path).nodes) for skill in _real(arguments.folder, arguments.count))
        seconds = time.process_time() - started
        size = _stored_bytes(pager, arguments.store) - before
    return {
        "nodes": nodes,
        "skills_per_core_second": round(arguments.count / seconds, 2),
        "store_bytes_per_node": round(size / nodes),
        "store_bytes_per_skill": round(size / arguments.count),
    }


def copy(arguments: argparse.Namespace) -> dict[str, object]:
    """Save indexes again under other keys; return how fast, and what all take in the store."""
    (wanted,) = arguments.copies
    with closing(_pager(arguments)) as pager:
        skills = [read_skill(skill.path) for skill in _real(arguments.folder, arguments.count)]
        held = len(pager.store.entries())
        started = time.perf_counter()
        for number in range(held, wanted):
            skill = skills[number % len(skills)]
            index = pager.store.load(index_key(skill, pager.builder.recipe), skill)
            assert index is not None
            other = hashlib.sha256(f"{index.key} {number}".encode()).hexdigest()
            pager.store.save(replace(index, key=other))
        seconds = time.perf_counter() - started
        nodes = sum(entry.nodes for entry in pager.store.entries())
        size = _stored_bytes(pager, arguments.store)
    return {
        "nodes": nodes,
        "saves_per_second": round((wanted - held) / seconds),
        "store_bytes_per_node": round(size / nodes),
        "store_bytes_per_skill": round(size / wanted),
    }


def _pager(arguments: argparse.Namespace) -> SkillPager:
    """Return a pager with the store of the arguments, which evicts nothing."""
    settings = Settings(cache_dir=arguments.cache, max_cache_bytes=NO_LIMIT)
    return SkillPager(store=arguments.store or arguments.cache, settings=settings)


def _stored_bytes(pager: SkillPager, address: str) -> int:
    """Return what the store takes on the disk."""
    if address:
        import psycopg

        with psycopg.connect(address) as connection:
            ((size,),) = connection.execute(_TABLES_SIZE).fetchall()
        return int(size)
    pager.close()  # which empties the log beside the file
    return pager.store.size


def page(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the median time of a page of a skill that is read from the store, and of one in memory."""
    with closing(_pager(arguments)) as pager:
        skills = _real(arguments.folder, arguments.count)[:QUERIES]
        pager.page(skills[-1].path, "loads the models")
        row: dict[str, object] = {}
        for kind in ("cold", "warm"):  # from the store, then from memory, each with a query of its own
            times = []
            for skill in skills:
                started = time.perf_counter()
                pager.page(skill.path, f"{skill.description} {kind}")
                times.append(KILO * (time.perf_counter() - started))
            row[f"page_{kind}_p50_ms"] = round(float(np.median(times)), 1)
    return row


STEPS = {"words": make_words, "search": search, "encode": encode, "copies": copy, "pages": page}


def _real(folder: Path, count: int) -> list[FoundSkill]:
    skills = Library(SkillPager, [folder], cache=folder.parent / f"{folder.name}-readings").skills()
    if len(skills) < count:
        raise SystemExit(f"{folder} has {len(skills):,} skills of different names: ask for no more")
    return skills[:count]


def _run(step: str, folder: Path, options: Sequence[str]) -> dict[str, object]:
    """Return what a step prints in a process of its own."""
    words = [sys.executable, __file__, str(folder), "--step", step, *options]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return row


def _save(row: dict[str, object]) -> None:
    """Write a row to the table, in place of the earlier one of the same measurement."""
    row["load_average"] = round(load_average(), 1)
    print(row)
    rows: list[dict[str, object]] = []
    if TABLE.exists():
        with TABLE.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    key = ("kind", "store", "skills")
    rows = [each for each in rows if any(str(each[name]) != str(row[name]) for name in key)] + [row]
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda each: (str(each["store"]), int(str(each["skills"])))))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of skills, at least 1,000")
    parser.add_argument("--skills", type=int, nargs="*", default=[], help="numbers of real skills")
    parser.add_argument(
        "--encode", type=int, default=0, help="number of real skills that are indexed in full"
    )
    parser.add_argument(
        "--copies",
        type=int,
        nargs="*",
        default=[],
        help="numbers of stored skills, copies included; ascending",
    )
    parser.add_argument(
        "--store", default="", help="their store: a folder, or postgresql://…; default: SQLite"
    )
    parser.add_argument("--scratch", type=Path, help="where to put temporary files")
    parser.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()

"""Routing measured: at which rank each method finds the skills that queries need."""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import numpy as np

from skillpager.bench.data.evidence import read_documents
from skillpager.bench.data.records import Record, read_json, read_records, write_records
from skillpager.bench.data.skillrouter import GROUND_TRUTH
from skillpager.bench.data.skillrouter import read_tasks as read_scored_tasks
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.errors import BenchError, SettingsError, SkillPagerError, require_extra
from skillpager.library.discovery import FoundSkill, Progress, discover
from skillpager.library.routing.router import load_router, route_query
from skillpager.library.routing.routes import Route
from skillpager.library.routing.word_index import WordIndex, field_terms
from skillpager.parsing.skill import find_body, read_skill, skill_from_text, written_name
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import Skill

SHORT = "short_queries.json"
DEPTH = 50  # ranks that rows tell


# ---- skills and queries


@dataclass(frozen=True, slots=True)
class RoutingSkill:
    """A skill of the library: its id, by which rows name it, and its SKILL.md without front matter."""

    id: str
    name: str
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class RoutingQuery:
    """A query and the ids of the skills that it needs; tables group queries by `kind`."""

    id: str
    kind: str
    text: str
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolSkill(Record):
    """A line of a file of skills."""

    id: str
    skill_md: str


def read_pool(path: Path) -> Iterator[RoutingSkill]:
    """Yield the skills of a folder, or of a file of JSON lines (`id`, `skill_md`), also as `.xz`."""
    if path.is_dir():
        for found in discover([path]):
            if found.problem is None:
                skill = read_skill(found.path, scope="body")
                yield _routing_skill(found.path.relative_to(path).as_posix(), skill)
        return
    if not path.is_file():
        raise BenchError(f"There is no pool of skills at {path}: name a folder, or a file of JSON lines.")
    for line in read_records(path, PoolSkill):
        try:
            skill = skill_from_text(line.skill_md, name=PurePosixPath(line.id).name)
        except SkillPagerError:
            continue  # a file without text is not a skill
        written = written_name(line.skill_md)  # its words are searched, whatever the skill is called
        yield _routing_skill(line.id, replace(skill, name=written or skill.name))


def read_tasks(folder: Path, truth: Path) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the skills that tasks need, and the tasks, whole and as short queries.

    `folder` has `tasks.jsonl` and `relevance.json` of SkillRouter-Eval-Core, and maybe `short_queries.json`;
    `truth` has the skills, `<name>.md`. Tasks that need none of them are left out.
    """
    skills = []
    for path in sorted(truth.glob("*.md")):
        skill = skill_from_text(path.read_text(encoding="utf-8"), name=path.stem)
        skills.append(_routing_skill(f"{GROUND_TRUTH}/{path.stem}", skill))
    known = {skill.id for skill in skills}
    short = read_json(folder / SHORT, dict[str, list[str]]) if (folder / SHORT).exists() else {}
    queries = []
    for task, entry in read_scored_tasks(folder):
        if needs := tuple(sorted(known.intersection(entry.gt_skill_ids))):
            queries.append(RoutingQuery(task.task_id, "task", task.instruction_text, needs))
            queries += [
                RoutingQuery(f"{task.task_id}#{number}", "part of a task", text, needs)
                for number, text in enumerate(short.get(task.task_id, ()), 1)
            ]
    if not queries:
        raise BenchError(
            f"No task of {folder} needs a skill of {truth}: give the folder of their {GROUND_TRUTH}/NAME.md."
        )
    return skills, queries


def read_asked(folder: Path) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the documents of a folder of evidence data as skills, and their queries; no near copies."""
    skills, queries = [], []
    for document in read_documents(folder):
        if document.provenance.near_copy_of:
            continue
        name = document.annotation.skill
        id_ = f"{folder.name}/{name}"
        skills.append(_routing_skill(id_, skill_from_text(document.text, name=name)))
        for length, note in (("long", document.annotation), ("short", document.short)):
            queries += [
                RoutingQuery(
                    f"{folder.name}/{each.id}", f"{folder.name}, {length}", each.query.strip(), (id_,)
                )
                for each in (note.queries if note else ())
            ]
    return skills, queries


def merge(
    parts: Iterable[tuple[Sequence[RoutingSkill], Sequence[RoutingQuery]]], pool: Iterable[RoutingSkill]
) -> tuple[list[RoutingSkill], list[RoutingQuery]]:
    """Return the skills of parts and pool, and the queries; of exact copies the first stands for all.

    Copies that differ in a character stay, and are distractors.
    """
    found: dict[tuple[str, str, str], RoutingSkill] = {}
    first: dict[str, str] = {}
    queries: list[RoutingQuery] = []
    for skills, asked in (*parts, (pool, ())):
        for skill in skills:
            kept = found.setdefault((skill.name, skill.description, skill.body), skill)
            first.setdefault(skill.id, kept.id)
        queries += asked
    return list(found.values()), [
        replace(query, needs=tuple(dict.fromkeys(first[id_] for id_ in query.needs))) for query in queries
    ]


def _routing_skill(id_: str, skill: Skill) -> RoutingSkill:
    text = skill.files[0].text
    return RoutingSkill(id_, skill.name, skill.description, text[find_body(text) :])


# ---- rankings

# ranks the skills of one library: at most `DEPTH` ids, best first
Rank = Callable[[str], list[str]]


class OwnRouter:
    """Routing as the library does it; whether any skill fits is also asked without the `needed` ones."""

    def __init__(self, skills: Sequence[RoutingSkill], needed: Collection[str] = ()) -> None:
        self._skills, self._index = skills, WordIndex(None)
        self._all = range(len(skills))
        self._rest = [place for place in self._all if skills[place].id not in needed]
        self._index.update(
            self._all,
            lambda keys: (
                (key, field_terms(skills[key].name, skills[key].description, skills[key].body))
                for key in keys
            ),
        )

    def rank(self, query: str) -> list[str]:
        """Return the ids."""
        return [routed.skill.path.as_posix() for routed in self._route(self._all, query, DEPTH).skills]

    def fits(self, query: str) -> tuple[float, float]:
        """Return the chance that any skill fits, in the library and in that without the needed ones."""
        return self._route(self._all, query, 1).fits, self._route(self._rest, query, 1).fits

    def _route(self, places: Sequence[int], query: str, k: int) -> Route:
        chosen = [self._skills[place] for place in places]
        found = [FoundSkill(each.name, each.description, Path(each.id), None, None) for each in chosen]
        return route_query(self._index.search(places), found, query, k=k, model=load_router())


def full_text_search(skills: Sequence[RoutingSkill], *, described: bool = False) -> Rank:
    """Return a ranking by SQLite's full-text search: `bm25()` over columns, any term of the query.

    With `described` it reads names and descriptions alone, which is what hosts show of skills.
    """
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE skills USING fts5(name, description, body, tokenize=porter)")
    database.executemany(
        "INSERT INTO skills VALUES (?, ?, ?)",
        ((skill.name, skill.description, "" if described else skill.body) for skill in skills),
    )

    def rank(query: str) -> list[str]:
        terms = dict.fromkeys(term for term in terms_of(query) if term.isalnum())
        if not terms:
            return []
        rows = database.execute(
            "SELECT rowid FROM skills WHERE skills MATCH ? ORDER BY bm25(skills), rowid LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), DEPTH),
        )
        return [skills[row - 1].id for (row,) in rows]

    return rank


def merged_words(skills: Sequence[RoutingSkill]) -> Rank:
    """Return a ranking by bm25s over names, descriptions and bodies as one text."""
    bm25s = require_extra("bm25s", extra="strategies", purpose="The method bm25s")
    texts = [f"{skill.name}\n{skill.description}\n{skill.body}" for skill in skills]
    index = bm25s.BM25()
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)

    def rank(query: str) -> list[str]:
        tokens = bm25s.tokenize([query], stopwords="en", show_progress=False)
        places, scores = index.retrieve(tokens, k=min(DEPTH, len(skills)), show_progress=False)
        found = zip(places[0].tolist(), scores[0].tolist(), strict=True)
        return [skills[place].id for place, score in found if score > 0]

    return rank


OURS = "route"
# the methods to compare with
OTHERS: Mapping[str, Callable[[Sequence[RoutingSkill]], Rank]] = {
    "fts5": full_text_search,
    "fts5-described": lambda skills: full_text_search(skills, described=True),
    "bm25s": merged_words,
}
METHODS = (OURS, *OTHERS)


# ---- rows and measures


@dataclass(frozen=True, slots=True)
class RoutingRow(Record):
    """What a method found for a query."""

    query: str
    kind: str
    library: int  # number of skills in the library
    ranks: dict[str, int | None]  # by needed skill its rank from 1; None if it is not among the first `DEPTH`
    ms: float  # milliseconds of processor time
    fits: float | None = None  # estimated chance that any skill fits; None if the method estimates none
    without: float | None = None  # the same in the library without all skills that any query needs


def measure_method(
    method: str,
    skills: Sequence[RoutingSkill],
    queries: Sequence[RoutingQuery],
    folder: Path,
    progress: Progress,
) -> list[RoutingRow]:
    """Return the rows of a method, and write them to `<folder>/<method>.jsonl`."""
    if method not in METHODS:
        raise SettingsError(f"Unknown method {method!r}: choose from {', '.join(METHODS)}.")
    needed = {id_ for query in queries for id_ in query.needs}
    own = OwnRouter(skills, needed) if method == OURS else None
    rank = own.rank if own else OTHERS[method](skills)
    rows = []
    for number, query in enumerate(queries):
        progress(number, len(queries))
        started = time.process_time()
        found = rank(query.text)
        ms = round(1000 * (time.process_time() - started), 2)
        ranks = {id_: found.index(id_) + 1 if id_ in found else None for id_ in query.needs}
        chances = [round(chance, 4) for chance in own.fits(query.text)] if own else []
        rows.append(RoutingRow(query.id, query.kind, len(skills), ranks, ms, *chances))
    write_records(folder / f"{method}.jsonl", rows)
    return rows


def measures_of(row: RoutingRow) -> dict[str, float]:
    """Return the measures of one query, 0 to 1."""
    places = sorted(rank for rank in row.ranks.values() if rank is not None)
    count = len(row.ranks)
    gain = sum(1 / np.log2(place + 1) for place in places if place <= 10)
    most = sum(1 / np.log2(place + 1) for place in range(1, min(10, count) + 1))
    within: Mapping[int, int] = {k: sum(place <= k for place in places) for k in (3, 5, 10, DEPTH)}
    return {
        "Hit@1": float(bool(places) and places[0] == 1),
        "MRR@10": 1 / places[0] if places and places[0] <= 10 else 0.0,
        "nDCG@10": float(gain / most),
        "R@10": within[10] / count,
        f"R@{DEPTH}": within[DEPTH] / count,
        **{f"Full@{k}": float(within[k] == count) for k in (3, 5, 10)},
    }


def summarize(rows: Iterable[RoutingRow]) -> dict[str, Interval]:
    """Return the mean of each measure over rows, with its bootstrap interval."""
    found = [measures_of(row) for row in rows]
    return {name: bootstrap([each[name] for each in found]) for name in found[0]}


def fit_quality(rows: Iterable[RoutingRow], *, bins: int = 10) -> tuple[float, float] | None:
    """Return AUC and expected calibration error of `fits`; None for a method that estimates none.

    Each query counts twice: with the skills that it needs, and without.
    """
    pairs = [(row.fits, row.without) for row in rows if row.fits is not None and row.without is not None]
    if not pairs:
        return None
    metrics = require_extra("sklearn.metrics", extra="bench", purpose="The AUC")
    truth, chances = np.tile([1.0, 0.0], len(pairs)), np.array(pairs).ravel()
    places = np.minimum((chances * bins).astype(int), bins - 1)
    error = np.abs(np.bincount(places, chances - truth, bins)).sum() / len(chances)
    return float(metrics.roc_auc_score(truth, chances)), float(error)

"""Rows of a routing measurement: the ranks of the skills that each query needs, by method; resumable."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skillpager.bench.data.folder import append_records, read_records
from skillpager.bench.data.records import Record
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.bench.routing.data import RoutingQuery, RoutingSkill, needed_ids
from skillpager.bench.routing.rankers import DEPTH, OwnRouter, make_ranker
from skillpager.errors import BenchError

SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class RoutingRow(Record):
    """What a method found for a query.

    Attributes:
        query: Its id.
        kind: Its kind.
        ranks: By needed skill its rank from 1; None if it is not among the first `DEPTH`.
        library: Skills of the library.
        ms: Milliseconds of processor time.
        fits: Estimated chance that any skill fits; None if the method estimates none.
        without: The same in the library without all skills that any query needs.
    """

    query: str
    kind: str
    ranks: dict[str, int | None]
    library: int
    ms: float
    fits: float | None = None
    without: float | None = None


def measure_method(
    method: str,
    skills: Sequence[RoutingSkill],
    queries: Sequence[RoutingQuery],
    folder: Path,
    progress: Callable[[int, int], None],
) -> list[RoutingRow]:
    """Return the rows of a method, after adding those to `<folder>/<method>.jsonl` that are missing.

    Raises:
        BenchError: The method is unknown, or a row is damaged or of a library of another size.
        MissingExtraError: The method needs a package that is not installed.
    """
    path = folder / f"{method}{SUFFIX}"
    rows = list(read_records(path, RoutingRow))
    if any(row.library != len(skills) for row in rows):
        raise BenchError(f"{path} has rows of another library: choose another --out, or delete it.")
    done = {row.query for row in rows}
    missing = [query for query in queries if query.id not in done]
    if not missing:
        return rows
    ranker = make_ranker(method, skills, needed_ids(queries))
    for number, query in enumerate(missing):
        progress(number, len(missing))
        started = time.process_time()
        found, fits = ranker.rank(query.text)
        ms = 1000 * (time.process_time() - started)
        ranks = {id_: found.index(id_) + 1 if id_ in found else None for id_ in query.needs}
        without = ranker.fit_without(query.text) if isinstance(ranker, OwnRouter) else None
        row = RoutingRow(
            query.id, query.kind, ranks, len(skills), round(ms, 2), _round(fits), _round(without)
        )
        append_records(path, [row])
        rows.append(row)
    return rows


def _round(chance: float | None) -> float | None:
    return None if chance is None else round(chance, 4)


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
    right, wrong = (np.array(values) for values in zip(*pairs, strict=True))
    auc = np.mean((right[:, None] > wrong) + 0.5 * (right[:, None] == wrong))
    values = np.concatenate([right, wrong])
    gaps = values - np.repeat([1.0, 0.0], len(right))
    places = np.minimum((values * bins).astype(int), bins - 1)
    return float(auc), float(np.abs(np.bincount(places, gaps, bins)).sum() / len(values))

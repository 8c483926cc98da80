"""Train the router: from features of candidate skills to their order, chances, and whether any fits.

    python training/train_router.py --pool POOL.jsonl.xz DATA... --work build/router --jobs 2

DATA are folders of evidence data (docs/measured.md); POOL is a file of skills as JSON lines (`id`,
`path`, `skill_md`) among which theirs must be found. WORK keeps terms and features; a run takes about a
quarter of an hour on two cores.

A small network is trained listwise: of a softmax over the candidates of a query, the share of each needed
skill. Its scores order the candidates of one query; two logistic regressions turn them into chances. Reported
is each fold, over repositories, by a model of the others.
"""

import argparse
import json
import logging
import multiprocessing
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routing_data import (
    LONG,
    SHORT,
    Case,
    Corpus,
    Likeness,
    Question,
    cases_of,
    compose,
    paragraphs,
    read_pool,
    read_tasks,
)
from skillpager.bench.data.evidence import read_documents, read_published, read_published_short
from skillpager.library.routing.features import COLUMNS
from skillpager.library.routing.router import (
    CHANCE_COLUMNS,
    FIT_COLUMNS,
    RouterModel,
    chance_features_of,
    fit_features_of,
)
from skillpager.parsing.skill import skill_from_text

logger = logging.getLogger("router")

MODELS = Path(__file__).parents[1] / "src" / "skillpager" / "models"
SPLITS = ("train", "dev", "train2")
FOLDS = 3
PER_SKILL = 2  # queries of each kind of a skill, beside the tasks
COMPOSED_QUERIES = 300
TASKS = Path(__file__).with_name("tasks.jsonl")
TINY_LIBRARIES = (4, 8, 15, 40)  # skills of the pool
MEDIUM_LIBRARIES = (150, 600, 2_500)  # with the skills of half of the annotated repositories
TINY_SHARE = 4 / 7
MOST_TERMS = 48
PENALTY = 1e-5  # of the logistic regressions
HIDDEN, EPOCHS, RATE, DECAY, BATCH = 16, 10, 5e-3, 1e-4, 64
THRESHOLD = 0.15  # the chance of a fit separates weakly, and hardly any right query is below

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class Lists:
    """Cases as arrays: the candidates of all, one case behind the other.

    Attributes:
        features: `(n, len(COLUMNS))`.
        needed: `(n,)` bool.
        starts: `(cases + 1,)`: the first candidate of each case, and the end.
    """

    features: Rows
    needed: NDArray[np.bool_]
    starts: NDArray[np.intp]


def lists_of(cases: Iterable[Case]) -> Lists:
    """Return what the order is learned from: cases with a needed candidate, and no ignored ones."""
    features, needed, starts = [], [], [0]
    for case in cases:
        if case.needed.any():
            kept = ~case.ignored
            features.append(case.found.features[kept])
            needed.append(case.needed[kept])
            starts.append(starts[-1] + int(kept.sum()))
    return Lists(np.concatenate(features), np.concatenate(needed), np.array(starts))


def train_scores(lists: Lists, *, seed: int = 0) -> tuple[list[Rows], Rows]:
    """Return the parameters of the network, for features as they are: weights and biases, and direct weights.

    The loss of a list is the mean over its needed skills of `-log(e^s / (e^s + sum of e^s of those that are
    not needed))`, so that needed skills do not compete with each other. Adam, decreasing steps.
    """
    random = np.random.default_rng(seed)
    mean, spread = lists.features.mean(0), lists.features.std(0)
    scale = np.where(spread > 1e-6, 1 / np.maximum(spread, 1e-6), 0)  # a constant feature has no say
    inputs = ((lists.features - mean) * scale).astype(np.float32)
    width = inputs.shape[1]
    parameters = [
        random.normal(0, 1 / np.sqrt(width), (width, HIDDEN)),
        np.zeros(HIDDEN),
        random.normal(0, 0.1 / np.sqrt(HIDDEN), HIDDEN),
        np.zeros(width),
    ]
    parameters = [each.astype(np.float32) for each in parameters]
    first, second = ([np.zeros_like(each) for each in parameters] for _ in range(2))
    count = len(lists.starts) - 1
    steps = EPOCHS * -(-count // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = random.permutation(count)
        for start in range(0, count, BATCH):
            step += 1
            slopes = _slopes(parameters, inputs, lists, order[start : start + BATCH])
            rate = RATE * min(1, step / 50) * (1 - step / (steps + 1))
            for number, slope in enumerate(slopes):
                first[number] = 0.9 * first[number] + 0.1 * slope
                second[number] = 0.999 * second[number] + 0.001 * slope**2
                mended = first[number] / (1 - 0.9**step)
                parameters[number] -= rate * mended / (np.sqrt(second[number] / (1 - 0.999**step)) + 1e-8)
    weights, biases, out, direct = (each.astype(np.float64) for each in parameters)
    weights, direct = weights * scale[:, None], direct * scale
    # a constant in all scores of a query orders nothing: that of the direct weights is left out
    return [weights, biases - mean @ weights, out], direct


def _slopes(
    parameters: Sequence[Any], inputs: NDArray[np.float32], lists: Lists, chosen: NDArray[np.intp]
) -> list[NDArray[np.float32]]:
    """Return the derivatives of the loss of some lists by the parameters."""
    weights, biases, out, direct = parameters
    spans = [(lists.starts[each], lists.starts[each + 1]) for each in chosen]
    rows = np.concatenate([np.arange(*span) for span in spans])
    sizes = np.array([last - first for first, last in spans])
    starts = np.cumsum([0, *sizes[:-1]])
    of = np.repeat(np.arange(len(chosen)), sizes)
    batch, needed = inputs[rows], lists.needed[rows]
    hidden = np.tanh(batch @ weights + biases)
    scores = hidden @ out + batch @ direct
    powers = np.exp(scores - np.maximum.reduceat(scores, starts)[of])
    others = np.add.reduceat(np.where(needed, 0, powers), starts)
    right = np.flatnonzero(needed)
    share = 1 / np.add.reduceat(needed.astype(np.float32), starts)[of[right]]
    sums = powers[right] + others[of[right]]
    slope = np.where(needed, 0, powers * np.bincount(of[right], share / sums, len(chosen))[of])
    slope[right] = -others[of[right]] / sums * share
    slope = (slope / len(chosen)).astype(np.float32)
    back = np.outer(slope, out) * (1 - hidden**2)
    return [
        batch.T @ back + DECAY * weights,
        back.sum(0),
        hidden.T @ slope + DECAY * out,
        batch.T @ slope + DECAY * direct,
    ]


def train_odds(features: Rows, labels: NDArray[np.bool_], counts: Rows) -> tuple[Rows, float]:
    """Return weights and bias of a logistic regression, by Newton's method; each row weighs its `counts`."""
    mean, spread = features.mean(0), features.std(0)
    scale = np.where(spread > 1e-9, 1 / np.maximum(spread, 1e-9), 0)
    inputs = np.column_stack([(features - mean) * scale, np.ones(len(features))])
    weights = np.zeros(inputs.shape[1])
    penalty = PENALTY * counts.sum() * np.eye(len(weights))
    penalty[-1, -1] = 1e-9
    for _ in range(30):
        chances = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        slope = inputs.T @ ((chances - labels) * counts) + penalty @ weights
        curve = inputs.T @ (inputs * (chances * (1 - chances) * counts)[:, None]) + penalty
        move = np.linalg.solve(curve, slope)
        weights -= move
        if np.abs(move).max() < 1e-7:
            break
    plain = weights[:-1] * scale
    return plain, float(weights[-1] - mean @ plain)


def train(cases: Sequence[Case], folds: NDArray[np.intp]) -> tuple[RouterModel, list[RouterModel]]:
    """Return the model of all cases, and for each fold that of the others."""
    networks = [
        _network([case for case, fold in zip(cases, folds, strict=True) if fold != tried])
        for tried in range(FOLDS)
    ]
    # chances are learned from scores of models that did not learn from the case
    scored = [networks[fold].scores(case.found.features) for case, fold in zip(cases, folds, strict=True)]
    calibrated = [_calibrated(networks[tried], cases, scored, folds != tried) for tried in range(FOLDS)]
    return _calibrated(_network(cases), cases, scored, folds >= 0), calibrated


def balanced(cases: Sequence[Case]) -> Rows:
    """Return what each case weighs: in libraries of each size as many queries have a skill as have none.

    How often no skill fits is not known of users; even odds favour neither answer.
    """
    groups = [(round(np.log2(case.size)), case.count > 0) for case in cases]
    numbers = Counter(groups)
    return np.array([len(cases) / len(numbers) / numbers[group] for group in groups])


def _network(cases: Sequence[Case]) -> RouterModel:
    (weights, biases, out), direct = train_scores(lists_of(cases))
    layers = ((weights, biases), (out[:, None], np.zeros(1)))
    none = np.zeros(0), 0.0
    return RouterModel(layers, direct, none, none, THRESHOLD, MOST_TERMS)


def _calibrated(
    network: RouterModel, cases: Sequence[Case], scored: Sequence[Rows], learns: NDArray[np.bool_]
) -> RouterModel:
    """Return the network with chances from the cases that it may learn from."""
    chosen = [
        (case, scores)
        for case, scores, learn in zip(cases, scored, learns, strict=True)
        if learn and len(scores)
    ]
    features = [chance_features_of(case.found, scores)[~case.ignored] for case, scores in chosen]
    labels = [case.needed[~case.ignored] for case, _ in chosen]
    counts = balanced([case for case, _ in chosen])
    sizes = [len(each) for each in labels]
    chance = train_odds(np.concatenate(features), np.concatenate(labels), np.repeat(counts, sizes))
    if chance[0][:2].sum() <= 0:
        raise ValueError("a better score would have a lower chance")
    found = []
    for case, scores in chosen:
        odds = chance_features_of(case.found, scores) @ chance[0] + chance[1]
        found.append(fit_features_of(case.found, scores, 1 / (1 + np.exp(-np.clip(odds, -30, 30)))))
    fits = train_odds(np.array(found), np.array([case.count > 0 for case, _ in chosen]), counts)
    return RouterModel(network.layers, network.direct, chance, fits, THRESHOLD, MOST_TERMS)


def measure(
    cases: Sequence[Case], folds: NDArray[np.intp], models: Sequence[RouterModel]
) -> dict[str, dict[str, float]]:
    """Return the measures of models on the folds that they have not learned from, by kind of query.

    Copies of needed skills are not in the libraries; near ones are, and count as wrong.
    """
    found: dict[str, list[dict[str, float]]] = {}
    fits: list[tuple[float, bool]] = []
    fit_cases = [case for case in cases if len(case.found.skills)]
    chances: list[tuple[float, bool]] = []
    for case, fold in zip(cases, folds, strict=True):
        if not len(case.found.skills):
            continue
        model = models[fold]
        likely, fit = model.chances(case.found)
        fits.append((fit, case.count > 0))
        best = np.argsort(-likely, kind="stable")
        chances += zip(likely[best[:10]].tolist(), case.needed[best[:10]].tolist(), strict=True)
        if case.count:
            places = np.flatnonzero(case.needed[best])
            size = "all" if case.size > max(MEDIUM_LIBRARIES) * 2 else "small"
            found.setdefault(f"{case.question.kind}, {size}", []).append(
                {
                    "hit@1": float(0 in places),
                    "recall@10": float((places < 10).sum() / case.count),
                    "recall@50": float((places < 50).sum() / case.count),
                    "full@10": float((places < 10).sum() == case.count),
                    "proposed": len(places) / case.count,
                }
            )
    measures = {
        kind: {"cases": len(rows)} | {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
        for kind, rows in sorted(found.items())
    }
    measures["fits"] = {"cases": len(fits), **separation(fits, balanced(fit_cases))}
    measures["chance"] = {"cases": len(chances), **separation(chances)}
    return measures


def separation(
    pairs: Sequence[tuple[float, bool]], counts: Rows | None = None, *, bins: int = 10
) -> dict[str, float]:
    """Return AUC and expected calibration error, over bins of equal width, of chances and what came true.

    `counts` is what each weighs in the error.
    """
    values, labels = np.array([value for value, _ in pairs]), np.array([label for _, label in pairs])
    order = np.argsort(values, kind="stable")
    _, tied, same = np.unique(values[order], return_inverse=True, return_counts=True)
    ranks = np.empty(len(values))
    ranks[order] = (np.cumsum(same) - (same - 1) / 2)[tied]
    right = int(labels.sum())
    auc = (ranks[labels].sum() - right * (right + 1) / 2) / max(1, right * (len(labels) - right))
    place = np.minimum((values * bins).astype(int), bins - 1)
    counts = np.ones(len(values)) if counts is None else counts
    gaps = np.abs(np.bincount(place, (values - labels) * counts, bins))
    return {"auc": float(auc), "ece": float(gaps.sum() / counts.sum())}


def write_model(model: RouterModel, path: Path, note: dict[str, Any]) -> None:
    """Write a model as JSON, with six digits of each weight."""
    rounded: Callable[[Any], Any] = lambda values: json.loads(  # noqa: E731 - shorter than its name
        json.dumps(np.asarray(values).tolist()), parse_float=lambda text: float(f"{float(text):.6g}")
    )
    text = {
        "note": note,
        "columns": COLUMNS,
        "layers": [
            {"weights": rounded(weights), "biases": rounded(biases)} for weights, biases in model.layers
        ],
        "direct": rounded(model.direct),
        "chance": {
            "columns": CHANCE_COLUMNS,
            "weights": rounded(model.chance[0]),
            "bias": rounded(model.chance[1]),
        },
        "fits": {"columns": FIT_COLUMNS, "weights": rounded(model.fits[0]), "bias": rounded(model.fits[1])},
        "threshold": model.threshold,
        "most_terms": model.most_terms,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(text) + "\n", encoding="utf-8")


def read_questions(folders: Iterable[Path]) -> tuple[list[tuple[str, Any]], list[Question]]:
    """Return the annotated skills with their ids, and their queries, long and short.

    Raises:
        BenchError: As `read_documents`.
    """
    published = {record.sha256: record for split in SPLITS for record in read_published(split)}
    short = read_published_short()
    skills, questions = [], []
    for folder in folders:
        for document in read_documents(folder):
            id = f"{folder.name}/{document.annotation.skill}"
            digest, group = document.provenance.sha256, document.provenance.repo
            skills.append((id, skill_from_text(document.text, name=document.annotation.skill)))
            annotation = published.get(digest, document.annotation)
            questions += [Question(LONG, each.query, (id,), group) for each in annotation.queries]
            further = document.short or short.get(digest)
            questions += [
                Question(SHORT, each.query, (id,), group) for each in (further.queries if further else ())
            ]
    return skills, questions


def some_of(questions: Sequence[Question], random: np.random.Generator) -> list[Question]:
    """Return at most `PER_SKILL` queries of each kind of each skill."""
    by_skill: dict[tuple[str, str], list[Question]] = {}
    for question in questions:
        by_skill.setdefault((question.kind, question.needs[0]), []).append(question)
    return [
        asked[place]
        for asked in by_skill.values()
        for place in random.permutation(len(asked))[:PER_SKILL].tolist()
    ]


def folds_of(groups: Sequence[str]) -> dict[str, int]:
    """Return the fold of each repository, given those of all queries: the folds are about equally large."""
    names, counts = np.unique(groups, return_counts=True)
    sizes = np.zeros(FOLDS, int)
    fold: dict[str, int] = {}
    for name, count in sorted(zip(names.tolist(), counts.tolist(), strict=True), key=lambda each: -each[1]):
        fold[name] = int(sizes.argmin())
        sizes[fold[name]] += count
    return fold


def make_cases(options: argparse.Namespace) -> tuple[list[Case], NDArray[np.intp]]:
    """Return the cases, each query in the library of all skills and in a smaller one, and their folds."""
    random = np.random.default_rng(options.seed)
    annotated, questions = read_questions(options.data)
    pool = list(read_pool(options.pool))
    corpus = Corpus([*annotated, *pool], options.work / "terms.pkl")
    logger.info("%d skills, %d queries", len(corpus.ids), len(questions))
    mine = np.arange(len(annotated))
    likeness = Likeness(corpus, mine)
    chosen = [pool[place] for place in random.choice(len(pool), min(1_500, len(pool)), replace=False)]
    tasks, groups = read_tasks(TASKS, {question.needs[0]: question.group for question in questions})
    questions = [replace(question, group=groups[question.group]) for question in questions]
    asked = [*some_of(questions, random), *tasks]
    asked += compose(questions, corpus, paragraphs(chosen, random), COMPOSED_QUERIES, random)
    fold = folds_of([question.group for question in asked])
    everything = np.arange(len(corpus.ids))
    whole = corpus.index(everything.tolist())
    of_group: dict[str, set[int]] = {}
    for question in asked:
        of_group.setdefault(question.group, set()).update(corpus.places[id] for id in question.needs)
    # libraries of which each holds the skills of half of the groups; tiny ones are made for each query
    medium = []
    for size in (*MEDIUM_LIBRARIES, *MEDIUM_LIBRARIES):
        held = set(random.permutation(sorted(of_group))[: len(of_group) // 2].tolist())
        places = {place for group in held for place in of_group[group]}
        others = random.choice(everything[len(mine) :], size, replace=False)
        places_of = np.sort(np.array([*places, *others.tolist()]))
        medium.append((held, places_of, corpus.index(places_of.tolist())))
    logger.info("libraries are indexed")
    plans = []
    for question in asked:
        fitting = [number for number, (held, _, _) in enumerate(medium) if question.group in held]
        tiny = not fitting or random.random() < TINY_SHARE
        few = int(random.choice(TINY_LIBRARIES))
        others = random.choice(everything, few + max(3, few // 3), replace=False)
        number = int(random.choice(fitting)) if fitting else 0
        plans.append((bool(random.random() < 1 / 3), others if tiny else number))

    def cases_at(place: int) -> list[Case]:
        question, (without, plan) = asked[place], plans[place]
        if isinstance(plan, int):
            _, little, index = medium[plan]
        else:
            little = np.union1d(plan, [corpus.places[id] for id in question.needs])
            index = corpus.index(little.tolist())
        plan_of = ((everything, whole, without), (little, index, True))
        found = (
            cases_of(question, corpus, places, index, likeness, most_terms=MOST_TERMS, without=wants)
            for places, index, wants in plan_of
        )
        return [as_kept(case) for each in found for case in each if len(case.found.skills)]

    cases = in_processes(cases_at, len(asked), options.jobs)
    return cases, np.array([fold[case.question.group] for case in cases])


def in_processes(work: Callable[[int], list[Case]], count: int, jobs: int) -> list[Case]:
    """Return the cases of all places below `count`, in order; processes share what the work has read."""
    global _work
    _work = work
    cases: list[Case] = []
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for number, found in enumerate(pool.imap(_call_work, range(count), chunksize=16)):
            cases += found
            if number % 200 == 0:
                logger.info("%d of %d queries", number, count)
    return cases


_work: Callable[[int], list[Case]]


def _call_work(place: int) -> list[Case]:
    return _work(place)  # a closure cannot be sent to a process, but a fork has it


def as_kept(case: Case) -> Case:
    """Return the case without what training does not read."""
    features = case.found.features.astype(np.float32)
    return replace(case, found=replace(case.found, features=features, weights={}))


def main() -> None:
    """Train the router, measure it, and write the model that ships."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--pool", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("build/router"))
    parser.add_argument("--out", type=Path, default=MODELS / "router" / "router.json")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    options.work.mkdir(parents=True, exist_ok=True)
    stored = options.work / "cases.pkl"
    if not stored.exists():
        stored.write_bytes(pickle.dumps(make_cases(options), pickle.HIGHEST_PROTOCOL))
    cases, folds = pickle.loads(stored.read_bytes())
    model, tried = train(cases, folds)
    measures = measure(cases, folds, tried)
    for kind, values in measures.items():
        print(kind, {name: round(value, 3) for name, value in values.items()})
    write_model(model, options.out, {"cases": len(cases), "held_out": measures})


if __name__ == "__main__":
    main()

"""Train the navigator: whether a query needs a node, and the probability that a page is sufficient.

It learns from documents whose embeddings and types come from models that were not trained on them, as at run
time. Logits are calibrated on the other folds. So is the probability that a page is sufficient, on pages of
the walk that ships, judged by the evidence measure. `train.py` calls this.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from data import BROAD, LONG, SHORT, STRANGER, UNANSWERED, Asked, is_typical
from data import Example as Document
from fitting import Fit, fit_nets
from sequence_net import Example, Net, Shape
from skillpager.bench.data.evidence import AnnotatedQuery
from skillpager.bench.judge.judges import judge_evidence
from skillpager.classifiers.local import TYPES
from skillpager.encoders.builtin import DIM
from skillpager.pages.assemble import NodeMeter
from skillpager.strategies.navigator.features import (
    LEAST_NEED,
    NAMES,
    IndexFeatures,
    coverage_signals,
    features_of,
)
from skillpager.strategies.navigator.model import (
    QUERY_KINDS,
    Limits,
    NeedModel,
    kinds_of,
    query_signals,
    size_factor,
)
from skillpager.strategies.navigator.strategy import LEAST_CHANCE, MOST_TOKENS, Navigator
from skillpager.strategies.picking import PerIndex
from skillpager.tokens import default_counter
from skillpager.types import Budget, FloatArray, Node, Query, Recipe, SkillIndex
from train_types import Encoded, calibration_error, reliability

SHAPE = Shape(outputs=1, width=48, blocks=2, dropout=0.2)
FIT = Fit(epochs=4, rate=2e-3, batch=16, seeds=4, loss="needs")
# about so many pages of a walk calibrate the chance; every query counts the same
JUDGED_PAGES = 25
# share of the pages without limits that are to suffice, by kind of query (`QUERY_KINDS`): by default and lean
AIMS = ((0.925, 0.95, 0.92), (0.87, 0.87, 0.60))
# prices of a token that are tried: least, largest, how many
PRICES = (1e-5, 1e-2, 200)


@dataclass(frozen=True)
class Case:
    """A query of a document with all that the navigator is given.

    Attributes:
        document: Place of the document in the list of all.
        asked: The query and what it needs.
        index: The document's nodes and rows, with or without notes on nodes.
        known: The features of the index.
        query: Text and row.
        example: What the network learns from.
    """

    document: int
    asked: Asked
    index: SkillIndex
    known: IndexFeatures
    query: Query
    example: Example


def cases_of(number: int, document: Document, encoded: Encoded, types: FloatArray) -> list[Case]:
    """Return the cases of one document: each query without notes on nodes, and if there are any, with them.

    Args:
        number: Place of the document in the list of all.
        document: The document.
        encoded: Its embeddings by an encoder that never saw it.
        types: `(n, 6)` chances of the types by a classifier that never saw it.
    """
    without = make_index(document, encoded.rows, types)
    cases = []
    nothing = np.zeros(len(document.fragments), np.float32)
    own = len(document.unanswered)
    requests = [
        Asked(
            AnnotatedQuery(f"{document.name}#u{place}", query.text),
            nothing,
            UNANSWERED if place < own else STRANGER,
        )
        for place, query in enumerate(encoded.unanswered)
    ]
    every = (*encoded.queries, *encoded.unanswered)
    for notes in dict.fromkeys((None, encoded.notes)):
        index = replace(without, notes=notes)
        known = IndexFeatures(index)
        for asked, query in zip((*document.asked, *requests), every, strict=True):
            target = asked.needs[:, None].astype(np.float32)
            example = Example(features_of(known, query), known.section.member, target)
            cases.append(Case(number, asked, index, known, query, example))
    return cases


def make_index(document: Document, rows: FloatArray, types: FloatArray) -> SkillIndex:
    """Return the index of a document whose embeddings and types are given; without edges."""
    counter = default_counter()
    nodes = tuple(
        Node(
            **{name: getattr(fragment, name) for name in fragment.__dataclass_fields__},
            id=f"n{fragment.ordinal}",
            type=TYPES[int(chances.argmax())],
            type_confidence=float(chances.max()),
            tokens=counter.count(fragment.text),
        )
        for fragment, chances in zip(document.fragments, types, strict=True)
    )
    recipe = Recipe("", "", "", "", counter.id, 0)
    full = sum(counter.count(file.text[file.body_start :]) for file in document.skill.files)
    return SkillIndex(document.skill, nodes, document.headings, (), rows, recipe, "", full)


def train(cases: Sequence[Case], shape: Shape = SHAPE, fit: Fit = FIT) -> list[Net]:
    """Return networks trained on some cases."""
    usable = [
        case.example for case in cases if case.asked.series in NOT_COVERED or (case.asked.needs == 1).any()
    ]
    return fit_nets(usable, shape, fit)


def fit_scale(cases: Sequence[Case], logits: Sequence[FloatArray]) -> tuple[float, float]:
    """Return slope and intercept that make logits calibrated log odds; every query counts the same."""
    weights = np.concatenate([np.full(len(values), 1 / len(values)) for values in logits])
    needed = np.concatenate([case.asked.needs == 1 for case in cases])
    model = LogisticRegression(C=1e6).fit(np.concatenate(list(logits))[:, None], needed, weights)
    return float(model.coef_[0, 0]), float(model.intercept_[0])


NEVER = -20.0  # log odds
# series of requests that the skill does not answer
NOT_COVERED = (UNANSWERED, STRANGER)
# the features of a document, for the queries about it
PREPARED: PerIndex[Any] = PerIndex()


@dataclass(frozen=True)
class Walk:
    """All nodes of a query in the order of picking.

    Attributes:
        signals: `(n, len(CHANCE_SIGNALS))` signals of sufficiency after each pick.
        shown: `(n,)` tokens up to and with each pick.
        full_tokens: Tokens of the document.
        enough: How many picks suffice, by the evidence measure.
        series: That of the query.
        kinds: `(len(QUERY_KINDS),)` shares of the kinds of the query.
        alone: Whether the skill is a single file.
        typical: Whether it is of the data by many authors (`data.is_typical`).
        noted: Whether there are notes on its nodes.
        covered: Chance that the skill answers the query at all, if estimated.
    """

    signals: FloatArray
    shown: FloatArray
    full_tokens: int
    enough: int
    series: str
    kinds: FloatArray
    alone: bool
    typical: bool
    noted: bool
    covered: float | None


def walk(case: Case, document: Document, model: NeedModel) -> Walk:
    """Return the whole walk of one query; its pages only grow, so that one count says which suffice."""
    unlimited = Limits(None, model.limits.price)
    plain = replace(model, limits=unlimited, limits_with_notes=None)
    navigator, meter = Navigator(model=plain, prepared=PREPARED), NodeMeter(case.index.nodes)
    selection = navigator.select(case.index, case.query, budget=Budget(fill=True), meter=meter)
    picks = selection.picks
    shown = np.array([pick.total_tokens for pick in picks])
    breadth = model.breadth_of(case.query)
    return Walk(
        signals=_signals(case, np.array([pick.marginal for pick in picks]), shown, breadth),
        shown=shown,
        full_tokens=case.index.full_tokens,
        enough=enough(case, document, [[pick.node.ordinal] for pick in picks]),
        series=case.asked.series,
        kinds=kinds_of(case.query, breadth),
        alone=len(document.document.files) == 1,
        typical=is_typical(document),
        noted=case.index.notes is not None,
        covered=selection.covered,
    )


def enough(case: Case, document: Document, parts: Sequence[Sequence[int]]) -> int:
    """Return how many parts, lists of ordinals, a page must have of the first, to suffice by the measure."""

    def suffices(count: int) -> bool:
        shown = sorted(ordinal for part in parts[:count] for ordinal in part)
        text = "\n\n".join(case.index.nodes[ordinal].text for ordinal in shown)
        return judge_evidence(document.document, case.asked.query, text)[1]

    return bisect_left(range(len(parts) + 1), True, key=suffices)


def _signals(case: Case, needs: FloatArray, shown: FloatArray, breadth: float) -> FloatArray:
    """Return the signals of sufficiency after each pick of a whole walk, as the navigator counts them."""
    weights = -np.log1p(-needs)
    left = weights.sum() - weights.cumsum()
    largest = np.append(np.maximum.accumulate(weights[::-1])[::-1][1:], 0.0)
    growing = np.log(np.maximum([left, largest, shown], LEAST_NEED)).T
    fixed = query_signals(case.query, needs, case.index.full_tokens, breadth)
    return np.hstack([growing, np.broadcast_to(fixed, (len(needs), len(fixed)))])


def fit_coverage(cases: Sequence[Case], needs: Sequence[FloatArray]) -> tuple[FloatArray, float]:
    """Return weights and bias of the log odds that a skill answers a query at all.

    Each series counts the same in total: long, short, broad, near misses, and queries of other skills.
    """
    signals = np.stack(
        [coverage_signals(case.known, case.query, of) for case, of in zip(cases, needs, strict=True)]
    )
    series = [case.asked.series for case in cases]
    weights = np.array([1 / series.count(name) for name in series]) * len(cases)
    return _regression(signals, [name not in NOT_COVERED for name in series], weights)


def fit_breadth(cases: Sequence[Case]) -> tuple[FloatArray, float]:
    """Return weights and bias of the log odds that a query is broad, from its embedding; never if none is."""
    asked = [case for case in cases if case.asked.series in (SHORT, BROAD)]
    truth = [case.asked.series == BROAD for case in asked]
    if len(set(truth)) < 2:
        return np.zeros(DIM, np.float32), NEVER
    rows = np.stack([case.query.embedding for case in asked])
    model = LogisticRegression(C=5.0, max_iter=1000).fit(rows, truth)
    return model.coef_[0].astype(np.float32), float(model.intercept_[0])


def fit_topics(centres: Mapping[int, FloatArray], about_any: Set[int]) -> tuple[FloatArray, float] | None:
    """Return weights and bias of the log odds that a skill is about any topic; None if none or all are.

    Args:
        centres: `IndexFeatures.centre` of each document, by its place.
        about_any: The places of the documents that are about any topic.
    """
    truth = [place in about_any for place in centres]
    if len(set(truth)) < 2:
        return None
    model = LogisticRegression(C=10.0, max_iter=2000).fit(np.stack([*centres.values()]), truth)
    return model.coef_[0].astype(np.float32), float(model.intercept_[0])


def _regression(
    signals: FloatArray, truth: Sequence[bool] | np.ndarray, weights: FloatArray
) -> tuple[FloatArray, float]:
    """Return weights and bias of a logistic regression on signals of any scale."""
    scaler = StandardScaler().fit(signals)
    model = LogisticRegression(C=1.0, max_iter=2000).fit(scaler.transform(signals), truth, weights)
    weight = model.coef_[0] / scaler.scale_
    return weight.astype(np.float32), float(model.intercept_[0] - weight @ scaler.mean_)


def score_coverage(cases: Sequence[Case], covered: Sequence[float | None]) -> dict[str, object]:
    """Return how well the chance of being covered tells which queries are answered, and its calibration.

    Queries for which there is no chance do not count.
    """
    found: dict[str, object] = {}
    known = {
        series: np.array(
            [
                chance
                for case, chance in zip(cases, covered, strict=True)
                if case.asked.series in names and chance is not None
            ]
        )
        for series, names in ((LONG, (LONG,)), (SHORT, (SHORT,)), (UNANSWERED, NOT_COVERED))
    }
    for name, series in (("auc", (LONG, SHORT)), ("auc_long", (LONG,)), ("auc_short", (SHORT,))):
        yes, no = np.concatenate([known[each] for each in series]), known[UNANSWERED]
        found[name] = round(float(roc_auc_score([1] * len(yes) + [0] * len(no), [*yes, *no])), 4)
    chances = np.concatenate(list(known.values()))
    truth = np.repeat([1, 1, 0], [len(of) for of in known.values()])
    found["reliability"] = bins = reliability(chances, truth)
    found["expected_calibration_error"] = calibration_error(bins)
    return found


def fit_chance(walks: Sequence[Walk]) -> tuple[FloatArray, FloatArray]:
    """Return weights and biases of the log odds of sufficiency, by kind of query, fitted together."""
    signals, sufficient, shares = [], [], []
    for each in walks:
        places = np.arange(len(each.signals))[:: max(1, len(each.signals) // JUDGED_PAGES)]
        with_bias = np.hstack([each.signals[places], np.ones((len(places), 1))])
        signals.append((each.kinds[:, None] * with_bias[:, None, :]).reshape(len(places), -1))
        sufficient.append(places + 1 >= each.enough)
        shares.append(np.full(len(places), JUDGED_PAGES / len(places)))
    fitted, bias = _regression(np.concatenate(signals), np.concatenate(sufficient), np.concatenate(shares))
    weights = fitted.reshape(len(QUERY_KINDS), -1).astype(np.float64)
    return weights[:, :-1], weights[:, -1] + bias


def chances_of(walk: Walk, chance: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return `(n,)` the chance that a page of the walk suffices, by its number of picks."""
    odds = walk.signals @ (walk.kinds @ chance[0]) + walk.kinds @ chance[1]
    chances: FloatArray = 1 / (1 + np.exp(-odds))
    return chances


def length_at(walk: Walk, chances: FloatArray, price: float, least: float = LEAST_CHANCE) -> int:
    """Return how many picks the page without limits has at a price of a token.

    Only pages whose chance is at least `least` count, if there is one.
    """
    worths = np.where(chances >= least, chances - price * walk.shown, -np.inf)
    length = int(np.argmax(worths)) + 1 if np.isfinite(worths).any() else len(worths)
    return min(length, max(1, int(np.searchsorted(walk.shown, walk.kinds @ MOST_TOKENS, side="right"))))


def fit_price(walks: Sequence[Walk], chance: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return `(2, len(QUERY_KINDS))`: the largest prices at which pages suffice as often as `AIMS` says.

    The pages are those of skills of one file; each query counts for the kind that it mostly is.
    """
    alone = [(walk, chances_of(walk, chance)) for walk in walks if walk.alone]
    prices = np.geomspace(*PRICES)
    found = np.full((len(AIMS), len(QUERY_KINDS)), prices[0])
    for kind in range(len(QUERY_KINDS)):
        of_kind = [each for each in alone if int(each[0].kinds.argmax()) == kind]
        if not of_kind:
            continue
        shares = [
            np.mean(
                [
                    length_at(walk, chances, price * size_factor(walk.full_tokens)) >= walk.enough
                    for walk, chances in of_kind
                ]
            )
            for price in prices
        ]
        for place, aims in enumerate(AIMS):
            found[place, kind] = max(
                (price for price, share in zip(prices, shares, strict=True) if share >= aims[kind]),
                default=prices[0],
            )
    return found


def fit_limits(walks: Sequence[Walk]) -> Limits:
    """Return chance and price fitted on some walks."""
    chance = fit_chance(walks)
    return Limits(chance, fit_price(walks, chance))


def file_arrays(model: NeedModel) -> dict[str, np.ndarray]:
    """Return what the model's file holds."""
    arrays = {
        "signals": np.array(NAMES),
        "embedding": np.array(model.embedding),
        "scale": np.array(model.scale),
        "broad.weight": model.breadth[0],
        "broad.bias": np.array(model.breadth[1]),
        **{f"net.{name}": array for name, array in model.net.arrays.items()},
    }
    for name, regression in ("covered", model.coverage), ("topics", model.topics):
        if regression:
            arrays |= {f"{name}.weight": regression[0], f"{name}.bias": np.array(regression[1])}
    for prefix, limits in (("", model.limits), ("notes.", model.limits_with_notes)):
        if limits is not None and limits.chance is not None:
            arrays[f"{prefix}chance.weight"], arrays[f"{prefix}chance.bias"] = limits.chance
            arrays[f"{prefix}price"] = limits.price
    return arrays


def settings() -> dict[str, object]:
    """Return what the networks were made with, for the log."""
    return {"shape": asdict(SHAPE), "fit": asdict(FIT)}


def ranking(cases: Sequence[Case], logits: Sequence[FloatArray]) -> dict[str, float]:
    """Return how well logits rank the needed nodes: area under the ROC curve, and share of tokens to read.

    The share is that of the nodes that rank no lower than the last needed one.
    """
    areas, shares = [], []
    for case, values in zip(cases, logits, strict=True):
        needed = case.asked.needs == 1
        if needed.any() and not needed.all():
            right, wrong = values[needed][:, None], values[~needed]
            areas.append(float(((right > wrong) + 0.5 * (right == wrong)).mean()))
            tokens = case.known.tokens
            shares.append(float(tokens[values >= values[needed].min()].sum() / tokens.sum()))
    return {"auc": round(float(np.mean(areas)), 4), "share_to_read": round(float(np.mean(shares)), 4)}

"""Methods side by side: their main measures, paired tests, and curves at equal budgets."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
import pandas as pd

from skillpager.bench.report import statistics
from skillpager.bench.report.results import BASELINE, Results
from skillpager.bench.report.statistics import COVERAGE, MICRO_REDUCTION, SUFFICIENCY, Interval, bootstrap
from skillpager.bench.run.methods import OFFLINE, SUITES, parse_method
from skillpager.json_types import JsonObject


def default_methods(results: Results) -> tuple[str, ...]:
    """Return the methods without options but notes, save those of an ablation, in the order of the suites."""
    ablations = {label for labels in SUITES.values() for label in labels} - set(OFFLINE)
    plain = [each for each in results.labels if each.partition("@notes=")[0] == parse_method(each).strategy]
    return tuple(label for label in plain if label not in ablations and results.has(label))


def summarise(results: Results, labels: Iterable[str], *, baseline: str | None = None) -> list[JsonObject]:
    """Return the main measures of each method that was run and judged, percentages as such.

    Keys: `method`, `queries` (that were judged), `sufficiency`, its `interval` over skills (two ends), those
    of `SUMMARY_MEASURES`, `token_reduction_median` and `milliseconds` (the median), each None where it was
    not measured. With a baseline also the paired `difference` in points, `difference_interval` and `p`.
    """
    labels = [label for label in labels if results.has(label)]
    tests = compare_methods(results, labels, baseline=baseline) if baseline else []
    compared = {each.method: each for each in tests}
    found: list[JsonObject] = []
    for label in labels:
        rows = results.rows(label)
        sufficiency, *interval = (
            round(each, 2) for each in astuple(SUFFICIENCY.interval(rows, by_skill=True))
        )
        values = {name: measure.of(rows) for name, measure in statistics.SUMMARY_MEASURES.items()}
        values["token_reduction_median"] = 100 * float((1 - rows["tokens"] / rows["full_tokens"]).median())
        values["milliseconds"] = 1000 * float(rows["seconds"].median())
        row: JsonObject = {
            "method": label,
            "queries": len(rows),
            "sufficiency": sufficiency,
            "interval": interval,
            **{name: None if math.isnan(value) else round(value, 2) for name, value in values.items()},
        }
        if baseline:
            row |= dict.fromkeys(("difference", "difference_interval", "p"))
        if test := compared.get(label):
            value, *ends = (round(each, 2) for each in astuple(test.clustered))
            row |= {"difference": value, "difference_interval": ends, "p": test.p_holm}
        found.append(row)
    return found


# ---- paired tests


@dataclass(frozen=True, slots=True)
class Compared:
    """The sufficiency of a method against that of the baseline on the same queries."""

    method: str
    difference: Interval  # method minus baseline, points, interval over queries
    clustered: Interval  # the same, interval over skills
    saved: float  # by how many points the method reduces tokens more
    p: float  # two-sided, of the bootstrap over skills, that the means are equal
    only_method: int  # queries that only the method answers
    only_baseline: int
    p_holm: float = math.nan  # `p`, corrected for the number of methods


def compare_methods(results: Results, labels: Iterable[str], *, baseline: str = BASELINE) -> list[Compared]:
    """Return each method against the baseline on the queries that both have.

    The p values are those of the bootstrap over skills, corrected together by Holm's method.
    """
    found: list[Compared] = []
    for label in labels:
        rows, base = results.common(label, baseline)
        if label == baseline or not len(rows):
            continue
        gaps = rows["sufficient"].to_numpy() - base["sufficient"].to_numpy()
        skills = list(rows["skill"])
        found.append(
            Compared(
                label,
                difference=bootstrap(gaps).scaled(100),
                clustered=bootstrap(gaps, clusters=skills).scaled(100),
                saved=MICRO_REDUCTION.of(rows) - MICRO_REDUCTION.of(base),
                p=statistics.bootstrap_p(gaps, clusters=skills),
                only_method=int(np.sum(gaps > 0)),
                only_baseline=int(np.sum(gaps < 0)),
            )
        )
    corrected = statistics.holm([each.p for each in found])
    return [replace(each, p_holm=p) for each, p in zip(found, corrected, strict=True)]


# ---- equal budgets

# a method that uses less of its budgets stops early, and is not compared at equal tokens
MIN_USED = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A method over budgets, on the queries that it was judged on at every budget."""

    method: str  # its label without a budget
    # by budget (0 to 1), ascending, in percent: `used` (the share of all tokens that the pages have in fact),
    # `sufficiency` and `coverage` (NaN where the judge measures none)
    points: pd.DataFrame
    rows: pd.DataFrame  # by query its `skill`, and `area`, the area under the query's own curve, 0 to 1

    @property
    def fills(self) -> bool:
        """Whether its pages use the budgets, so that it can be compared with others at equal tokens."""
        return float(self.points["used"].sum()) >= MIN_USED * 100 * float(sum(self.points.index))

    def area(self) -> Interval:
        """Return the mean sufficiency over budgets by the trapezoid rule, percent, with its interval."""
        return bootstrap(self.rows["area"]).scaled(100)


def read_curves(results: Results) -> list[Curve]:
    """Return a curve for each method that was judged at two budgets or more, best area first."""
    budgets: dict[str, dict[float, str]] = {}
    for label in results.labels:
        method = parse_method(label)
        if method.share is not None and results.has(label):
            name = replace(method, share=None, max_tokens=None, max_nodes=None).label
            budgets.setdefault(name, {})[method.share] = label
    curves = [_curve(results, name, labels) for name, labels in budgets.items() if len(labels) > 1]
    return sorted((c for c in curves if len(c.rows)), key=lambda curve: -float(curve.rows["area"].mean()))


def _curve(results: Results, name: str, labels: Mapping[float, str]) -> Curve:
    shares = sorted(labels)
    found = dict(zip(shares, results.common(*(labels[share] for share in shares)), strict=True))
    points = {
        share: {
            "used": 100 - MICRO_REDUCTION.of(rows),
            "sufficiency": SUFFICIENCY.of(rows),
            "coverage": COVERAGE.of(rows),
        }
        for share, rows in found.items()
    }
    verdicts = pd.DataFrame({share: rows.set_index("query")["sufficient"] for share, rows in found.items()})
    areas = np.trapezoid(verdicts, shares, axis=1) / (shares[-1] - shares[0])
    skills = found[shares[0]].set_index("query")["skill"]
    rows = pd.DataFrame({"skill": skills, "area": pd.Series(areas, index=verdicts.index)})
    return Curve(name, pd.DataFrame(points).T, rows)


def filling_curve(curves: Sequence[Curve], method: str) -> Curve | None:
    """Return the curve of a method if it fills its budgets, else that of a variant which does.

    The paper's λ of 0.7 stops early with an encoder of low cosines, so that `mmr@lambda=0.9` stands for it.
    """
    variants = [curve for curve in curves if curve.method == method or curve.method.startswith(f"{method}@")]
    return min((curve for curve in variants if curve.fills), key=lambda curve: curve.method, default=None)


def compare_curves(curves: Sequence[Curve], base: Curve) -> dict[str, tuple[Interval, float]]:
    """Return by method how the area of each other curve differs from `base`, on the queries of both.

    Curves that do not fill their budgets are left out. Points with their interval, and p corrected for the
    number of curves; both draw skills.
    """
    found: dict[str, tuple[Interval, float]] = {}
    for curve in curves:
        both = curve.rows.assign(base=base.rows["area"]).dropna()
        if curve is not base and curve.fills and len(both):
            gaps, skills = both["area"] - both["base"], list(both["skill"])
            difference = bootstrap(gaps, clusters=skills).scaled(100)
            found[curve.method] = difference, statistics.bootstrap_p(gaps, clusters=skills)
    corrected = statistics.holm([p for _, p in found.values()])
    return {name: (found[name][0], p) for name, p in zip(found, corrected, strict=True)}

"""What a run shows, in plain sentences made of its numbers."""

from collections import Counter
from collections.abc import Iterator, Sequence

from skillpager.bench.report.claims import CheckedClaim, Verdict
from skillpager.bench.report.comparisons import ALPHA, BASELINE, compare_methods, default_methods
from skillpager.bench.report.curves import Curve, shared_areas, without_budget
from skillpager.bench.report.frontier import frontier, points_of
from skillpager.bench.report.measures import LATENCY_MEDIAN, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval, bootstrap, bootstrap_p, holm
from skillpager.bench.report.tables.table import format_cell
from skillpager.bench.run.methods import parse_method

# the budget that a sentence is about: half of the tokens, about what the paper's method spends
HALF = 0.5
PERCENT_SIGN = "\u00a0%"  # no line break before it


def find_out(results: Results, curves: Sequence[Curve], claims: Sequence[CheckedClaim]) -> list[str]:
    """Return the findings of a run, the most useful first."""
    return [
        *_at_half(results),
        *_over_budgets(curves),
        *_of_frontier(results),
        *_of_default(results),
        *_of_claims(claims),
    ]


def _at_half(results: Results) -> Iterator[str]:
    """Yield which method is best at half of the tokens, and whether it beats the baseline."""
    labels = {
        without_budget(label): label
        for label in results.labels
        if parse_method(label).share == HALF and results.has(label)
    }
    if len(labels) < 2:
        return
    scores = {name: SUFFICIENCY.of(results.rows(label)) for name, label in labels.items()}
    best = max(scores, key=scores.__getitem__)
    yield (
        f"At a budget of half of each skill's tokens, {best} is the best of {len(labels)} methods: its "
        f"contexts are sufficient for {_percent(scores[best])} of the queries."
    )
    if BASELINE not in scores or best == BASELINE:
        return
    tested = compare_methods(results, labels.values(), baseline=labels[BASELINE])
    found = next((each for each in tested if each.method == labels[best]), None)
    if found:
        yield (
            f"At that budget {BASELINE}, as the paper sets it, is sufficient for "
            f"{_percent(scores[BASELINE])} and uses "
            f"{_percent(100 - MICRO_REDUCTION.of(results.rows(labels[BASELINE])))} of the tokens. "
            f"{_difference(found.comparison.clustered.scaled(100), found.p_holm, len(tested))}"
        )


def _over_budgets(curves: Sequence[Curve]) -> Iterator[str]:
    """Yield which method is best over all budgets, and how sure that is."""
    if len(curves) < 2:
        return
    best, second = curves[:2]
    yield (
        f"Over all budgets {best.method} has the largest area under the curve, "
        f"{format_cell(best.area(by_skill=True), 1)}{PERCENT_SIGN}; next is "
        f"{second.method} with {format_cell(second.area(by_skill=True), 1)}{PERCENT_SIGN}."
    )
    others = [curve for curve in curves[1:] if len(shared_areas(best, curve)[0])]
    gaps = [_gap(best, curve) for curve in others]
    corrected = holm([p for _, p in gaps])
    tied = [curve.method for curve, p in zip(others, corrected, strict=True) if p >= ALPHA]
    if tied:
        yield f"Not significantly worse than {best.method} over all budgets: {', '.join(tied)}."
    else:
        yield f"{best.method} is significantly better over all budgets than every other method."


def _gap(first: Curve, second: Curve) -> tuple[Interval, float]:
    mine, theirs, skills = shared_areas(first, second)
    return bootstrap(mine - theirs, clusters=skills), bootstrap_p(mine - theirs, clusters=skills)


def _of_frontier(results: Results) -> Iterator[str]:
    points = points_of(results, default_methods(results))
    best = frontier(points)
    if len(points) > 1:
        told = "; ".join(f"{p.method} ({_percent(p.sufficiency)} at {_percent(p.reduction)})" for p in best)
        yield (
            f"At default budgets no other method is both as sufficient and as short as these {len(best)} of "
            f"{len(points)} (sufficiency at token reduction): {told}."
        )


def _of_default(results: Results) -> Iterator[str]:
    """Yield what the paper's method does at its defaults."""
    if results.has(BASELINE):
        rows = results.rows(BASELINE)
        yield (
            f"{BASELINE} at the paper's settings saves {_percent(MICRO_REDUCTION.of(rows))} of the tokens "
            "and is sufficient for "
            f"{format_cell(SUFFICIENCY.interval(rows, by_skill=True), 1)}{PERCENT_SIGN} of the queries; "
            f"choosing and rendering a context takes {LATENCY_MEDIAN.of(rows):.1f} ms in the median."
        )


def _of_claims(claims: Sequence[CheckedClaim]) -> Iterator[str]:
    if claims:
        counts = Counter(each.verdict for each in claims)
        yield (
            f"Claims of the paper that can be checked here: {len(claims)}. Of these, those that hold: "
            f"{counts[Verdict.HOLDS]}; that do not: {counts[Verdict.FAILS]}; open: {counts[Verdict.OPEN]}."
        )


def _difference(points: Interval, p: float, tests: int) -> str:
    significant = "significant" if p < ALPHA else "not significant"
    return (
        f"The difference of {format_cell(points, 1)} points is {significant} "
        f"(p = {p:.4f} after correction for {tests} tests)."
    )


def _percent(value: float) -> str:
    return f"{format_cell(value, 1)}{PERCENT_SIGN}"

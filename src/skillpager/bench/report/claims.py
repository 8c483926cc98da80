"""What the paper claims of pairs of methods, and whether it holds on a run."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum

from skillpager.bench.report import paper
from skillpager.bench.report.measures import FRAGMENT_REDUCTION, SUFFICIENCY, Measure
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval, bootstrap

# differences of less than this, in percentage points, count as none: the paper calls 3.3 points of the full
# document's sufficiency “statistical non-inferiority” (§5.2.1) and 3 points of chunks “comparable”
MARGIN = 5.0


class Expectation(StrEnum):
    """How the first method should do against the second."""

    HIGHER = "higher"
    LOWER = "lower"
    ALIKE = "alike"
    NO_HIGHER = "no higher"


class Verdict(StrEnum):
    """Whether a claim holds."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "open"


class Scope(StrEnum):
    """The queries that a claim is about."""

    ALL = "all"
    ABLATION = "ablation"
    SMALL = "small skills"
    LARGE = "large skills"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper.

    Attributes:
        text: In words.
        section: Where it stands.
        first: Method that it is about.
        second: Method that it is compared with.
        paper: The paper's difference, first minus second, points.
        expectation: How the first does against the second.
        measure: Sufficiency or token reduction.
        scope: The queries that it is about.
    """

    text: str
    section: str
    first: str
    second: str
    paper: float
    expectation: Expectation
    measure: Measure = SUFFICIENCY
    scope: Scope = Scope.ALL


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with what was measured.

    Attributes:
        claim: The claim.
        difference: First minus second, points; the interval draws skills.
        saved: By how many points the first reduces tokens more than the second.
        verdict: Whether it holds.
    """

    claim: Claim
    difference: Interval
    saved: float
    verdict: Verdict


def check_claims(results: Results) -> list[CheckedClaim]:
    """Return the claims whose two methods were run and judged, each checked."""
    checked = (
        _check(results, claim) for claim in CLAIMS if results.has(claim.first) and results.has(claim.second)
    )
    return [each for each in checked if each is not None]


def judge_claim(difference: Interval, expectation: Expectation) -> Verdict:
    """Return whether a difference in points meets an expectation, with all of its interval."""
    low, high = difference.low, difference.high
    holds, fails = {
        Expectation.HIGHER: (low > 0, high < 0),
        Expectation.LOWER: (high < 0, low > 0),
        Expectation.ALIKE: (low > -MARGIN and high < MARGIN, low > MARGIN or high < -MARGIN),
        Expectation.NO_HIGHER: (high < MARGIN, low > MARGIN),
    }[expectation]
    return Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.OPEN


def _check(results: Results, claim: Claim) -> CheckedClaim | None:
    skills = _skills(results, claim.scope)
    first, second = (rows.of_skills(skills) for rows in results.common(claim.first, claim.second))
    if not len(first):
        return None
    # both methods have the same denominators: the queries, or the tokens of the skills
    wholes = None if claim.measure.wholes is None else claim.measure.wholes(first)
    parts = claim.measure.parts(first) - claim.measure.parts(second)
    difference = bootstrap(parts, wholes, clusters=first.skill).scaled(100)
    saved = FRAGMENT_REDUCTION.of(first) - FRAGMENT_REDUCTION.of(second)
    return CheckedClaim(claim, difference, saved, judge_claim(difference, claim.expectation))


def _skills(results: Results, scope: Scope) -> AbstractSet[str]:
    if scope is Scope.ALL:
        return {skill.id for skill in results.skills}
    if scope is Scope.ABLATION:
        return results.ablation_skills
    small = scope is Scope.SMALL
    return {
        skill
        for skill in results.ablation_skills
        if (results.node_counts.get(skill, 0) <= paper.SIZE_BOUNDARY) == small
    }


def _gap(table: PaperTable, first: str, second: str) -> float:
    return table.row(first).sufficiency - table.row(second).sufficiency


def _saved(table: PaperTable, first: str, second: str) -> float:
    return (table.row(first).token_reduction or 0.0) - (table.row(second).token_reduction or 0.0)


def _main(text: str, first: str, second: str, expectation: Expectation) -> Claim:
    return Claim(text, "§5.2.1", first, second, _gap(paper.MAIN, first, second), expectation)


def _concept(text: str, first: str, second: str, expectation: Expectation) -> Claim:
    gap = _gap(paper.CONCEPT, first, second)
    return Claim(text, "§5.2.2", first, second, gap, expectation, scope=Scope.ABLATION)


def _swept(table: PaperTable, text: str, first: str, second: str, expectation: Expectation) -> Claim:
    gap = _gap(table, first, second)
    return Claim(text, table.section, first, second, gap, expectation, scope=Scope.ABLATION)


CLAIMS = (
    _main("MMR is nearly as often sufficient as the full document", "mmr", "full", Expectation.ALIKE),
    _main("MMR beats greedy traversal of the graph", "mmr", "greedy_graph", Expectation.HIGHER),
    _main("MMR beats top-k with dependency completion", "mmr", "topk_dependency", Expectation.HIGHER),
    _main(
        "Greedy traversal beats top-k with completion", "greedy_graph", "topk_dependency", Expectation.HIGHER
    ),
    _main("256-token chunks are as often sufficient as typed nodes", "chunk_mmr", "mmr", Expectation.ALIKE),
    Claim(
        "… but save fewer tokens (difference of token reductions)",
        "§5.2.1",
        "chunk_mmr",
        "mmr",
        _saved(paper.MAIN, "chunk_mmr", "mmr"),
        Expectation.LOWER,
        FRAGMENT_REDUCTION,
    ),
    Claim(
        "Adding graph neighbours does not raise sufficiency",
        "§3.3",
        "mmr_graph",
        "mmr",
        _gap(paper.GRAPH, "mmr_graph", "mmr"),
        Expectation.NO_HIGHER,
    ),
    Claim(
        "… and saves fewer tokens (difference of token reductions)",
        "§3.3",
        "mmr_graph",
        "mmr",
        _saved(paper.GRAPH, "mmr_graph", "mmr"),
        Expectation.LOWER,
        FRAGMENT_REDUCTION,
    ),
    _concept("Concept nodes in the pool help", "mmr", "exec_only", Expectation.HIGHER),
    _concept("Concept nodes alone do not suffice", "concept_only", "mmr", Expectation.LOWER),
    *(
        _concept(
            f"Gating by density τ = {tau} is worse than no concepts",
            f"density:{tau}",
            "exec_only",
            Expectation.LOWER,
        )
        for tau in (0.3, 0.4, 0.5)
    ),
    _swept(paper.LAMBDA, "λ = 0.7 beats λ = 0.5", "mmr@lambda=0.7", "mmr@lambda=0.5", Expectation.HIGHER),
    _swept(
        paper.LAMBDA,
        "λ = 0.9 adds little to λ = 0.7",
        "mmr@lambda=0.9",
        "mmr@lambda=0.7",
        Expectation.NO_HIGHER,
    ),
    _swept(paper.NODE_BUDGET, "k = 20 beats k = 5", "mmr@k=20", "mmr@k=5", Expectation.HIGHER),
    _swept(paper.NODE_BUDGET, "k = 30 adds little to k = 20", "mmr@k=30", "mmr@k=20", Expectation.NO_HIGHER),
    Claim(
        f"Up to {paper.SIZE_BOUNDARY} nodes, k = 60 adds little to k = 20",
        "§5.3.3",
        "mmr@k=60",
        "mmr@k=20",
        paper.SMALL_AT_60 - paper.SMALL_AT_20,
        Expectation.NO_HIGHER,
        scope=Scope.SMALL,
    ),
    Claim(
        f"Above {paper.SIZE_BOUNDARY} nodes, k = 60 beats k = 20",
        "§5.3.3",
        "mmr@k=60",
        "mmr@k=20",
        paper.LARGE_AT_60 - paper.LARGE_AT_20,
        Expectation.HIGHER,
        scope=Scope.LARGE,
    ),
)

"""The paper's claims about pairs of methods, and whether each holds on a run that can be compared with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from skillpager.bench.judge.evidence_judge import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.measures import FRAGMENT_REDUCTION, SUFFICIENCY, Measure
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval, bootstrap
from skillpager.bench.report.tables.table import Table

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
    NOT_COMPARABLE = "not comparable"


# what came out here, in words that say nothing of the paper's own experiment
OUTCOMES = {Verdict.HOLDS: "as in the paper", Verdict.FAILS: "not as in the paper", Verdict.OPEN: "open"}
# the paper's model by its own name, as the id of an encoder has it: on the hub, in a folder, of Ollama
_PAPER_ENCODER = re.compile(r"(^|[/:])bge-m3($|:)", re.IGNORECASE)


class Scope(StrEnum):
    """The queries that a claim is about."""

    ALL = "all"
    ABLATION = "ablation"
    SMALL = "small skills"
    LARGE = "large skills"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper: how a first method does against a second one."""

    text: str
    first: str
    second: str
    # the paper's difference, first minus second, points; None where it gives a bound only
    paper: float | None
    expectation: Expectation
    measure: Measure = SUFFICIENCY  # or token reduction
    margin: float = MARGIN  # differences of less count as none, points
    scope: Scope = Scope.ALL


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with our measurement."""

    claim: Claim
    difference: Interval  # first minus second, points; the interval draws skills
    saved: float  # by how many points the first reduces tokens more than the second
    outcome: Verdict  # of this run, whatever its encoder
    verdict: Verdict  # on the paper's claim


def check_claims(results: Results) -> list[CheckedClaim]:
    """Return the claims whose two methods were run and judged, each checked."""
    ablation, counts = results.ablation_skills, results.node_counts
    small = {skill for skill in ablation if counts.get(skill, 0) <= paper.SIZE_BOUNDARY}
    scopes = {Scope.ALL: None, Scope.ABLATION: ablation, Scope.SMALL: small, Scope.LARGE: ablation - small}
    comparable = not differing_parts(results)
    checked = []
    for claim in CLAIMS:
        first, second = results.common(claim.first, claim.second, skills=scopes[claim.scope])
        if not len(first):
            continue
        # both methods have the same denominators: the queries, or the tokens of the skills
        measure = claim.measure
        parts = measure.parts(first).to_numpy() - measure.parts(second).to_numpy()
        wholes = None if measure.wholes is None else measure.wholes(first)
        difference = bootstrap(parts, wholes, clusters=list(first["skill"])).scaled(100)
        saved = FRAGMENT_REDUCTION.of(first) - FRAGMENT_REDUCTION.of(second)
        outcome = judge_claim(difference, claim)
        verdict = outcome if comparable else Verdict.NOT_COMPARABLE
        checked.append(CheckedClaim(claim, difference, saved, outcome, verdict))
    return checked


def differing_parts(results: Results) -> list[str]:
    """Return in words how encoder and embedded text of a run differ from the paper's; empty if they do not.

    Every claim compares methods that rank nodes by the encoder's cosines. With other cosines the same λ, k
    and threshold are other methods.
    """
    entry = results.manifest.get("run")
    run = entry if isinstance(entry, Mapping) else {}
    found = []
    encoder, text = (str(run.get(part, "unknown")) for part in ("encoder", "embedded_text"))
    if not _PAPER_ENCODER.search(encoder):
        found.append(f"the encoder {encoder} instead of {paper.ENCODER}")
    if text != paper.EMBEDDED_TEXT:
        found.append(f"the embedded text {text} instead of {paper.EMBEDDED_TEXT}")
    return found


def judge_claim(difference: Interval, claim: Claim) -> Verdict:
    """Return whether a difference in points meets a claim, with all of its interval."""
    low, high, margin = difference.low, difference.high, claim.margin
    holds, fails = {
        Expectation.HIGHER: (low > 0, high < 0),
        Expectation.LOWER: (high < 0, low > 0),
        Expectation.ALIKE: (low > -margin and high < margin, low > margin or high < -margin),
        Expectation.NO_HIGHER: (high < margin, low > margin),
    }[claim.expectation]
    return Verdict.HOLDS if holds else Verdict.FAILS if fails else Verdict.OPEN


def claims_table(results: Results) -> Table | None:
    """Return the table of the paper's claims, our measurements and whether each holds; None without any."""
    checked = check_claims(results)
    if not checked:
        return None
    note = (
        "A claim holds, or does not, when all of the interval says so; else it is open. Intervals draw "
        "skills and are not corrected for the number of claims. “As often”, “nearly” and “adds little” mean "
        f"a difference of less than {MARGIN:.0f} points, unless the claim says how much. The fifth column is "
        "how much more the first method saves: sufficiency that is bought with tokens does not make a better "
        "method."
    )
    if parts := differing_parts(results):
        note += (
            f" This run has {' and '.join(parts)}, so that it cannot tell whether a claim of the paper "
            "holds: the last column says how it came out here."
        )
    by_construction = " Under the evidence judge the full document is sufficient by construction."
    return Table(
        "claims",
        "The paper's claims on this run",
        [
            {
                "Claim of the paper": each.claim.text,
                "Difference of": f"{each.claim.first} − {each.claim.second}",
                "Paper (points)": each.claim.paper,
                "Here (points) [95 % CI]": each.difference,
                "Fragment red., here (points)": each.saved,
                "Verdict": str(each.verdict),
                "Here": OUTCOMES[each.outcome],
            }
            for each in checked
        ],
        note=note + by_construction * (results.judge == EVIDENCE),
    )


# ---- the claims


def _of(
    table: PaperTable, text: str, pair: tuple[str, str], expectation: Expectation, *, tokens: bool = False
) -> Claim:
    """Return a claim about the sufficiency, or the token reduction, of a pair in a table of the paper."""
    first, second = map(table.row, pair)
    if tokens:
        gap = (first.token_reduction or 0.0) - (second.token_reduction or 0.0)
        return Claim(text, *pair, gap, expectation, FRAGMENT_REDUCTION)
    scope = Scope.ABLATION if table.is_ablation else Scope.ALL
    return Claim(text, *pair, first.sufficiency - second.sufficiency, expectation, scope=scope)


_HIGHER, _LOWER, _ALIKE, _NO_HIGHER = Expectation
_SMALLER = "(difference of token reductions)"
_K20, _K60 = "mmr@k=20", "mmr@k=60"
_MAIN, _GRAPH, _CONCEPT, _LAMBDA, _K = paper.MAIN, paper.GRAPH, paper.CONCEPT, paper.LAMBDA, paper.NODE_BUDGET

CLAIMS = (
    _of(_MAIN, "MMR is nearly as often sufficient as the full document", ("mmr", "full"), _ALIKE),
    _of(_MAIN, "MMR beats greedy traversal of the graph", ("mmr", "greedy_graph"), _HIGHER),
    _of(_MAIN, "MMR beats top-k with dependency completion", ("mmr", "topk_dependency"), _HIGHER),
    _of(_MAIN, "Greedy traversal beats top-k with completion", ("greedy_graph", "topk_dependency"), _HIGHER),
    _of(_MAIN, "256-token chunks are as often sufficient as typed nodes", ("chunk_mmr", "mmr"), _ALIKE),
    _of(_MAIN, f"… but save fewer tokens {_SMALLER}", ("chunk_mmr", "mmr"), _LOWER, tokens=True),
    _of(_GRAPH, "Adding graph neighbours does not raise sufficiency", ("mmr_graph", "mmr"), _NO_HIGHER),
    _of(_GRAPH, f"… and saves fewer tokens {_SMALLER}", ("mmr_graph", "mmr"), _LOWER, tokens=True),
    _of(_CONCEPT, "Concept nodes in the pool help", ("mmr", "exec_only"), _HIGHER),
    _of(_CONCEPT, "Concept nodes alone do not suffice", ("concept_only", "mmr"), _LOWER),
    *(
        _of(
            _CONCEPT,
            f"Gating by density τ = {tau} is worse than no concepts",
            (f"density:{tau}", "exec_only"),
            _LOWER,
        )
        for tau in (0.3, 0.4, 0.5)
    ),
    _of(_LAMBDA, "λ = 0.7 beats λ = 0.5", ("mmr@lambda=0.7", "mmr@lambda=0.5"), _HIGHER),
    _of(_LAMBDA, "λ = 0.9 adds little to λ = 0.7", ("mmr@lambda=0.9", "mmr@lambda=0.7"), _NO_HIGHER),
    _of(_K, "k = 20 beats k = 5", (_K20, "mmr@k=5"), _HIGHER),
    _of(_K, "k = 30 adds little to k = 20", ("mmr@k=30", _K20), _NO_HIGHER),
    Claim(
        f"Up to {paper.SIZE_BOUNDARY} nodes, k = 60 adds little to k = 20",
        _K60,
        _K20,
        paper.SMALL_AT_60 - paper.SMALL_AT_20,
        _NO_HIGHER,
        scope=Scope.SMALL,
    ),
    Claim(
        f"Above {paper.SIZE_BOUNDARY} nodes, k = 60 beats k = 20",
        _K60,
        _K20,
        paper.LARGE_AT_60 - paper.LARGE_AT_20,
        _HIGHER,
        scope=Scope.LARGE,
    ),
    *(
        Claim(
            f"A boundary of {nodes} nodes changes sufficiency by less than {paper.BOUNDARY_CHANGE} points",
            f"mmr@boundary={nodes}",
            f"mmr@boundary={paper.SIZE_BOUNDARY}",
            None,
            _ALIKE,
            margin=paper.BOUNDARY_CHANGE,
        )
        for nodes in (80, 120)
    ),
)

"""The paper's claims about pairs of methods, and whether each holds on a run that can be compared with it.

`data/claims.csv` has the claims, with the fields of `Claim`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import FRAGMENT_REDUCTION, SUFFICIENCY, Interval, Measure, bootstrap
from skillpager.bench.report.tables import Table, frame

# differences of less than this, in percentage points, count as none: the paper calls 3.3 points of the full
# document's sufficiency “statistical non-inferiority” (§5.2.1) and 3 points of chunks “comparable”
MARGIN = 5.0


class Outcome(StrEnum):
    """How a claim came out here, which says nothing of the paper's own experiment."""

    SAME = "as in the paper"
    DIFFERENT = "not as in the paper"
    OPEN = "open"


# the paper's model by its own name, as the id of an encoder has it: on the hub, in a folder, of Ollama
_PAPER_ENCODER = re.compile(r"(^|[/:])bge-m3($|:)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper: how a first method does against a second one."""

    text: str
    first: str
    second: str
    # the paper's difference, first minus second, points; None where it gives a bound only
    paper: float | None
    expectation: str  # how the first should do: `higher`, `lower`, `alike` or `no higher`
    measure: Measure = SUFFICIENCY  # or token reduction
    margin: float = MARGIN  # differences of less count as none, points
    scope: str = "all"  # its queries: `all`, or those of `ablation`, `small skills` or `large skills`


_MEASURES = {measure.name: measure for measure in (SUFFICIENCY, FRAGMENT_REDUCTION)}
CLAIMS = tuple(
    Claim(
        *(row["text"], row["first"], row["second"]),
        float(row["paper"]) if row["paper"] else None,
        row["expectation"],
        _MEASURES[row["measure"]],
        float(row["margin"]),
        row["scope"],
    )
    for row in paper.read_data("claims.csv")
)


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim with our measurement."""

    claim: Claim
    difference: Interval  # first minus second, points; the interval draws skills
    saved: float  # by how many points the first reduces tokens more than the second
    outcome: Outcome  # of this run, whatever its encoder


def check_claims(results: Results) -> list[CheckedClaim]:
    """Return the claims whose two methods were run and judged, each checked."""
    ablation, counts = results.ablation_skills, results.node_counts
    small = ablation & set(counts.index[counts <= paper.SIZE_BOUNDARY])
    scopes = {"all": None, "ablation": ablation, "small skills": small, "large skills": ablation - small}
    checked = []
    for claim in CLAIMS:
        first, second = results.common(claim.first, claim.second, skills=scopes[claim.scope])
        if not len(first):
            continue
        # both methods have the same denominators: the queries, or the tokens of the skills
        (parts, wholes), (others, _) = map(claim.measure.sums, (first, second))
        difference = bootstrap(parts - others, wholes, clusters=list(first["skill"])).scaled(100)
        saved = FRAGMENT_REDUCTION.of(first) - FRAGMENT_REDUCTION.of(second)
        checked.append(CheckedClaim(claim, difference, saved, judge_claim(difference, claim)))
    return checked


def differing_parts(results: Results) -> list[str]:
    """Return in words how encoder and embedded text of a run differ from the paper's; empty if they do not.

    Every claim compares methods that rank nodes by the encoder's cosines. With other cosines the same λ, k
    and threshold are other methods.
    """
    run = results.folder.entry("run")
    found = []
    encoder, text = (str(run.get(part, "unknown")) for part in ("encoder", "embedded_text"))
    if not _PAPER_ENCODER.search(encoder):
        found.append(f"the encoder {encoder} instead of {paper.ENCODER}")
    if text != paper.EMBEDDED_TEXT:
        found.append(f"the embedded text {text} instead of {paper.EMBEDDED_TEXT}")
    return found


def judge_claim(difference: Interval, claim: Claim) -> Outcome:
    """Return whether a difference in points meets a claim, with all of its interval."""
    low, high, margin = difference.low, difference.high, claim.margin
    holds, fails = {
        "higher": (low > 0, high < 0),
        "lower": (high < 0, low > 0),
        "alike": (low > -margin and high < margin, low > margin or high < -margin),
        "no higher": (high < margin, low > margin),
    }[claim.expectation]
    return Outcome.SAME if holds else Outcome.DIFFERENT if fails else Outcome.OPEN


def claims_table(results: Results) -> Table | None:
    """Return the table of the paper's claims, our measurements and whether each holds; None without any."""
    checked = check_claims(results)
    if not checked:
        return None
    note = (
        "A claim came out as in the paper, or not, when all of the interval says so; else it is open. "
        "Intervals draw skills and are not corrected for the number of claims. “As often”, “nearly” and "
        f"“adds little” mean a difference of less than {MARGIN:.0f} points, unless the claim says how much. "
        "The fifth column is how much more the first method saves: sufficiency that is bought with tokens "
        "does not make a better method."
    )
    if parts := differing_parts(results):
        note += (
            f" This run has {' and '.join(parts)}, so that it cannot tell whether a claim of the paper holds."
        )
    if results.judge == EVIDENCE:
        note += " Under the evidence judge the full document is sufficient by construction."
    rows = frame(
        {
            "Claim of the paper": each.claim.text,
            "Difference of": f"{each.claim.first} − {each.claim.second}",
            "Paper (points)": each.claim.paper,
            "Here (points) [95 % CI]": each.difference,
            "Fragment red., here (points)": each.saved,
            "Here": str(each.outcome),
        }
        for each in checked
    )
    return Table("claims", "The paper's claims on this run", rows, note)

"""The paper's claims about pairs of methods, and whether each holds on a run that can be compared with it.

`data/claims.csv` has the claims.
"""

import re
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Any

import pandas as pd

from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.methods import Curve, filling_curve, read_curves
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import FRAGMENT_REDUCTION, SUFFICIENCY, Interval, bootstrap
from skillpager.bench.report.tables import MISSING, Table

# differences of less than this, in percentage points, count as none: the paper calls 3.3 points of the full
# document's sufficiency “statistical non-inferiority” (§5.2.1) and 3 points of chunks “comparable”
MARGIN = 5.0

# of the pages that differ, the share that decides for one side at most: that all do is implausible
DECIDING = 0.5

# §5.2.2: each skill of a gated run has the page of one of two pools, `exec_only` or adaptive
DENSITY_NOTE = (
    "The paper's rows on density gating (62.46 to 63.38 %) cannot follow from its definition: for each skill "
    "the gate takes one of two pools, with which 86.67 and 78.26 % of the pages suffice, so that at least "
    "64.93 % suffice with both, and 76.52 % if none suffices where the full document (88.41 %) does not. And "
    "τ = 0.3 gates more skills than τ = 0.5, but has more nodes."
)


class Outcome(StrEnum):
    """How a claim came out here, which says nothing of the paper's own experiment."""

    SAME = "as in the paper"
    DIFFERENT = "not as in the paper"
    OPEN = "open"
    NO_POWER = "no power"  # it could hardly have come out otherwise


# the paper's model by its own name, as the id of an encoder has it: on the hub, in a folder, of Ollama
_PAPER_ENCODER = re.compile(r"(^|[/:])bge-m3($|:)", re.IGNORECASE)


# `text`; the labels `first` and `second` of two methods; `paper`: their difference there, first minus second,
# points, NaN where it gives a bound only; `expectation`: how the first should do (`higher`, `lower`, `alike`,
# `no higher`); the name of a `measure`; `margin`: differences of less, in points, count as none; `scope`: its
# queries (`all`, those of `ablation`, `small skills` or `large skills`, or whose needed lines are in the
# `last third`)
CLAIMS = pd.read_csv(paper.DATA / "claims.csv")
_MEASURES = {measure.name: measure for measure in (SUFFICIENCY, FRAGMENT_REDUCTION)}


def check_claims(results: Results) -> pd.DataFrame:
    """Return the claims whose two methods were run and judged.

    The columns are those of `CLAIMS`, and `difference` (the `Interval` of first minus second, points, drawn
    over skills), `differing` (percent of the pages that differ, with its interval) and `outcome` (of this
    run, whatever its encoder); and at equal tokens, for claims on sufficiency whose methods have curves that
    fill their budgets: `equal_methods`, `equal` (the difference of areas) and `equal_outcome`.
    """
    curves = read_curves(results)
    asked, ablation = results.queries.set_index("query"), results.ablation_skills
    is_small = asked["skill"].map(results.node_counts) <= paper.SIZE_BOUNDARY
    is_curated = asked["skill"].isin(ablation)
    scopes = {
        "all": asked.index,
        "ablation": asked.index[is_curated],
        "small skills": asked.index[is_curated & is_small],
        "large skills": asked.index[is_curated & ~is_small],
        "last third": asked.index[asked["depth"] > 2 / 3],
    }
    checked: dict[object, tuple[object, ...]] = {}
    for number, claim in CLAIMS.iterrows():
        scope = scopes[claim["scope"]]
        pair = results.common(claim["first"], claim["second"])
        first, second = (rows[rows["query"].isin(scope)] for rows in pair)
        if len(first):
            # both methods have the same denominators: the queries, or the tokens of the skills
            (parts, wholes), (others, _) = map(_MEASURES[claim["measure"]].sums, (first, second))
            difference = bootstrap(parts - others, wholes, clusters=list(first["skill"])).scaled(100)
            rule = claim["expectation"], claim["margin"]
            differing = bootstrap(_differ(first, second), clusters=list(first["skill"])).scaled(100)
            is_powered = claim["measure"] != SUFFICIENCY.name or has_power(differing, *rule)
            outcome = judge_claim(difference, *rule) if is_powered else Outcome.NO_POWER
            equal = _at_equal_tokens(curves, claim, scope) if is_powered else None
            at_equal = (*equal, judge_claim(equal[1], *rule)) if equal else (None, None, None)
            checked[number] = difference, differing, outcome, *at_equal
    columns = ["difference", "differing", "outcome", "equal_methods", "equal", "equal_outcome"]
    return CLAIMS.join(pd.DataFrame.from_dict(checked, orient="index", columns=columns), how="inner")


def _differ(first: pd.DataFrame, second: pd.DataFrame) -> list[float]:
    """Return 1 for each query whose pages by two methods differ, else 0."""
    pairs = zip(first["picks"], second["picks"], first["tokens"], second["tokens"], strict=True)
    return [float(set(a.split()) != set(b.split()) or x != y) for a, b, x, y in pairs]


def has_power(differing: Interval, expectation: str, margin: float = MARGIN) -> bool:
    """Return whether a claim on sufficiency could have come out as in the paper, and not so.

    A page that is the same suffices for both methods or for none. So those verdicts are possible in which a
    share (`DECIDING`) of the differing pages counts for the first method, against it, or not at all.
    """
    most = differing.scaled(DECIDING)
    least = Interval(-most.value, -most.high, -most.low)
    possible = {judge_claim(each, expectation, margin) for each in (most, least, Interval(0.0, 0.0, 0.0))}
    return {Outcome.SAME, Outcome.DIFFERENT} <= possible


def _at_equal_tokens(
    curves: Sequence[Curve], claim: "pd.Series[Any]", queries: Collection[str]
) -> tuple[str, Interval] | None:
    """Return what is compared at equal tokens, and the difference of areas in points; None without curves."""
    # the paper's λ is the default
    labels = [claim[name].replace("mmr@lambda=0.7", "mmr") for name in ("first", "second")]
    first, second = (filling_curve(curves, label) for label in labels)
    if claim["measure"] != SUFFICIENCY.name or first is None or second is None or first is second:
        return None
    both = first.rows.assign(gap=first.rows["area"] - second.rows["area"]).dropna()
    both = both[both.index.isin(queries)]
    gap = bootstrap(both["gap"], clusters=list(both["skill"])).scaled(100)
    return f"{first.method} − {second.method}", gap


def differing_parts(results: Results) -> list[str]:
    """Return in words how encoder, embedded text and nodes of a run differ from the paper's; empty if not.

    Every claim compares methods that rank nodes by the encoder's cosines. With other cosines or nodes the
    same λ, k and threshold are other methods.
    """
    run = results.folder.entry("run")
    found = []
    encoder, text = (str(run.get(part, "unknown")) for part in ("encoder", "embedded_text"))
    if not _PAPER_ENCODER.search(encoder):
        found.append(f"the encoder {encoder} instead of {paper.ENCODER}")
    if text != paper.EMBEDDED_TEXT:
        found.append(f"the embedded text {text} instead of {paper.EMBEDDED_TEXT}")
    if not str(run.get("splitter")).endswith("-paper"):
        found.append("larger nodes")
    return found


def judge_claim(difference: Interval, expectation: str, margin: float = MARGIN) -> Outcome:
    """Return whether a difference in points is as a claim expects, with all of its interval."""
    low, high = difference.low, difference.high
    holds, fails = {
        "higher": (low > 0, high < 0),
        "lower": (high < 0, low > 0),
        "alike": (low > -margin and high < margin, low > margin or high < -margin),
        "no higher": (high < margin, low > margin),
    }[expectation]
    return Outcome.SAME if holds else Outcome.DIFFERENT if fails else Outcome.OPEN


def claims_table(results: Results) -> Table | None:
    """Return the table of the paper's claims, our measurements and whether each holds; None without any."""
    checked = check_claims(results)
    if not len(checked):
        return None
    note = (
        "A claim came out as in the paper, or not, when all of the interval says so; else it is open. "
        "Intervals draw skills and are not corrected for the number of claims. “As often”, “nearly” and "
        f"“adds little” mean a difference of less than {MARGIN:.0f} points, unless the claim says how much. "
        "Sufficiency that is bought with tokens does not make a better method: at equal tokens the areas "
        "under the curves over budgets are compared, where both methods fill their budgets. A claim has no "
        "power if so few pages differ that "
        f"{100 * DECIDING:.0f} % of them could not have turned it. " + DENSITY_NOTE
    )
    if parts := differing_parts(results):
        note += (
            f" This run has {' and '.join(parts)}, so that it cannot tell whether a claim of the paper holds."
        )
    if results.judge == EVIDENCE:
        note += " Under the evidence judge the full document is sufficient by construction."
    rows = pd.DataFrame(
        {
            "Claim of the paper": checked["text"],
            "Difference of": checked["first"] + " − " + checked["second"],
            "Paper (points)": checked["paper"],
            "Here (points) [95 % CI]": checked["difference"],
            "Pages that differ (%)": [each.value for each in checked["differing"]],
            "Here": checked["outcome"].map(str),
            "At equal tokens: Methods": checked["equal_methods"].fillna(MISSING),
            "At equal tokens: Points [95 % CI]": checked["equal"],
            "At equal tokens: Here": [
                str(one) if isinstance(one, str) else MISSING for one in checked["equal_outcome"]
            ],
        }
    )
    return Table("claims", "The paper's claims on this run", rows, note)

"""The paper's claims about pairs of methods, and whether each holds on a run that can be compared with it.

`data/claims.csv` has the claims.
"""

import re
from enum import StrEnum

import pandas as pd

from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.report import paper
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import FRAGMENT_REDUCTION, SUFFICIENCY, Interval, bootstrap
from skillpager.bench.report.tables import Table

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


# `text`; the labels `first` and `second` of two methods; `paper`: their difference there, first minus second,
# points, NaN where it gives a bound only; `expectation`: how the first should do (`higher`, `lower`, `alike`,
# `no higher`); the name of a `measure`; `margin`: differences of less, in points, count as none; `scope`: its
# queries (`all`, or those of `ablation`, `small skills` or `large skills`)
CLAIMS = pd.read_csv(paper.DATA / "claims.csv")
_MEASURES = {measure.name: measure for measure in (SUFFICIENCY, FRAGMENT_REDUCTION)}


def check_claims(results: Results) -> pd.DataFrame:
    """Return the claims whose two methods were run and judged.

    The columns are those of `CLAIMS`, and `difference` (the `Interval` of first minus second, points, drawn
    over skills), `saved` (by how many points the first reduces tokens more) and `outcome` (of this run,
    whatever its encoder).
    """
    ablation, counts = results.ablation_skills, results.node_counts
    small = ablation & set(counts.index[counts <= paper.SIZE_BOUNDARY])
    scopes = {"all": None, "ablation": ablation, "small skills": small, "large skills": ablation - small}
    checked: dict[object, tuple[Interval, float, Outcome]] = {}
    for number, claim in CLAIMS.iterrows():
        first, second = results.common(claim["first"], claim["second"], skills=scopes[claim["scope"]])
        if len(first):
            # both methods have the same denominators: the queries, or the tokens of the skills
            (parts, wholes), (others, _) = map(_MEASURES[claim["measure"]].sums, (first, second))
            difference = bootstrap(parts - others, wholes, clusters=list(first["skill"])).scaled(100)
            saved = FRAGMENT_REDUCTION.of(first) - FRAGMENT_REDUCTION.of(second)
            outcome = judge_claim(difference, claim["expectation"], claim["margin"])
            checked[number] = difference, saved, outcome
    columns = ["difference", "saved", "outcome"]
    return CLAIMS.join(pd.DataFrame.from_dict(checked, orient="index", columns=columns), how="inner")


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
        "The fifth column is how much more the first method saves: sufficiency that is bought with tokens "
        "does not make a better method."
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
            "Fragment red., here (points)": checked["saved"],
            "Here": checked["outcome"].map(str),
        }
    )
    return Table("claims", "The paper's claims on this run", rows, note)

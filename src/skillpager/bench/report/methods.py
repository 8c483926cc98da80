"""Tables of all methods: names, every measure, paired tests, and results on parts of the data."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

import pandas as pd

from skillpager.bench.report.measures import (
    AVERAGE_NODES,
    COVERAGE,
    FRAGMENT_REDUCTION,
    LATENCY_95,
    LATENCY_MEDIAN,
    MACRO_REDUCTION,
    MEASURES,
    MICRO_REDUCTION,
    STRONG_VOTES,
    SUFFICIENCY,
    Measure,
)
from skillpager.bench.report.paper import read_data
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import LEVEL, Comparison, Interval, compare, holm
from skillpager.bench.report.table import HIGH, LOW, Cell, Table, frame, with_ends
from skillpager.bench.run.methods import is_ours, parse_method
from skillpager.json_types import JsonObject

# the method that the others are compared with: the paper's
BASELINE = "mmr"
ALPHA = 1 - LEVEL
CI = "[95 % CI]"
OVER_SKILLS = "… over skills"


def default_methods(results: Results) -> tuple[str, ...]:
    """Return the methods to compare at their default budgets, in the order of the suites.

    They are those of the suites `offline` and `main`, and strategies of others; without these suites all
    methods that were run without options.
    """
    suites = dict.fromkeys(label for name in ("offline", "main") for label in results.suite(name))
    plain = [label for label in results.labels if parse_method(label).strategy == label]
    if suites:
        suites |= dict.fromkeys(label for label in plain if not is_ours(label))
    return tuple(label for label in suites or plain if results.has(label))


def measured(
    rows_of: Mapping[str, pd.DataFrame], measures: Iterable[Measure], *, with_skills: bool = False
) -> pd.DataFrame:
    """Return a row for each method: its sufficiency, and those of the measures that the judge has.

    `with_skills` adds the number of queries, and the interval over skills.
    """
    known = [measure for measure in measures if any(map(measure.known, rows_of.values()))]
    lines: list[dict[str, Cell]] = []
    for label, rows in rows_of.items():
        line: dict[str, Cell] = {"Method": label}
        if with_skills:
            line["Queries"] = len(rows)
        line |= with_ends(f"Suff. (%) {CI}", SUFFICIENCY.interval(rows))
        if with_skills:
            over_skills = SUFFICIENCY.interval(rows, by_skill=True)
            line |= {OVER_SKILLS + LOW: over_skills.low, OVER_SKILLS + HIGH: over_skills.high}
        lines.append(line | {measure.heading: measure.of(rows) for measure in known})
    return frame(lines)


DIGITS = {measure.heading: measure.digits for measure in MEASURES}


def all_methods(results: Results) -> Table | None:
    """Return every method at its default budget with every measure; None if there is none."""
    rows_of = {label: results.rows(label) for label in default_methods(results)}
    if not rows_of:
        return None
    measures = (COVERAGE, STRONG_VOTES, AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION, MACRO_REDUCTION)
    return Table(
        "all-methods",
        "All methods at their default budgets",
        measured(rows_of, (*measures, LATENCY_MEDIAN, LATENCY_95), with_skills=True),
        note="Methods spend different amounts: read sufficiency and token reduction together, or see the "
        "matched budgets. The first interval draws queries, as the paper does; the second draws skills. "
        "Queries about one skill are not independent, so that the second is the one to trust.",
        digits=DIGITS,
        strong={BASELINE},
    )


# ---- the summary that `bench run` prints

SUMMARY_COLUMNS = (
    "method",
    "queries",
    "suff. %",
    "95 % CI over queries",
    "coverage %",
    "nodes",
    "token red. %",
    "macro %",
    "ms",
)
_OTHERS = {
    "coverage": COVERAGE,
    "nodes": AVERAGE_NODES,
    "token_reduction": MICRO_REDUCTION,
    "token_reduction_macro": MACRO_REDUCTION,
    "milliseconds": LATENCY_MEDIAN,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The main measures of one method, percentages as such."""

    method: str
    queries: int  # that were judged
    sufficiency: Interval  # over queries
    others: Mapping[str, float | None]  # None where the judge does not measure it

    @property
    def cells(self) -> list[str]:
        """The cells of a row below `SUMMARY_COLUMNS`."""
        found = self.sufficiency
        cells = [self.method, str(self.queries), f"{found.value:.1f}", f"{found.low:.1f}–{found.high:.1f}"]
        return [*cells, *("–" if value is None else f"{value:.1f}" for value in self.others.values())]

    def to_json(self) -> JsonObject:
        """Return the summary as one flat object."""
        value, low, high = (round(number, 2) for number in astuple(self.sufficiency))
        known = {"method": self.method, "queries": self.queries, "sufficiency": value}
        return {**known, "interval": [low, high], **self.others}


def summarise(results: Results, labels: Iterable[str]) -> list[Summary]:
    """Return the summary of each method that was run and judged."""
    summaries = []
    for label in filter(results.has, labels):
        rows = results.rows(label)
        values = {name: measure.of(rows) for name, measure in _OTHERS.items()}
        others = {name: None if math.isnan(value) else round(value, 2) for name, value in values.items()}
        summaries.append(Summary(label, len(rows), SUFFICIENCY.interval(rows), others))
    return summaries


# ---- tests


@dataclass(frozen=True, slots=True)
class Compared:
    """A method against the baseline."""

    method: str
    comparison: Comparison
    p_holm: float  # corrected for the number of methods

    @property
    def significant(self) -> bool:
        """Whether the two differ significantly, by the corrected p."""
        return self.p_holm < ALPHA


def compare_methods(results: Results, labels: Iterable[str], *, baseline: str = BASELINE) -> list[Compared]:
    """Return each method against the baseline on the queries that both have.

    The p values are those of the bootstrap over skills, corrected together by Holm's method.
    """
    found: dict[str, Comparison] = {}
    for label in labels:
        rows, base = results.common(label, baseline)
        if label != baseline and len(rows):
            found[label] = compare(rows["sufficient"], base["sufficient"], clusters=list(rows["skill"]))
    corrected = holm([comparison.p for comparison in found.values()])
    return [Compared(label, found[label], p) for label, p in zip(found, corrected, strict=True)]


def pairwise(results: Results) -> Table | None:
    """Return paired tests of all methods at their default budgets against the paper's; None without both."""
    compared = compare_methods(results, default_methods(results))
    if not compared:
        return None
    lines: list[dict[str, Cell]] = []
    for each in compared:
        found = each.comparison
        over_skills = found.clustered.scaled(100)
        own, base = (MICRO_REDUCTION.of(rows) for rows in results.common(each.method, BASELINE))
        lines.append(
            {
                "Method": each.method,
                **with_ends(f"Difference (points) {CI}", found.difference.scaled(100)),
                OVER_SKILLS + LOW: over_skills.low,
                OVER_SKILLS + HIGH: over_skills.high,
                "Token red. (points)": own - base,
                "Only it": found.first_only,
                f"Only {BASELINE}": found.second_only,
                "p, bootstrap": found.p,
                "p, Holm": each.p_holm,
                "p, McNemar": found.p_mcnemar,
                "Differs": "yes" if each.significant else "no",
            }
        )
    return Table(
        "pairwise",
        f"Every method against {BASELINE}: sufficiency on the same queries",
        frame(lines),
        note="Paired bootstrap of the difference; its p resamples skills, and is corrected for "
        f"{len(compared)} tests by Holm's method. McNemar's exact test takes queries for independent, so "
        "that its p is rather too small; it is uncorrected. “Only it” counts the queries that the method "
        f"answers and {BASELINE} does not. Methods spend different amounts: see the column of token "
        "reduction.",
        digits=dict.fromkeys(("p, bootstrap", "p, Holm", "p, McNemar"), 4),
    )


# ---- names

# in the order of the paper, then beyond it; options of a label last
MEANINGS = {row["name"]: row["meaning"] for row in read_data("methods.csv")}


def glossary(results: Results) -> Table:
    """Return the table that explains the names of the methods that were run."""
    strategies = dict.fromkeys(parse_method(label).strategy for label in results.labels)
    families = {name.partition(":")[0] for name in strategies}
    ours = {name: MEANINGS[name] for name in MEANINGS if name in families}
    others = {name: results.own_meaning(name) for name in strategies if not is_ours(name)}
    options = {name: MEANINGS[name] for name in MEANINGS if name.startswith("@")}
    known = {**ours, **others, **options}
    lines = [{"Name": name, "Meaning": meaning} for name, meaning in known.items()]
    return Table("methods", "Names of methods", frame(lines))


def measures_table(_: Results) -> Table:
    """Return the table of all measures with unit, definition and source."""
    lines = [
        {"Measure": each.name, "Unit": each.unit, "Definition": each.definition, "Source": each.reference}
        for each in MEASURES
    ]
    return Table("measures", "Measures", frame(lines))

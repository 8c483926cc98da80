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
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import LEVEL, Comparison, Interval, compare, holm
from skillpager.bench.report.tables.table import Bounds, Cell, PValue, Table
from skillpager.bench.run.methods import is_ours, parse_method
from skillpager.json_types import JsonObject

# the method that the others are compared with: the paper's
BASELINE = "mmr"
ALPHA = 1 - LEVEL
CI = "[95 % CI]"
OVER_SKILLS = "… over skills"
# upper ends of the sizes of a skill, in nodes; 100 is the paper's boundary for the larger budget
SIZES = (20, 50, 100)
DIFFICULTIES = ("easy", "medium", "hard")


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


def all_methods(results: Results) -> Table | None:
    """Return every method at its default budget with every measure; None if there is none."""
    measured = {label: results.rows(label) for label in default_methods(results)}
    if not measured:
        return None
    note = (
        "Methods spend different amounts: read sufficiency and token reduction together, or see the "
        "matched budgets. The first interval draws queries, as the paper does; the second draws skills. "
        "Queries about one skill are not independent, so that the second is the one to trust."
    )
    title = "All methods at their default budgets"
    costs = (AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION, MACRO_REDUCTION, LATENCY_MEDIAN, LATENCY_95)
    measures = (COVERAGE, STRONG_VOTES, *costs)
    return measured_table("all-methods", title, measured, measures, note, with_skills=True)


def measured_table(
    name: str,
    title: str,
    measured: Mapping[str, pd.DataFrame],
    measures: Iterable[Measure],
    note: str = "",
    *,
    with_skills: bool = False,
) -> Table:
    """Return methods with sufficiency and those of `measures` that the judge has.

    `with_skills` adds the number of queries, and the interval over skills.
    """
    known = [measure for measure in measures if any(map(measure.known, measured.values()))]
    rows: list[dict[str, Cell]] = []
    for label, found in measured.items():
        over_queries: dict[str, Cell] = {f"Suff. (%) {CI}": SUFFICIENCY.interval(found)}
        cells: dict[str, Cell] = {"Method": label, **over_queries}
        if with_skills:
            by_skill = SUFFICIENCY.interval(found, by_skill=True)
            bounds = Bounds(by_skill.low, by_skill.high)
            cells = {"Method": label, "Queries": len(found), **over_queries, OVER_SKILLS: bounds}
        rows.append({**cells, **{measure.heading: measure.of(found) for measure in known}})
    digits = {measure.heading: measure.digits for measure in known}
    return Table(name, title, rows, note, digits=digits, strong={BASELINE})


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
    rows: list[dict[str, Cell]] = []
    for each in compared:
        found = each.comparison
        clustered = found.clustered.scaled(100)
        own, base = (MICRO_REDUCTION.of(rows) for rows in results.common(each.method, BASELINE))
        rows.append(
            {
                "Method": each.method,
                f"Difference (points) {CI}": found.difference.scaled(100),
                OVER_SKILLS: Bounds(clustered.low, clustered.high),
                "Token red. (points)": own - base,
                "Only it": found.first_only,
                f"Only {BASELINE}": found.second_only,
                "p, bootstrap": PValue(found.p),
                "p, Holm": PValue(each.p_holm),
                "p, McNemar": PValue(found.p_mcnemar),
                "Differs": "yes" if each.significant else "no",
            }
        )
    return Table(
        "pairwise",
        f"Every method against {BASELINE}: sufficiency on the same queries",
        rows,
        note="Paired bootstrap of the difference; its p resamples skills, and is corrected for "
        f"{len(compared)} tests by Holm's method. McNemar's exact test takes queries for independent, so "
        "that its p is rather too small; it is uncorrected. “Only it” counts the queries that the method "
        f"answers and {BASELINE} does not. Methods spend different amounts: see the column of token "
        "reduction.",
        digits={"p, bootstrap": 4, "p, Holm": 4, "p, McNemar": 4},
    )


# ---- parts of the data


def by_difficulty(results: Results) -> Table | None:
    """Return the sufficiency of all methods by the difficulty of the query; None if it is not known."""
    parts: dict[str, set[str]] = {name: set() for name in DIFFICULTIES}
    for query in sorted(results.queries, key=lambda query: query.difficulty):
        parts.setdefault(query.difficulty, set()).add(query.id)
    return _by_part(results, parts, name="by-difficulty", title="Sufficiency by difficulty of the query")


def by_size(results: Results) -> Table | None:
    """Return the sufficiency of all methods by the size of the skill; None if stage 1 was not run."""
    lows = (1, *(size + 1 for size in SIZES))
    names = [*(f"{low}–{high} nodes" for low, high in zip(lows, SIZES, strict=False)), f"> {SIZES[-1]} nodes"]
    parts: dict[str, set[str]] = {name: set() for name in names}
    for query in results.queries:
        if nodes := results.node_counts.get(query.skill, 0):  # a skill that was not parsed has no size
            parts[names[sum(nodes > size for size in SIZES)]].add(query.id)
    return _by_part(results, parts, name="by-size", title="Sufficiency by size of the skill")


def _by_part(results: Results, parts: Mapping[str, set[str]], *, name: str, title: str) -> Table | None:
    """Return the sufficiency of all methods on named parts of the queries; empty parts are left out."""
    labels = default_methods(results)
    columns = {
        f"{part}, {len(queries):,} queries": queries for part, queries in parts.items() if part and queries
    }
    if not columns or not labels:
        return None
    rows: list[dict[str, Cell]] = []
    for label in labels:
        found = results.rows(label)
        intervals = {
            heading: SUFFICIENCY.interval(found[found["query"].isin(queries)])
            for heading, queries in columns.items()
        }
        rows.append({"Method": label, **intervals})
    digits = dict.fromkeys(columns, 1)
    return Table(name, f"{title} (%, with 95 % CI)", rows, digits=digits, strong={BASELINE})


# ---- names

# in the order of the paper, then beyond it
MEANINGS = {
    "full": "All nodes, whatever the query: the paper's full-document prompting.",
    "topk_dependency": "The k nodes nearest to the query, then what precedes them in the graph.",
    "greedy_graph": "From the entry node along edges, until the gain falls below a threshold.",
    "chunk_mmr": "MMR over chunks of fixed length, 256 tokens unless it says otherwise.",
    "mmr": "Maximal marginal relevance over typed nodes: the paper's method.",
    "mmr_graph": "mmr, then the one-hop dependency predecessors of what was selected.",
    "exec_only": "mmr without concept nodes.",
    "concept_only": "mmr over concept nodes alone.",
    "density": "exec_only for skills whose share of concept nodes exceeds τ, else mmr.",
    "navigator": "Nodes by trained need per token, until none is worth its tokens: the default of page.",
    "head": "The first 5,000 tokens unless it says otherwise: what hosts keep after compaction.",
    "sections": "Whole heading sections by dense score.",
    "bm25": "Nodes by BM25, words alone.",
    "topk": "Nodes by cosine with the query.",
    "hybrid": "Reciprocal rank fusion of topk and bm25.",
    "dpp": "Determinantal point process: relevance and diversity together.",
    "msd": "Max-sum diversification: relevance and the sum of distances.",
    "cover": "Facility location: relevance and how well the selection covers the rest.",
    "reranker": "Nodes by a cross-encoder.",
    "llmlingua2": "LLMLingua-2: tokens are dropped, not nodes chosen.",
    "openprovence": "OpenProvence: sentences pruned by a trained model.",
    "llm_outline": "A language model picks nodes from the outline.",
}
_OPTIONS = {
    "@lambda=0.9": "λ, the weight of relevance against redundancy; 0.7 unless it says otherwise.",
    "@k=20": "At most so many nodes; without it 20 up to 100 nodes, else 60; none for navigator.",
    "@tokens=40%": "A ceiling on the context, as a share of the skill's tokens; k does not apply.",
    "@sufficiency=0.9": "Ends at this estimated chance of holding all that is needed; navigator alone.",
}


def glossary(results: Results) -> Table:
    """Return the table that explains the names of the methods that were run."""
    strategies = dict.fromkeys(parse_method(label).strategy for label in results.labels)
    families = {name.partition(":")[0] for name in strategies}
    known = {name: meaning for name, meaning in MEANINGS.items() if name in families}
    known |= {name: results.own_meaning(name) for name in strategies if not is_ours(name)} | _OPTIONS
    rows = [{"Name": name, "Meaning": meaning} for name, meaning in known.items()]
    return Table("methods", "Names of methods", rows)


def measures_table(_: Results) -> Table:
    """Return the table of all measures with unit, definition and source."""
    rows = [
        {"Measure": each.name, "Unit": each.unit, "Definition": each.definition, "Source": each.reference}
        for each in MEASURES
    ]
    return Table("measures", "Measures", rows)

"""Tables of all methods: every measure, paired tests, and where they fail."""

from collections.abc import Mapping

from skillpager.bench.report.comparisons import BASELINE, Compared, compare_methods, default_methods
from skillpager.bench.report.measures import (
    AVERAGE_NODES,
    COVERAGE,
    FRAGMENT_REDUCTION,
    LATENCY_95,
    LATENCY_MEDIAN,
    MACRO_REDUCTION,
    MICRO_REDUCTION,
    NODES,
    STRONG_VOTES,
    SUFFICIENCY,
    Measure,
)
from skillpager.bench.report.results import Results
from skillpager.bench.report.statistics import Interval
from skillpager.bench.report.tables.table import Bounds, Cell, Column, PValue, Row, Table
from skillpager.bench.run.fitted import trained_note

CI = "[95 % CI]"
OVER_SKILLS = "… over skills"
# upper ends of the sizes of a skill, in nodes; 100 is the paper's boundary for the larger budget
SIZES = (20, 50, 100)
DIFFICULTIES = ("easy", "medium", "hard")

# shown where the judge has them
_OPTIONAL = (COVERAGE, STRONG_VOTES)
_ALWAYS = (AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION, MACRO_REDUCTION, LATENCY_MEDIAN, LATENCY_95)


def all_methods(results: Results) -> Table | None:
    """Return every method at its default budget with every measure; None if there is none."""
    labels = default_methods(results)
    if not labels:
        return None
    known = [measure for measure in _OPTIONAL if any(measure.known(results.rows(label)) for label in labels)]
    measures = (*known, *_ALWAYS)
    rows = []
    for label in labels:
        found = results.rows(label)
        by_skill = SUFFICIENCY.interval(found, by_skill=True)
        numbers = [measure.of(found) for measure in measures]
        cells: tuple[Cell, ...] = (
            label,
            len(found),
            SUFFICIENCY.interval(found),
            _bounds(by_skill),
            *numbers,
        )
        rows.append(Row(cells, strong=label == BASELINE))
    columns = (Column("Method"), Column("Queries"), Column(f"Suff. (%) {CI}"), Column(OVER_SKILLS))
    return Table(
        "all-methods",
        "All methods at their default budgets",
        (*columns, *map(measure_column, measures)),
        tuple(rows),
        note="Methods spend different amounts: read sufficiency and token reduction together, or see the "
        "matched budgets. The first interval draws queries, as the paper does; the second draws skills. "
        "Queries about one skill are not independent, so that the second is the one to trust. "
        f"{trained_note(results)}".rstrip(),
    )


def measure_column(measure: Measure) -> Column:
    """Return the column of a measure."""
    unit = "" if measure.unit == NODES else f" ({measure.unit})"
    return Column(f"{measure.name}{unit}", digits=measure.digits)


def _bounds(interval: Interval) -> Bounds:
    return Bounds(interval.low, interval.high)


# ---- tests


def pairwise(results: Results) -> Table | None:
    """Return paired tests of all methods at their default budgets against the paper's; None without both."""
    compared = compare_methods(results, default_methods(results))
    if not compared:
        return None
    columns = (
        Column("Method"),
        Column(f"Difference (points) {CI}"),
        Column(OVER_SKILLS),
        Column("Token red. (points)"),
        Column("Only it"),
        Column(f"Only {BASELINE}"),
        Column("p, bootstrap", digits=4),
        Column("p, Holm", digits=4),
        Column("p, McNemar", digits=4),
        Column("Differs"),
    )
    return Table(
        "pairwise",
        f"Every method against {BASELINE}: sufficiency on the same queries",
        columns,
        tuple(_compared_row(results, each) for each in compared),
        note="Paired bootstrap of the difference; its p resamples skills, and is corrected for "
        f"{len(compared)} tests by Holm's method. McNemar's exact test takes queries for independent, so "
        "that its p is rather too small; it is uncorrected. “Only it” counts the queries that the method "
        f"answers and {BASELINE} does not. Methods spend different amounts: see the column of token "
        "reduction.",
    )


def _compared_row(results: Results, compared: Compared) -> Row:
    found = compared.comparison
    own, base = (MICRO_REDUCTION.of(rows) for rows in results.common(compared.method, BASELINE))
    return Row(
        (
            compared.method,
            found.difference.scaled(100),
            _bounds(found.clustered.scaled(100)),
            own - base,
            found.first_only,
            found.second_only,
            PValue(found.p),
            PValue(compared.p_holm),
            PValue(found.p_mcnemar),
            "yes" if compared.significant else "no",
        )
    )


# ---- parts of the data


def by_difficulty(results: Results) -> Table | None:
    """Return the sufficiency of all methods by the difficulty of the query; None if it is not known."""
    found = set(results.difficulties.values())
    names = [name for name in DIFFICULTIES if name in found] + sorted(found - set(DIFFICULTIES))
    parts = {
        name: {query for query, difficulty in results.difficulties.items() if difficulty == name}
        for name in names
    }
    return _by_part(results, parts, name="by-difficulty", title="Sufficiency by difficulty of the query")


def by_size(results: Results) -> Table | None:
    """Return the sufficiency of all methods by the size of the skill; None if stage 1 was not run."""
    parts: dict[str, set[str]] = {}
    for query in results.queries:
        parts.setdefault(_size(results.node_counts.get(query.skill, 0)), set()).add(query.id)
    sizes = {size: parts[size] for size in map(_size, (*SIZES, SIZES[-1] + 1)) if size in parts}
    return _by_part(results, sizes, name="by-size", title="Sufficiency by size of the skill")


def _size(nodes: int) -> str:
    """Return the size class of a skill; a skill that was not parsed has none."""
    for least, most in zip((1, *(size + 1 for size in SIZES)), SIZES, strict=False):
        if least <= nodes <= most:
            return f"{least}–{most} nodes"
    return f"> {SIZES[-1]} nodes" if nodes else ""


def _by_part(results: Results, parts: Mapping[str, set[str]], *, name: str, title: str) -> Table | None:
    labels = default_methods(results)
    if not parts or not labels:
        return None
    rows = []
    for label in labels:
        found = results.rows(label)
        cells = (SUFFICIENCY.interval(found.of_queries(queries)) for queries in parts.values())
        rows.append(Row((label, *cells), strong=label == BASELINE))
    columns = [Column(f"{part}, {len(queries):,} queries", digits=1) for part, queries in parts.items()]
    return Table(name, f"{title} (%, with 95 % CI)", (Column("Method"), *columns), tuple(rows))

"""Tables of ablations beyond the paper's: granularity, encoder, classifier."""

from collections.abc import Sequence

from skillpager.bench.report.comparisons import BASELINE
from skillpager.bench.report.measures import (
    AVERAGE_NODES,
    COVERAGE,
    FRAGMENT_REDUCTION,
    MICRO_REDUCTION,
    SUFFICIENCY,
)
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables.methods import CI, measure_column
from skillpager.bench.report.tables.table import Column, Row, Table
from skillpager.bench.run.methods import parse_method

CHUNKS = "chunk_mmr:"


def granularity(results: Results) -> Table | None:
    """Return typed nodes against chunks of several sizes; None if no sizes were run.

    Reference: paper §5.2.1, “Naive chunk + MMR”.
    """
    sizes = [label for label in results.labels if label.startswith(CHUNKS) and "@" not in label]
    return _ablation(
        results,
        [BASELINE, *sizes],
        name="granularity",
        title="Granularity: typed nodes against chunks of fixed length, MMR on both",
        note="Chunks and nodes have the same k, so that larger chunks spend more: see the matched budgets "
        "for equal cost. “Nodes” of a chunk method are chunks.",
    )


def encoders(results: Results) -> Table | None:
    """Return the effect of the encoder; None if no other than the run's own was tried."""
    variants = [label for label in results.labels if _is_variant(label, "encoder")]
    return _ablation(results, [BASELINE, *variants], name="encoder", title="The encoder of nodes and queries")


def classifiers(results: Results) -> Table | None:
    """Return the effect of the classifier; None if no other than the run's own was tried."""
    variants = [label for label in results.labels if _is_variant(label, "classifier")]
    pairs = [(parse_method(label).strategy, label) for label in variants]
    return _ablation(
        results,
        list(dict.fromkeys(label for pair in sorted(pairs) for label in pair)),
        name="classifier",
        title="The classifier of nodes, where node types decide what is shown",
        note="“labels” are the annotators' own types: what a perfect parser would do.",
    )


def _is_variant(label: str, part: str) -> bool:
    """Tell whether a method differs from its strategy's default by this part alone, whatever its λ and k."""
    method = parse_method(label)
    return getattr(method, part) is not None and method.share is None and method.max_tokens is None


def _ablation(
    results: Results, labels: Sequence[str], *, name: str, title: str, note: str = ""
) -> Table | None:
    """Return methods with the main measures; None if fewer than two were run."""
    measured = {label: results.rows(label) for label in labels if results.has(label)}
    if len(measured) < 2:
        return None
    known = [COVERAGE] if any(map(COVERAGE.known, measured.values())) else []
    measures = (*known, AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION)
    rows = tuple(
        Row(
            (label, SUFFICIENCY.interval(found), *(measure.of(found) for measure in measures)),
            strong=label == BASELINE,
        )
        for label, found in measured.items()
    )
    return Table(
        name, title, (Column("Method"), Column(f"Suff. (%) {CI}"), *map(measure_column, measures)), rows, note
    )

"""Time of each stage of a `navigator` page in a warm process, by size of the skill.

    python benchmarks/stages.py [--skill PATH…]

Every query is new. Medians in milliseconds. Without a path: sample skills, and several copies joined.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from skillpager import SkillPager
from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.strategies.navigator.features import IndexFeatures, features_of
from skillpager.strategies.navigator.lexical import clauses_of
from skillpager.strategies.navigator.model import shipped_model
from skillpager.types import Query

ENCODER = BuiltinEncoder()
SAMPLES = Path(__file__).parents[1] / "examples" / "skills"
QUERIES = [
    f"Step {number} of the release failed overnight. How do I undo only number {number}, which of the "
    f"{number + 2} settings caused it, and what must be checked before run {number + 1} is started again?"
    for number in range(60)
]


def median(work: Callable[[str], object]) -> float:
    """Return the median milliseconds of some work over the queries."""
    times = []
    for query in QUERIES:
        start = time.perf_counter()
        work(query)
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def asked(query: str) -> Query:
    """Return a query as the pager embeds it."""
    clauses = clauses_of(query)
    row, *rows = ENCODER.encode_query_parts(query, clauses)
    return Query(query, row, tuple(map(Query, clauses, rows)))


def stages(pager: SkillPager, skill: str) -> dict[str, float]:
    """Return the milliseconds of every stage."""
    index = pager.index(skill)
    start = time.perf_counter()
    known = IndexFeatures(index)
    first = 1000 * (time.perf_counter() - start)
    model = shipped_model()
    for query in QUERIES:
        pager.page(index, f"{query} Warm up.")
    embed = median(lambda query: ENCODER.encode_query_parts(query, clauses_of(query)))
    questions = [asked(query) for query in QUERIES]
    rows = iter(questions)
    features = median(lambda _: features_of(known, next(rows)))
    rows = iter(questions)
    needs = median(lambda _: model.needs(known, next(rows)))
    again = median(lambda query: pager.page(index, query))
    # what a pager that was never asked them does
    with tempfile.TemporaryDirectory() as cache:
        other = SkillPager(encoder=pager.encoder, store=Path(cache))
        other.page(index, "Warm up.")
        fresh = median(lambda query: other.page(index, query))
        other.close()
    return {
        "nodes": len(index.nodes),
        "once": first,
        "embed": embed,
        "features": features,
        "network": needs - features,
        "pick and render": again - needs,
        "page, new query": fresh,
    }


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--skill", nargs="*", type=Path)
    skills = parser.parse_args().skill
    texts = [path.read_text(encoding="utf-8") for path in skills or []]
    if not texts:
        parts = [(folder / "SKILL.md").read_text(encoding="utf-8") for folder in sorted(SAMPLES.iterdir())]
        texts = [parts[0], "\n\n".join(parts[:3]), "\n\n".join(parts[:10]), "\n\n".join(parts * 2)]
    with tempfile.TemporaryDirectory() as cache:
        pager = SkillPager(store=Path(cache))
        rows = [stages(pager, text) for text in texts]
        pager.close()
    print("| " + " | ".join(rows[0]) + " |")
    print("|---" * len(rows[0]) + "|")
    for row in rows:
        print(
            "| "
            + " | ".join(f"{value:.1f}" if name != "nodes" else f"{value}" for name, value in row.items())
            + " |"
        )


if __name__ == "__main__":
    main()

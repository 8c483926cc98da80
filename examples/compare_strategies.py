"""The benchmark from Python: load data, run methods on it, and compare them.

    python examples/compare_strategies.py RUN

It runs the strategy of `own_strategy.py` beside two of SkillPager's on the sample skills, and writes data and
results to the folder RUN. Needs the extra: pip install ".[bench]".
"""

import sys
from pathlib import Path

from skillpager.bench import (
    BenchFolder,
    Plan,
    Results,
    compare_methods,
    open_run,
    run_methods,
    run_settings,
    summarise,
)
from skillpager.bench.data import read_queries, read_skills, write_data
from skillpager.settings import load_settings

EXAMPLES = Path(__file__).parent
METHODS = ("mmr", "bm25", "own_strategy:SharedWords")


def main(run: Path) -> None:
    """Load the sample skills, run the methods on every query, and print what each achieves."""
    skills = read_skills([EXAMPLES / "skills"])
    queries = read_queries(EXAMPLES / "queries.jsonl", skills)
    write_data(BenchFolder(run), skills, queries, source="skills", details={})

    plan = Plan(run_settings(load_settings(), style="plain"))
    folder = open_run(run, None, plan)
    run_methods(folder, METHODS, plan)

    results = Results(folder, "evidence")
    for each in summarise(results, METHODS):
        print(f"{each['method']}: {each['sufficiency']:.1f} % of {each['queries']} pages suffice")
    for each in compare_methods(results, METHODS, baseline="mmr"):
        points = each.clustered
        print(f"{each.method} - mmr: {points.value:+.1f} [{points.low:.1f}, {points.high:.1f}] points")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Mutated skills, compositions of CommonMark, pages and queries: no exception but ours, no wrong tile."""

from pathlib import Path

import pytest

from fuzz_runs import SEED, WORKERS, Figures, Run, run_all
from torture_scale import Torture

# inputs of each kind in `make test`, and in full
AMOUNTS = {"texts": (1_000, 240_000), "pages": (80, 4_500), "queries": (25, 1_000)}


@pytest.mark.parametrize("kind", AMOUNTS)
def test_no_input_breaks_an_invariant(kind: str, torture: Torture, tmp_path: Path) -> None:
    run = Run(kind, torture.amount(*AMOUNTS[kind]), tmp_path, torture.pool)
    figures = run_all(run, workers=WORKERS if torture.scale else 1)
    _record(torture, kind, figures)
    problems = [
        f"{kind} {number} of seed {SEED}: {problem} ({torture.keep(f'{kind}-{number}', text)})"
        for number, problem, text in figures.failures
    ]
    assert problems == []
    assert figures.count == run.count


def _record(torture: Torture, kind: str, figures: Figures) -> None:
    torture.record(f"{kind}: inputs", figures.count)
    if figures.slowest[0]:
        of = f"{kind}: CPU time of reading and splitting"
        torture.record(f"{of}, most", figures.slowest[0], "µs a character")
    if kind == "texts":
        torture.record(
            "real skills that were mutated", "yes" if torture.pool else "no (TORTURE_POOL was not given)"
        )

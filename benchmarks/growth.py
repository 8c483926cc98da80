"""Cost of the offline stage by the size of a skill. Imports nothing heavy, like `offline`."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import synthetic
from offline import Indexed, index_alone
from options import Options
from results import Cell, Report, Table

SIZES = (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000, 8_000_000)
QUICK_SIZES = (1_000,)
# the median of a few runs, while they are short
REPEATED_SIZES = range(4_000, 64_001)
REPETITIONS = 3
SHARES = ("split", "embed", "classify", "edges", "tokens", "store")


def measure(options: Options) -> Report:
    """Return the report on growth."""
    with TemporaryDirectory() as name:
        runs = [_index(size, Path(name)) for size in (QUICK_SIZES if options.quick else SIZES)]
    note = "Permuted sections of the sample skills, every fourth longer word unique; a fresh process each."
    return Report("Growth over the size of a skill", [_costs(runs), _shares(runs)], note=note)


def _index(size: int, folder: Path) -> Indexed:
    path = folder / f"synthetic-{size}.md"
    path.write_text(synthetic.document(size), encoding="utf-8")
    repetitions = REPETITIONS if size in REPEATED_SIZES else 1
    runs = [index_alone(path, folder / f"store-{size}-{n}") for n in range(repetitions)]
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


def _costs(runs: Sequence[Indexed]) -> Table:
    rows: list[list[Cell]] = []
    for run in runs:
        cpu, peak = run.spent.processor_seconds, run.spent.peak_mb
        rows.append([run.size, run.nodes, run.indexing, cpu, run.nodes / run.indexing, peak])
    columns = ["bytes", "nodes", "index, models loaded (s)", "processor time of the process (s)"]
    return Table("Time and memory", [*columns, "nodes per second", "peak memory (MB)"], rows)


def _shares(runs: Sequence[Indexed]) -> Table:
    rows: list[list[Cell]] = []
    for run in runs:
        shares = [100 * run.stages.get(stage, 0.0) / run.indexing for stage in SHARES]
        rows.append([run.size, *shares, 100 - sum(shares)])
    return Table("Share of each stage (%)", ["bytes", *SHARES, "rest"], rows)

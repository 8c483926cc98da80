"""Publish the rows of a run: `python benchmarks/publish.py RESULTS NAME [JUDGE]`.

RESULTS is a folder of `skillpager bench run` or `reproduce`; its rows go to `benchmarks/intraskill/NAME`,
without texts; methods that have learned from skills of the run only if the run allowed them, and tables then
say so. The table of its report that needs the texts of the skills is copied;
`python docs/generate_benchmark.py` makes all others, and the figures, from the rows.
"""

import sys
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.judge.judges import EVIDENCE
from skillpager.bench.report.results import Results, publish

# the table of a report that needs the texts of the skills
COPIED = "parser-quality.csv"
TARGET = Path(__file__).with_name("intraskill")


def main(results: Path, name: str, judge: str = EVIDENCE) -> None:
    """Publish the rows under one judge, and copy the tables of the report."""
    folder, target = BenchFolder(results), TARGET / name
    publish(Results(folder, folder.find_judge(judge), allow_trained=True), target)
    (target / "tables").mkdir(exist_ok=True)
    for table in (results / "report" / "tables").glob(COPIED):
        (target / "tables" / table.name).write_bytes(table.read_bytes())
    print(f"{target}: write its tables with `python docs/generate_benchmark.py`")


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 4:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])

"""The size of the torture tests: the option `--torture`, and the fixture `torture`, which records figures.

Without the option every amount is the short one of `make test`. `make torture` runs the same tests at full size
(`benchmarks/torture.py`). This module is a plugin of pytest.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "build" / "torture"
# environment variables: a file of skills (JSON lines, one field `skill_md`; may be .xz), and minutes of load
POOL, MINUTES = "TORTURE_POOL", "TORTURE_MINUTES"
DEFAULT_MINUTES = 30.0


@dataclass(frozen=True)
class Torture:
    """The size of one test, and where its figures go.

    Attributes:
        scale: 0 for the short amounts, 1 for the full ones, a share of the full ones between.
        part: The part that the test belongs to, such as `fuzz`.
        pool: A file of real skills, if one was given.
    """

    scale: float
    part: str
    pool: Path | None

    def amount(self, short: int, full: int) -> int:
        """Return how many there are to be: `short` in `make test`, else the share of `full`."""
        return max(short, round(full * self.scale)) if self.scale else short

    def seconds(self, short: float, full: float) -> float:
        """Return how long it is to last."""
        return max(short, full * self.scale) if self.scale else short

    def load_seconds(self, share: float) -> float:
        """Return how long one server is to be under load, as its share of the load of all."""
        return self.seconds(5.0 * share, float(os.environ.get(MINUTES) or DEFAULT_MINUTES) * 60 * share)

    def record(self, measure: str, value: float | str, unit: str = "") -> None:
        """Write a figure of a large run, for `benchmarks/torture.csv`."""
        if self.scale:
            FOLDER.mkdir(parents=True, exist_ok=True)
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            row = {"part": self.part, "measure": measure, "value": shown, "unit": unit}
            with (FOLDER / f"{self.part}.rows").open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def keep(self, name: str, text: str) -> Path:
        """Write an input that a test failed on, and return the file."""
        FOLDER.mkdir(parents=True, exist_ok=True)
        path = FOLDER / f"{self.part}-{name}.md"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--torture`."""
    parser.addoption(
        "--torture",
        type=float,
        default=0.0,
        metavar="SCALE",
        help="share of the full torture amounts, 1 for all",
    )


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> Torture:
    """The amounts of this run."""
    pool = os.environ.get(POOL)
    part = request.path.stem.removeprefix("test_")
    return Torture(request.config.getoption("--torture"), part, Path(pool) if pool else None)

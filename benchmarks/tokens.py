"""Error of the token estimate against o200k_base, and the speed of both."""

from collections.abc import Callable, Sequence
from functools import partial

from options import Options
from results import Cell, Report, Table
from skillpager.parsing.fragments import split_skill
from skillpager.parsing.skill import read_skill
from skillpager.tokens import EstimatedCounter, O200kCounter
from skillpager.types import Fragment
from timing import median, percentile, seconds_of

REPETITIONS = 5


def measure(options: Options) -> Report:
    """Return the report on token counting."""
    skills = [read_skill(path, scope="body") for path in options.documents()]
    texts = [skill.files[0].text[skill.files[0].body_start :] for skill in skills]
    nodes = [tile.text for skill in skills for tile in split_skill(skill) if isinstance(tile, Fragment)]
    rows = [_errors("whole document", texts), _errors("node", nodes)]
    columns = [
        "counted",
        "texts",
        "median |error| (%)",
        "p90 |error| (%)",
        "max |error| (%)",
        "of the sum (%)",
    ]
    errors = Table("Error of the estimate against o200k_base", columns, rows, _SIGN)
    note = (
        f"{len(texts)} {options.corpus()}. `estimate-2` serves where the extra `[tokens]` is not installed."
    )
    return Report("Token counts", [errors, _speed(texts)], note=note)


_SIGN = "The error of the sum is signed: positive when the estimate is too high."


def _errors(name: str, texts: Sequence[str]) -> list[Cell]:
    exact, estimate = O200kCounter(), EstimatedCounter()
    pairs = [(exact.count(text), estimate.count(text)) for text in texts]
    errors = [100 * abs(guess - true) / true for true, guess in pairs if true]
    total = sum(true for true, _ in pairs)
    bias = 100 * (sum(guess for _, guess in pairs) / total - 1)
    return [name, len(texts), median(errors), percentile(errors, 0.9), max(errors), bias]


def _speed(texts: Sequence[str]) -> Table:
    counters: dict[str, Callable[[str], int]] = {
        "o200k_base": O200kCounter().count,
        "estimate-2": EstimatedCounter().count,
    }
    size = sum(map(len, texts)) / 1e6
    rows: list[list[Cell]] = []
    for name, count in counters.items():
        seconds = median([seconds_of(partial(_count_all, count, texts)) for _ in range(REPETITIONS)])
        rows.append([name, size / seconds])
    return Table("Speed on whole documents", ["counter", "million characters per second"], rows)


def _count_all(count: Callable[[str], int], texts: Sequence[str]) -> None:
    for text in texts:
        count(text)

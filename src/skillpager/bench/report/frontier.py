"""Which methods no other beats: the Pareto frontier of sufficiency and token reduction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillpager.bench.report.measures import MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.results import Results


@dataclass(frozen=True, slots=True)
class Point:
    """A method.

    Attributes:
        method: Its label.
        reduction: Token reduction, micro, percent.
        sufficiency: Percent.
    """

    method: str
    reduction: float
    sufficiency: float

    def beats(self, other: "Point") -> bool:
        """Tell whether this is at least as good in both and better in one."""
        mine, others = (self.reduction, self.sufficiency), (other.reduction, other.sufficiency)
        return mine != others and all(own >= their for own, their in zip(mine, others, strict=True))


def points_of(results: Results, labels: Iterable[str]) -> list[Point]:
    """Return the points of methods, in their order."""
    rows = {label: results.rows(label) for label in labels}
    return [Point(label, MICRO_REDUCTION.of(found), SUFFICIENCY.of(found)) for label, found in rows.items()]


def frontier(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other beats, by ascending token reduction."""
    best = [point for point in points if not any(other.beats(point) for other in points)]
    return sorted(best, key=lambda point: (point.reduction, point.method))

"""The composition of a drawn benchmark beside the paper's (§4.1, Table 2)."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from skillpager.bench.data.skillrouter import GROUND_TRUTH, MANIFEST, NAMESPACES, PARTITION, POOL, Draw
from skillpager.bench.report import paper
from skillpager.errors import BenchError
from skillpager.json_types import JsonObject

# namespaces that are listed; another data set may have thousands
MAX_LISTED = 20

_OTHER_DRAW = "which 200 of the pool the paper drew is not published"


@dataclass(frozen=True, slots=True)
class Check:
    """One number or name of the composition.

    Attributes:
        measure: Its name.
        expected: The paper's value, or the manifest's.
        reason: Why the two may differ; empty where they should not.
    """

    measure: str
    expected: str
    found: str
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the two are the same."""
        return self.expected == self.found

    @property
    def json(self) -> JsonObject:
        """The check as a JSON-ready dict."""
        return {**asdict(self), "agrees": self.agrees}


def check_composition(draw: Draw, folder: Path) -> tuple[Check, ...]:
    """Return the composition of a draw, each value beside the paper's or the data set's own.

    Raises:
        BenchError: The data set's manifest is damaged.
    """
    census = draw.census
    subsets = [skill.subset for skill in draw.skills]
    sizes = [len(skill.text) for skill in draw.skills]
    listed = sorted(+census.namespaces)
    if len(listed) > MAX_LISTED:
        listed = [*listed[:MAX_LISTED], f"{len(listed) - MAX_LISTED} more"]
    other_bodies = f"{draw.bodies} has no such skill" if draw.bodies else ""
    other_pool = f"the pool is {draw.pool}" if draw.pool else ""
    checks = [
        _number("gt records", paper.GROUND_TRUTH_RECORDS, census.records[GROUND_TRUTH]),
        Check(
            "gt records without a body",
            paper.EMPTY_RECORD,
            ", ".join(sorted(census.empty)) or "none",
            other_bodies,
        ),
        _number("gt skills", paper.GROUND_TRUTH_SKILLS, subsets.count(GROUND_TRUTH), other_bodies),
        _number("pool records", paper.POOL_RECORDS, census.records[POOL], other_pool),
        _number("pool skills", paper.POOL_SKILLS, subsets.count(POOL)),
        _number("skills", paper.SKILLS, len(subsets)),
        Check("namespaces", ", ".join(sorted(NAMESPACES)), ", ".join(listed), "others are not drawn from"),
        _number("shortest skill, characters", paper.CHARACTERS_MIN, min(sizes), _OTHER_DRAW),
        _number("longest skill, characters", paper.CHARACTERS_MAX, max(sizes), _OTHER_DRAW),
        _number("median skill, characters", paper.CHARACTERS_MEDIAN, median(sizes), _OTHER_DRAW),
    ]
    if not census.parts:  # the manifest describes the parts
        return tuple(checks)
    path = folder / MANIFEST
    try:
        described = json.loads(path.read_bytes())[PARTITION]
        records, parts = int(described["records"]), len(described["parts"])
    except FileNotFoundError:
        missing = Check("manifest of the data set", MANIFEST, "missing", "nothing else depends on it")
        return (*checks, missing)
    except (KeyError, TypeError, ValueError) as error:
        raise BenchError(f"{path} does not describe {PARTITION}/ ({error!r}): download it anew.") from error
    return (
        *checks,
        _number(f"parts of {PARTITION}/, by its manifest", parts, census.parts),
        _number(f"records of {PARTITION}/, by its manifest", records, census.records.total()),
    )


def _number(measure: str, expected: float, found: float, reason: str = "") -> Check:
    return Check(measure, f"{expected:,.6g}", f"{found:,.6g}", reason)

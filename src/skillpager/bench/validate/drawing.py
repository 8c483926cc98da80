"""Drawing samples: which cases, in which order, and what is written of them.

Which cases of a stratum are drawn, and in which order they stand, follows from digests of seed and case:
the same data give the same sheet, in whatever order they were recorded.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from skillpager.bench.data.folder import BenchFolder, write_records
from skillpager.bench.data.records import SkillRecord
from skillpager.bench.validate.key import Key, key_file
from skillpager.bench.validate.sheet import Sheet, overlong_cases, write_sheet
from skillpager.errors import BenchError

Item = TypeVar("Item")
Identity = tuple[str, ...]

SEED = 42
# both samples of the paper (§4.2, §5.1)
SAMPLE_SIZE = 96


@dataclass(frozen=True, slots=True)
class Stratum:
    """A cell of a sample.

    Attributes:
        name: What its cases have in common.
        available: Cases there are.
        drawn: Cases that were drawn.
        wanted: Cases that were to be drawn.
    """

    name: tuple[str, ...]
    available: int
    drawn: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Sample:
    """A drawn sample.

    Attributes:
        sheet: What annotators see.
        keys: What they do not see, in the order of the sheet.
        strata: How many of each stratum.
        set_aside: How many cases could not be drawn from, by the reason.
    """

    sheet: Sheet
    keys: tuple[Key, ...]
    strata: tuple[Stratum, ...]
    set_aside: Mapping[str, int]

    @property
    def short(self) -> tuple[Stratum, ...]:
        """The strata that have too few cases."""
        return tuple(stratum for stratum in self.strata if stratum.drawn < stratum.wanted)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What those who draw it should know, one sentence each."""
        aside = [f"{count} set aside: {reason}" for reason, count in self.set_aside.items()]
        short = [
            f"{' '.join(stratum.name)}: {stratum.drawn} of {stratum.wanted} cases, there are no more"
            for stratum in self.short
        ]
        overlong = overlong_cases(self.sheet)
        long = (
            f"{len(overlong)} cases have a text too long for a cell of a spreadsheet, such as "
            f"{', '.join(overlong[:1])}: answer with `skillpager bench validate serve`"
        )
        return (*aside, *short, *([long] if overlong else []))


def in_drawn_order(items: Iterable[Item], seed: int, identity: Callable[[Item], Identity]) -> list[Item]:
    """Return `items` in an order that depends on seed and identities alone."""
    return sorted(items, key=lambda item: _digest(seed, identity(item)))


def case_id(number: int, seed: int, identity: Identity) -> str:
    """Return the id of a case: its place, and a digest that ties it to its key."""
    return f"c{number:02d}-{_digest(seed, identity)[:6]}"


def write_sample(path: Path, sample: Sample) -> Path:
    """Write a new sheet and its key; return the key's path.

    Raises:
        BenchError: One of them exists, or there is no case.
    """
    if not sample.sheet.cases:
        raise BenchError("No case could be drawn: run and judge methods first.")
    key = key_file(path)
    for file in (path, key):
        if file.exists():
            raise BenchError(f"{file} exists, and it may hold answers: name another file, or remove it.")
    write_records(key, sample.keys)
    write_sheet(path, sample.sheet)
    return key


def skills_by_id(folder: BenchFolder, wanted: Iterable[str]) -> dict[str, SkillRecord]:
    """Return the skills of a folder by id.

    Raises:
        BenchError: One that is wanted is not in the folder.
    """
    skills = {skill.id: skill for skill in folder.skills()}
    if missing := sorted(set(wanted) - skills.keys()):
        raise BenchError(
            f"{folder.path} has results on skills that it does not have, such as {missing[0]!r}: "
            "restore its skills.jsonl, or run again."
        )
    return skills


def _digest(seed: int, identity: Identity) -> str:
    return hashlib.sha256(json.dumps([seed, *identity]).encode()).hexdigest()

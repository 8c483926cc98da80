"""The key of a sheet: what its annotators must not see, one JSON object a case, in `SHEET.key.jsonl`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import Record
from skillpager.bench.validate.sheet import SheetKind
from skillpager.errors import BenchError

KEY_SUFFIX = ".key.jsonl"


@dataclass(frozen=True, slots=True)
class JudgmentKey(Record):
    """What stands behind a case of a sufficiency sheet.

    Attributes:
        case: Id of the case.
        query: Id of the query.
        skill: Id of the skill.
        method: Label of the method.
        judge: Id of the judge.
        sufficient: The judge's verdict.
        pattern: Its vote pattern, such as `2-1`.
        context_sha256: SHA-256 of the context, hexadecimal.
    """

    case: str
    query: str
    skill: str
    method: str
    judge: str
    sufficient: bool
    pattern: str
    context_sha256: str


@dataclass(frozen=True, slots=True)
class TypeKey(Record):
    """What stands behind a case of a sheet of node types.

    Attributes:
        case: Id of the case.
        skill: Id of the skill.
        node: Id of the node in its skill.
        type: The predicted type.
        confidence: The classifier's confidence, 0 to 1.
        subset: Part of the benchmark that the skill is from.
        size: Size class of the skill: `small`, `medium` or `large`.
    """

    case: str
    skill: str
    node: str
    type: str
    confidence: float
    subset: str
    size: str


Key: TypeAlias = JudgmentKey | TypeKey
KEY_KINDS: Mapping[SheetKind, type[Key]] = {
    SheetKind.SUFFICIENCY: JudgmentKey,
    SheetKind.TYPES: TypeKey,
}


def key_file(sheet: Path) -> Path:
    """Return where the key of a new sheet is written."""
    return sheet.with_name(f"{sheet.stem}{KEY_SUFFIX}")


def find_key(sheet: Path) -> Path:
    """Return the key of a sheet; that of `SHEET.csv` for the copy of an annotator, `SHEET.NAME.csv`.

    Raises:
        BenchError: Neither is there.
    """
    own = key_file(sheet)
    shared = own.with_name(f"{Path(sheet.stem).stem}{KEY_SUFFIX}")
    for path in (own, shared):
        if path.is_file():
            return path
    raise BenchError(f"{sheet} has no key {own.name} beside it: name the one it was made with, by --key.")


def read_key(path: Path, kind: SheetKind) -> dict[str, Key]:
    """Return the key by case.

    Raises:
        BenchError: A line is no key of this kind of sheet.
    """
    return {key.case: key for key in read_records(path, KEY_KINDS[kind])}

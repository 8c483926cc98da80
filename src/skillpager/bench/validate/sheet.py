"""The annotation sheet, a CSV file that people answer in a spreadsheet or in `web`; and its key.

    case,skill,description,query,context,label,note     is this context sufficient for this query?
    case,skill,headings,before,node,after,label,note    which type has this node?

UTF-8 with a byte order mark and CRLF between rows, which every spreadsheet reads. Text of skills is
untrusted: a cell that a spreadsheet would take for a formula gets an apostrophe in front, which is removed
when the sheet is read. The key, `SHEET.key.jsonl`, holds what annotators must not see, one JSON object
for each case.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from skillpager.atomic_write import write_file
from skillpager.bench.data.folder import read_records
from skillpager.bench.data.records import Record
from skillpager.errors import BenchError

CASE, LABEL, NOTE = "case", "label", "note"
KEY_SUFFIX = ".key.jsonl"
BYTE_ORDER_MARK = "\ufeff"
# sheets are written with commas; spreadsheets of some languages save with the others
DELIMITERS = (",", ";", "\t")
# the largest that `csv` takes on every platform: a context may be a whole skill, its default is 128 Ki
MAX_CELL = 2**31 - 1
# a cell of Excel and LibreOffice holds no more characters
SPREADSHEET_CELL = 32_767
# also full-width forms, which some spreadsheets read as the ASCII ones, behind any white space
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]|'*[\t\r\n\0]")


class SheetKind(StrEnum):
    """The question of a sheet."""

    SUFFICIENCY = "sufficiency"
    TYPES = "types"


@dataclass(frozen=True, slots=True)
class Choice:
    """A label that a sheet takes; `keys` choose it on the page, and are read as the label in a sheet."""

    label: str
    keys: tuple[str, ...]
    meaning: str


SUFFICIENT, INSUFFICIENT = "sufficient", "insufficient"

CHOICES: Mapping[SheetKind, tuple[Choice, ...]] = {
    # the criterion of paper §4.2
    SheetKind.SUFFICIENCY: (
        Choice(
            SUFFICIENT,
            ("s", "y"),
            "The context holds every step, parameter and essential constraint of the skill that the query "
            "needs.",
        ),
        Choice(INSUFFICIENT, ("i", "n"), "Something that the query needs is missing."),
    ),
    # the roles of paper §3.1
    SheetKind.TYPES: (
        Choice("step", ("1",), "Something to do: instructions, checklists, decisions, code to run in order."),
        Choice(
            "example", ("2",), "Something shown: demonstration code, transcripts, sample input or output."
        ),
        Choice("param", ("3",), "Something to set or choose from: options, fields, values, limits, tools."),
        Choice(
            "precondition", ("4",), "Something that must hold: requirements, standing rules, when not to."
        ),
        Choice(
            "error_handling", ("5",), "Something that goes wrong: symptoms, pitfalls, recovery, fallbacks."
        ),
        Choice("concept", ("6",), "Something to know: definitions, reasons, overviews, comparisons, links."),
    ),
}

# the texts of a case, between its id and its label
COLUMNS: Mapping[SheetKind, tuple[str, ...]] = {
    SheetKind.SUFFICIENCY: ("skill", "description", "query", "context"),
    SheetKind.TYPES: ("skill", "headings", "before", "node", "after"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One row of a sheet: its texts in the order of `COLUMNS`, and an answer, empty before it is given."""

    id: str
    texts: tuple[str, ...]
    label: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet in the order of its rows; nothing in it reveals method, judge or predicted type."""

    kind: SheetKind
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class JudgmentKey(Record):
    """The key of a case of a sufficiency sheet: fields as in `JudgmentRecord`, `pattern` such as `2-1`."""

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
    """The key of a case of a sheet of node types: the predicted node, its skill's subset and size class."""

    case: str
    skill: str
    node: str
    type: str
    confidence: float
    subset: str
    size: str


Key: TypeAlias = JudgmentKey | TypeKey


def write_sheet(path: Path, sheet: Sheet) -> None:
    """Write a sheet, atomically; line breaks inside cells become LF."""
    rows = [[case.id, *case.texts, case.label, case.note] for case in sheet.cases]
    _write_table(path, Table(",", [CASE, *COLUMNS[sheet.kind], LABEL, NOTE], rows, []))


def read_sheet(path: Path) -> Sheet:
    """Return a sheet as it was written, or as a spreadsheet saved it.

    Raises:
        BenchError: The file is missing, not UTF-8, not a sheet, or has an unknown label, a case twice, or a
            row without a case.
    """
    kind, table = _read_table(path)
    place = {name: table.header.index(name) for name in (CASE, *COLUMNS[kind], LABEL, NOTE)}
    cases: dict[str, Case] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        name = row[place[CASE]].strip()
        if not name or name in cases:
            fault = f"the case {name} for the second time" if name else "no case id"
            raise BenchError(f"{path}:{line} has {fault}: restore or remove the row.")
        try:
            label = read_label(kind, row[place[LABEL]])
        except ValueError as error:
            raise BenchError(f"{path}:{line}: {error}.") from None
        texts = tuple(row[place[column]] for column in COLUMNS[kind])
        cases[name] = Case(name, texts, label, row[place[NOTE]])
    return Sheet(kind, tuple(cases.values()))


def write_answer(path: Path, case: str, *, label: str, note: str) -> None:
    """Write the answer to one case into a sheet, atomically; all other cells stay as they are.

    Raises:
        BenchError: The sheet cannot be read.
        ValueError: It has no such case, or does not take the label.
    """
    kind, table = _read_table(path)
    label = read_label(kind, label)
    own, label_place, note_place = map(table.header.index, (CASE, LABEL, NOTE))
    row = next((row for row in table.rows if row[own].strip() == case), None)
    if row is None:
        raise ValueError(f"there is no case {case!r}")
    row[label_place], row[note_place] = label, note
    _write_table(path, table)


def read_label(kind: SheetKind, text: str) -> str:
    """Return the label that a cell means, empty for an empty cell; case and white space do not count.

    Raises:
        ValueError: A sheet of this kind has no such label.
    """
    word = re.sub(r"[\s-]+", "_", text.strip().lower())
    if not word:
        return ""
    for choice in CHOICES[kind]:
        if word == choice.label or word in choice.keys:
            return choice.label
    known = ", ".join(f"{choice.label} ({'/'.join(choice.keys)})" for choice in CHOICES[kind])
    raise ValueError(f"unknown label {text.strip()!r}: write one of {known}")


def verdict_label(sufficient: bool) -> str:
    """Return the label of a verdict."""
    return SUFFICIENT if sufficient else INSUFFICIENT


def copy_for_annotator(path: Path, annotator: str) -> Path:
    """Return the annotator's own copy of a sheet, `SHEET.NAME.csv`, made without answers if it is not there.

    Raises:
        BenchError: The name cannot be part of a file name, or the sheet cannot be read.
    """
    if not re.fullmatch(r"[\w-]+", annotator):
        raise BenchError(f"The annotator {annotator!r} cannot name a file: use letters, digits, - and _.")
    own = path.with_name(f"{path.stem}.{annotator}{path.suffix}")
    if not own.exists():
        sheet = read_sheet(path)
        write_sheet(own, replace(sheet, cases=tuple(Case(case.id, case.texts) for case in sheet.cases)))
    return own


def overlong_cases(sheet: Sheet) -> list[str]:
    """Return the cases that have a text which a cell of a spreadsheet cannot hold."""
    return [case.id for case in sheet.cases if any(len(text) >= SPREADSHEET_CELL for text in case.texts)]


def neutral(text: str) -> str:
    """Return `text` so that no spreadsheet takes it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def restored(cell: str) -> str:
    """Return the text from which `neutral` made `cell`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell


@dataclass(frozen=True, slots=True)
class Table:
    """Header and rows of a CSV file; `lines[i]` is the line at which `rows[i]` begins."""

    delimiter: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]


def read_csv(text: str) -> Table:
    """Return the rows of a CSV file that are not empty, with any delimiter that spreadsheets write.

    Raises:
        csv.Error: It is not a CSV file.
    """
    delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
    usual = csv.field_size_limit(MAX_CELL)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        header = [cell.strip().lower() for cell in next(reader, [])]
        table = Table(delimiter, header, [], [])
        begins = reader.line_num + 1
        for row in reader:
            if any(row):
                # spreadsheets leave out empty cells at the end of a row
                table.rows.append(row + [""] * (len(header) - len(row)))
                table.lines.append(begins)
            begins = reader.line_num + 1
    finally:
        csv.field_size_limit(usual)
    return table


def _read_table(path: Path) -> tuple[SheetKind, Table]:
    """Return the kind and the cells of a sheet."""
    try:
        table = read_csv(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise BenchError(
            f"There is no sheet {path}: make one with `skillpager bench validate sample`."
        ) from None
    except UnicodeDecodeError as error:
        raise BenchError(
            f'{path} is not UTF-8 (offset {error.start}): save it as "CSV UTF-8", or restore it.'
        ) from error
    except csv.Error as error:
        raise BenchError(f"{path} is not a CSV file ({error}): restore it.") from error
    table.rows[:] = [[restored(cell) for cell in row] for row in table.rows]
    headers = {kind: [CASE, *columns, LABEL, NOTE] for kind, columns in COLUMNS.items()}
    for kind, header in headers.items():
        if set(header) <= set(table.header):
            return kind, table
    known = " or ".join(map(",".join, headers.values()))
    raise BenchError(f"{path}:1 is not the header of a sheet: it must have the columns {known}.")


def _write_table(path: Path, table: Table) -> None:
    stream = io.StringIO(newline="")
    stream.write(BYTE_ORDER_MARK)
    writer = csv.writer(stream, delimiter=table.delimiter, lineterminator="\r\n")
    writer.writerow(table.header)
    for row in table.rows:
        writer.writerow([neutral(cell.replace("\r\n", "\n").replace("\r", "\n")) for cell in row])
    write_file(path, stream.getvalue())


def key_file(sheet: Path) -> Path:
    """Return the path of a sheet's key."""
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
        BenchError: A line is not a key of this kind of sheet.
    """
    record: type[Key] = JudgmentKey if kind is SheetKind.SUFFICIENCY else TypeKey
    return {key.case: key for key in read_records(path, record)}

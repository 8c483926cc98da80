"""Sheets that people label: CSV files for a spreadsheet.

    case,skill,description,query,context,label,note     is this context sufficient for this query?
    case,vote,reason                                    answers alone, as they are published

Text of skills is untrusted: a cell that a spreadsheet would take for a formula gets an apostrophe in front.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pandas as pd

from skillpager.bench.judge.judges import Case
from skillpager.errors import BenchError
from skillpager.files import write_file

SEED = 42
LABELS = SUFFICIENT, INSUFFICIENT = "sufficient", "insufficient"
# also full-width forms, which some spreadsheets read as the ASCII ones, behind any white space
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]|'*[\t\r\n\0]")
# the texts of a case, between its id and its label
COLUMNS = ("skill", "description", "query", "context")


def drawn_digest(case: str) -> str:
    """Return the digest that gives a case its place in the drawn order."""
    return hashlib.sha256(json.dumps([SEED, case]).encode()).hexdigest()


def export_cases(cases: Mapping[str, Case], sheet: Path) -> None:
    """Write cases without labels for others to judge, in an order that reveals neither method nor skill."""
    if sheet.exists():
        raise BenchError(f"{sheet} exists, and it may hold answers: name another file, or remove it.")
    rows = [
        (digest, case.skill.name, case.skill.description, case.query.query, case.context)
        for digest, case in sorted(cases.items(), key=lambda item: drawn_digest(item[0]))
    ]
    frame = pd.DataFrame(rows, columns=["case", *COLUMNS])
    safe = frame.map(lambda cell: f"'{cell}" if _FORMULA.match(cell) else cell)
    text = safe.assign(label="", note="").to_csv(index=False, lineterminator="\r\n")
    write_file(sheet, "\ufeff" + text)


def read_answers(path: Path) -> pd.DataFrame:
    """Return the answers in a sheet that a spreadsheet saved, with any separator.

    The columns are case, label and note. Cases without a label are left out; the beginning of one suffices.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        separator = max(",;\t", key=text.partition("\n")[0].count)
        rows = pd.read_csv(StringIO(text), sep=separator, dtype=str, index_col=False, na_filter=False)
    except (OSError, ValueError) as error:
        raise BenchError(f"{path} cannot be read ({error}): give answers as CSV in UTF-8.") from error
    names = {"vote": "label", "reason": "note"}
    rows = rows.fillna("").rename(columns=lambda name: str(name).strip().lower())
    # beside the votes Label Studio gives back the empty labels of the sheet
    rows = rows.assign(**{names[name]: rows[name] for name in names if name in rows})
    if not {"case", "label"} <= set(rows.columns):
        raise BenchError(f"{path} is not a sheet: it must have the columns case and label.")
    rows = rows.assign(note=rows.get("note", ""))[rows["label"].str.strip() != ""]
    if repeated := rows["case"][rows["case"].duplicated()].tolist():
        raise BenchError(f"{path} has the case {repeated[0]} twice: remove one of them.")
    labels = []
    for case, given in zip(rows["case"], rows["label"], strict=True):
        meant = [label for label in LABELS if label.startswith(given.strip().lower())]
        if not meant:
            raise BenchError(f"{path}: case {case}: label {given!r} is not {SUFFICIENT} or {INSUFFICIENT}.")
        labels += meant
    return rows[["case", "note"]].assign(label=labels)

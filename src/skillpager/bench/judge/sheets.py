"""Sheets that people label: CSV for a spreadsheet, or tasks for Label Studio, by the suffix of the file.

    case,skill,description,query,context,label,note     is this context sufficient for this query?
    case,vote,reason                                    answers alone, as they are published

CSV is UTF-8 with a byte order mark, which every spreadsheet reads. Text of skills is untrusted: a cell that a
spreadsheet would take for a formula gets an apostrophe in front. `SHEET.json` holds tasks for Label Studio
and `SHEET.xml` its labelling interface; its export in the format JSON is read back.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pandas as pd
from pydantic import BaseModel, TypeAdapter, ValidationError

from skillpager.bench.data.records import first_fault
from skillpager.bench.judge.judges import Case
from skillpager.errors import BenchError
from skillpager.files import write_file

SEED = 42
SUFFICIENT, INSUFFICIENT = "sufficient", "insufficient"
LABEL_STUDIO = ".json"
# also full-width forms, which some spreadsheets read as the ASCII ones, behind any white space
_FORMULA = re.compile(r"[\s']*[=+\-@＝＋－＠]|'*[\t\r\n\0]")

# the criterion of paper §4.2
LABELS: Mapping[str, str] = {
    SUFFICIENT: "The context holds every step, parameter and essential constraint that the query needs.",
    INSUFFICIENT: "Something that the query needs is missing.",
}
# the texts of a case, between its id and its label
COLUMNS = ("skill", "description", "query", "context")


def drawn_digest(case: str) -> str:
    """Return the digest that gives a case its place in the drawn order."""
    return hashlib.sha256(json.dumps([SEED, case]).encode()).hexdigest()


def export_cases(cases: Mapping[str, Case], sheet: Path) -> None:
    """Write cases without labels for others to judge, in an order that reveals neither method nor skill."""
    if sheet.exists():
        raise BenchError(f"{sheet} exists, and it may hold answers: name another file, or remove it.")
    texts = {
        digest: (case.skill.name, case.skill.description, case.query.query, case.context)
        for digest, case in sorted(cases.items(), key=lambda item: drawn_digest(item[0]))
    }
    frame = pd.DataFrame.from_dict(texts, orient="index", columns=list(COLUMNS))
    frame.insert(0, "case", frame.index)
    if sheet.suffix == LABEL_STUDIO:
        tasks = [{"data": row} for row in frame.to_dict("records")]
        write_file(sheet, json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
        write_file(sheet.with_suffix(".xml"), _interface())
        return
    safe = frame.map(lambda cell: f"'{cell}" if _FORMULA.match(cell) else cell)
    text = safe.assign(label="", note="").to_csv(index=False, lineterminator="\r\n")
    write_file(sheet, "\ufeff" + text)


def _interface() -> str:
    """Return the labelling interface of Label Studio."""
    columns = "\n".join(
        f'    <Header value="{name}"/>\n    <Text name="{name}" value="${name}"/>' for name in COLUMNS
    )
    choices = "\n".join(
        f"    <Choice value={quoteattr(label)} hint={quoteattr(hint)}/>" for label, hint in LABELS.items()
    )
    return (
        f'<View>\n  <View style="white-space: pre-wrap">\n{columns}\n  </View>\n'
        f'  <Choices name="label" toName="context" choice="single" showInline="true">\n{choices}\n'
        '  </Choices>\n  <TextArea name="note" toName="context" maxSubmissions="1"/>\n</View>\n'
    )


def read_answers(path: Path) -> pd.DataFrame:
    """Return the answers in a sheet that a spreadsheet saved, or in an export of Label Studio.

    The columns are annotator, case, label and note, sorted by annotator. A case without a label is left out;
    the beginning of a label suffices. A CSV file has one annotator, of the name of the file.

    Raises:
        BenchError: The file cannot be read, is not a sheet, or has an unknown label or a case twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path} cannot be read ({error}): give answers as UTF-8.") from error
    rows = _studio_rows(path, text) if path.suffix == LABEL_STUDIO else _csv_rows(path, text)
    if not {"case", "label"} <= set(rows.columns):
        raise BenchError(f"{path} is not a sheet: it must have the columns case and label.")
    rows = rows[rows["label"].str.strip() != ""].sort_values("annotator", kind="stable")
    if repeated := rows["case"][rows.duplicated(["annotator", "case"])].tolist():
        raise BenchError(f"{path} has the case {repeated[0]} twice: remove one of them.")
    labels = []
    for case, given in zip(rows["case"], rows["label"], strict=True):
        meant = [label for label in LABELS if label.startswith(given.strip().lower())]
        if not meant:
            known = ", ".join(LABELS)
            raise BenchError(f"{path}: case {case}: unknown label {given!r}: write one of {known}.")
        labels += meant
    return rows[["annotator", "case", "note"]].assign(label=labels)


def _csv_rows(path: Path, text: str) -> pd.DataFrame:
    """Return the rows of a CSV file, with any separator that spreadsheets write."""
    separator = max(",;\t", key=text.partition("\n")[0].count)
    try:
        rows = pd.read_csv(StringIO(text), sep=separator, dtype=str, index_col=False, na_filter=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise BenchError(f"{path} is not a CSV file: restore it.") from error
    names = {"vote": "label", "reason": "note"}
    rows = rows.fillna("").rename(columns=lambda name: str(name).strip().lower()).rename(columns=names)
    return rows.assign(annotator=str(path), note=rows.get("note", ""))


class _Part(BaseModel):
    from_name: str
    value: dict[str, object] = {}


class _Annotation(BaseModel):
    completed_by: object = ""
    was_cancelled: bool = False
    result: list[_Part] = []


class _Task(BaseModel):
    data: dict[str, object]
    annotations: list[_Annotation] = []


def _studio_rows(path: Path, text: str) -> pd.DataFrame:
    """Return a row for each annotation of an export of Label Studio."""
    try:
        tasks = TypeAdapter(list[_Task]).validate_json(text)
    except ValidationError as error:
        fault = first_fault(error)
        raise BenchError(f"{path} is not an export of Label Studio in the format JSON ({fault}).") from None
    rows = []
    for task in tasks:
        for annotation in (each for each in task.annotations if not each.was_cancelled):
            by = annotation.completed_by
            answer = {
                "annotator": f"{path} ({by.get('email', by.get('id')) if isinstance(by, dict) else by})",
                "label": "",
                "note": "",
            }
            for part in annotation.result:
                match part.from_name, part.value:
                    case ("label", {"choices": [given, *_]}) | ("note", {"text": [given, *_]}):
                        answer[part.from_name] = str(given)
            rows.append({name: str(value) for name, value in {**task.data, **answer}.items()})
    return pd.DataFrame(rows, columns=None if rows else ["case"])

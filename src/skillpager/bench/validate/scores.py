"""Scores of answered sheets: people against the judge or the parser, and against each other.

Reference: paper §4.2, §5.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.report import paper
from skillpager.bench.validate.agreement import Agreement, measure_agreement
from skillpager.bench.validate.sheet import (
    CHOICES,
    JudgmentKey,
    Key,
    SheetKind,
    TypeKey,
    find_key,
    read_key,
    read_sheet,
    verdict_label,
)
from skillpager.errors import BenchError

ALL = "all"
BY_VOTES = "votes"
# entry of the manifest: agreement by judge and vote pattern
VALIDATION = "validation"
# divisions of the cases and the field of the key that each goes by
PARTS = {BY_VOTES: "pattern", "method": "method", "subset": "subset", "size": "size"}
PERCENT = 100
# so many cases without a label are named, all are counted
NAMED_CASES = 5


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's numbers beside ours: agreement and macro-F1 from 0 to 1, None where it has none."""

    rate: float
    kappa: float | None = None
    macro_f1: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Agreement on some cases of a sheet; the person's labels are the reference.

    Attributes:
        by: The division of the cases: `all`, `votes` or `method`; for types `all`, `subset` or `size`.
        name: The part, such as `2-1` or `mmr`; `all` for all.
        agreement: The judge's or parser's labels against the person's.
        published: The paper's numbers, where it has them.
    """

    by: str
    name: str
    agreement: Agreement
    published: Published | None


@dataclass(frozen=True, slots=True)
class SheetScore:
    """One annotator's sheet against its key.

    Attributes:
        sheet: The file.
        cases: Number of cases of the key.
        missing: Cases without a label, or without a row.
        groups: All cases, then each division that has two or more parts.
    """

    sheet: str
    cases: int
    missing: tuple[str, ...]
    groups: tuple[Group, ...]

    @property
    def warning(self) -> str:
        """The missing labels, in a sentence; empty when there are none."""
        if not self.missing:
            return ""
        more = ", …" if len(self.missing) > NAMED_CASES else ""
        named = ", ".join(self.missing[:NAMED_CASES]) + more
        count = f"{len(self.missing)} of {self.cases}"
        return f"{self.sheet}: {count} cases have no label and do not count ({named})"


@dataclass(frozen=True, slots=True)
class PairScore:
    """Two annotators against each other, on the cases that both labelled."""

    first: str
    second: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of answered sheets, against `rater` (a judge's id, or `parser`) and each other."""

    kind: SheetKind
    rater: str
    sheets: tuple[SheetScore, ...]
    pairs: tuple[PairScore, ...]


_PUBLISHED: Mapping[SheetKind, Mapping[tuple[str, str], Published]] = {
    SheetKind.SUFFICIENCY: {
        (ALL if name == ALL else BY_VOTES, name): Published(row.agreement / PERCENT, row.kappa)
        for name, row in paper.JUDGE_AGREEMENT.items()
    },
    SheetKind.TYPES: {
        (ALL, ALL): Published(paper.PARSER_ACCURACY / PERCENT, macro_f1=paper.PARSER_MACRO_F1 / PERCENT)
    },
}


def score_sheets(sheets: Sequence[Path], *, key: Path | None = None) -> Scores:
    """Return how the annotators of copies of one sheet agree with the judge or parser, and with each other.

    Args:
        sheets: Answered copies.
        key: The sheet's key; found beside each copy when not given.

    Raises:
        BenchError: A sheet or key is missing or wrong, a sheet has no label or a case that its key does
            not have, or the sheets are not copies of one.
        MissingExtraError: scikit-learn is not installed.

    Reference: paper §4.2, §5.1.
    """
    read = [_read_answers(path, key) for path in sheets]
    kind, keys, _ = read[0]
    for path, (_, other, _) in zip(sheets, read, strict=True):
        if other != keys:
            raise BenchError(f"{sheets[0]} and {path} have different keys: score them one by one.")
    labels = [choice.label for choice in CHOICES[kind]]
    scored, pairs = list[SheetScore](), list[PairScore]()
    for path, (_, _, answers) in zip(sheets, read, strict=True):
        missing = tuple(case for case in keys if case not in answers)
        scored.append(SheetScore(str(path), len(keys), missing, tuple(_score_groups(kind, keys, answers))))
    for (first, (_, _, one)), (second, (_, _, two)) in combinations(zip(sheets, read, strict=True), 2):
        if common := [case for case in keys if case in one and case in two]:
            agreement = measure_agreement([one[c] for c in common], [two[c] for c in common], labels)
            pairs.append(PairScore(str(first), str(second), agreement))
    judges = [own.judge for own in keys.values() if isinstance(own, JudgmentKey)]
    return Scores(kind, judges[0] if judges else "parser", tuple(scored), tuple(pairs))


def _read_answers(path: Path, key: Path | None) -> tuple[SheetKind, dict[str, Key], dict[str, str]]:
    """Return the kind of a sheet, its keys by case, and the label of each labelled case."""
    sheet, place = read_sheet(path), key or find_key(path)
    keys = read_key(place, sheet.kind)
    if strange := [case.id for case in sheet.cases if case.id not in keys]:
        raise BenchError(
            f"{path} has the case {strange[0]}, which {place} does not: name its own key, by --key."
        )
    answers = {case.id: case.label for case in sheet.cases if case.label}
    if not answers:
        raise BenchError(
            f"{path} has no label yet: answer it with `skillpager bench validate serve {path}`, or in a "
            "spreadsheet."
        )
    return sheet.kind, keys, answers


def _score_groups(kind: SheetKind, keys: Mapping[str, Key], answers: Mapping[str, str]) -> Iterator[Group]:
    """Yield the agreement on all labelled cases, then on the parts of each division."""
    labels = [choice.label for choice in CHOICES[kind]]
    labelled = [key for case, key in keys.items() if case in answers]
    divided: list[tuple[str, str, list[Key]]] = [(ALL, ALL, labelled)]
    for by, field in PARTS.items():
        # unanimous votes first; a key without the field, or an empty one, is in no part
        parts = sorted({getattr(key, field, "") for key in labelled} - {""}, reverse=by == BY_VOTES)
        if len(parts) > 1:
            divided += [(by, part, [k for k in labelled if getattr(k, field) == part]) for part in parts]
    for by, name, members in divided:
        people = [answers[key.case] for key in members]
        rated = [key.type if isinstance(key, TypeKey) else verdict_label(key.sufficient) for key in members]
        agreement = measure_agreement(people, rated, labels)
        yield Group(by, name, agreement, _PUBLISHED[kind].get((by, name)))


def note_agreement(folder: BenchFolder, scores: Scores) -> None:
    """Write the first annotator's agreement with the judge into the manifest of the sheet's benchmark.

    `bench report` reads it there.

    Raises:
        BenchError: The sheet is one of node types, or the manifest is damaged.
    """
    if scores.kind is not SheetKind.SUFFICIENCY:
        raise BenchError(f"{scores.sheets[0].sheet} asks for node types: only a judge's agreement is stored.")
    noted = {
        group.name: {
            "cases": group.agreement.cases,
            "rate": group.agreement.rate.value,
            "kappa": group.agreement.kappa.value if group.agreement.kappa else None,
        }
        for group in scores.sheets[0].groups
        if group.by in (ALL, BY_VOTES)
    }
    known = folder.manifest().get(VALIDATION)
    folder.update_manifest({VALIDATION: {**(known if isinstance(known, dict) else {}), scores.rater: noted}})

"""Scores of answered sheets: people against the judge or the parser, and against each other.

Reference: paper §4.2, §5.1.
"""

from collections.abc import Mapping, Sequence
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
    Sheet,
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
    """Agreement on some cases of a sheet.

    Attributes:
        by: The division of the cases: `all`, `votes` or `method`; for types `all`, `subset` or `size`.
        name: The part, such as `2-1` or `mmr`; `all` for all.
        agreement: The person's labels are the reference, the judge's or parser's are rated.
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
        cases: Cases of the key.
        missing: Cases without a label, or without a row.
        groups: All cases, then the parts of them, where there are two or more.
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
    """The scores of answered sheets.

    Attributes:
        kind: The question.
        rater: Id of the judge, or `parser`.
        sheets: One for each annotator.
        pairs: Each two annotators that labelled cases in common.
    """

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
    """Return how the annotators of sheets agree with the judge or parser, and with each other.

    Args:
        sheets: Answered copies of one sheet.
        key: The sheet's key; found beside each sheet when not given.

    Raises:
        BenchError: A sheet or key is missing or wrong, a sheet has no label or a case that its key does
            not know, or the sheets are not copies of one.
        MissingExtraError: scikit-learn is not installed.

    Reference: paper §4.2, §5.1.
    """
    read = [_Answered(path, read_sheet(path), key or find_key(path)) for path in sheets]
    first = read[0]
    for other in read[1:]:
        if other.keys != first.keys:
            raise BenchError(f"{first.path} and {other.path} have different keys: score them one by one.")
    labels = [choice.label for choice in CHOICES[first.sheet.kind]]
    pairs = []
    for one, two in combinations(read, 2):
        if common := [case for case in one.keys if case in one.labels and case in two.labels]:
            agreement = measure_agreement(
                [one.labels[case] for case in common], [two.labels[case] for case in common], labels
            )
            pairs.append(PairScore(str(one.path), str(two.path), agreement))
    judges = [key.judge for key in first.keys.values() if isinstance(key, JudgmentKey)]
    return Scores(
        kind=first.sheet.kind,
        rater=judges[0] if judges else "parser",
        sheets=tuple(_score(answered, labels) for answered in read),
        pairs=tuple(pairs),
    )


def note_agreement(folder: BenchFolder, scores: Scores) -> None:
    """Keep the first annotator's agreement with the judge in the manifest, where `bench report` reads it.

    Args:
        folder: The benchmark that the sheet was drawn from.
        scores: Scores of a sufficiency sheet.

    Raises:
        BenchError: The sheet is one of node types, or the manifest is damaged.
    """
    if scores.kind is not SheetKind.SUFFICIENCY:
        raise BenchError(f"{scores.sheets[0].sheet} asks for node types: only a judge's agreement is kept.")
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


class _Answered:
    """A sheet with its key."""

    def __init__(self, path: Path, sheet: Sheet, key: Path) -> None:
        """Read the key and tie the answers to it.

        Raises:
            BenchError: The key lacks a case of the sheet, or nothing is labelled.
        """
        self.path, self.sheet = path, sheet
        self.keys: dict[str, Key] = read_key(key, sheet.kind)
        if strange := [case.id for case in sheet.cases if case.id not in self.keys]:
            raise BenchError(
                f"{path} has the case {strange[0]}, which {key} does not: name its own key, by --key."
            )
        self.labels = {case.id: case.label for case in sheet.cases if case.label}
        if not self.labels:
            raise BenchError(
                f"{path} has no label yet: answer it with `skillpager bench validate serve {path}`, or in a "
                "spreadsheet."
            )


def _score(answered: _Answered, labels: Sequence[str]) -> SheetScore:
    """Return the score of one sheet: all cases, then the parts that there are two or more of."""
    labelled = [key for case, key in answered.keys.items() if case in answered.labels]
    divided: list[tuple[str, str, list[Key]]] = [(ALL, ALL, labelled)]
    for by, field in PARTS.items():
        # unanimous votes first; a key without the field, or an empty one, is in no part
        parts = sorted({getattr(key, field, "") for key in labelled} - {""}, reverse=by == BY_VOTES)
        if len(parts) > 1:
            members = {part: [key for key in labelled if getattr(key, field) == part] for part in parts}
            divided += [(by, part, keys) for part, keys in members.items()]
    groups = []
    for by, name, keys in divided:
        people = [answered.labels[key.case] for key in keys]
        rated = [key.type if isinstance(key, TypeKey) else verdict_label(key.sufficient) for key in keys]
        agreement = measure_agreement(people, rated, labels)
        groups.append(Group(by, name, agreement, _PUBLISHED[answered.sheet.kind].get((by, name))))
    missing = tuple(case for case in answered.keys if case not in answered.labels)
    return SheetScore(str(answered.path), len(answered.keys), missing, tuple(groups))

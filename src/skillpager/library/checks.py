"""`skillpager library check`: copies, names, and descriptions that take each other's queries.

`skill_checks` checks each skill by itself.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skillpager.encoders.builtin import BuiltinEncoder
from skillpager.library import skill_checks
from skillpager.library.copies import fold
from skillpager.library.discovery import Progress, no_progress, skill_folders, stub_of
from skillpager.library.skill_checks import CheckedSkill, Finding, Kind, Severity, shown_value
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import FloatArray, Skill

# Cosine of two descriptions from which they overlap if their words do not tell them apart: 36 of 38 such
# pairs of public skills take each other's queries (docs/library-check.md)
OVERLAP = 0.80
# rows that are compared with all others at a time: 1,024 by 20,000 cosines take 80 MB
ROWS_AT_A_TIME = 1_024

# "Not for testing": what a description excludes is not what the skill is about
_EXCLUDED = re.compile(r"\b(?:not|never|don['’]t)\b[^.;!?\n]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LibraryCheck:
    """The number of skills that were checked, and what was found, by file and line."""

    skills: int
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by kind, those with most first."""
        return dict(Counter(str(finding.kind) for finding in self.findings).most_common())


def check_library(
    folders: Sequence[Path],
    *,
    ignore: Collection[Kind] = (),
    severity: Severity | None = None,
    progress: Progress = no_progress,
) -> LibraryCheck:
    """Return what to mend in the skills of some folders; stubs are left out.

    Kinds in `ignore` are left out; `severity` is the only one, if one is wanted. `progress` is called with
    the number of skills that were read, and of all.
    """
    skills: list[CheckedSkill] = []
    findings: list[Finding] = []
    places = [path for _, path in skill_folders(folders)]
    for number, path in enumerate(places, 1):
        checked = skill_checks.read_for_check(path)
        if isinstance(checked, Finding):
            findings.append(checked)
        elif stub_of(checked.skill.metadata) is None:
            findings += skill_checks.check_skill(checked)
            # there may be thousands
            skills.append(replace(checked, skill=replace(checked.skill, files=checked.skill.files[:1])))
        progress(number, len(places))
    entries = [each.skill.files[0] for each in skills]
    folded = fold([each.skill for each in skills], lambda at: entries[at].text[entries[at].body_start :])
    copies = {skills[copy].file: skills[first] for first, found in folded.items() for copy in found}
    findings += _copy_findings(skills, copies)
    if Kind.OVERLAP not in ignore:
        described = [each for each in skills if each.skill.description and each.file not in copies]
        texts = [f"{each.skill.name}: {each.skill.description}" for each in described]
        rows = BuiltinEncoder().encode_documents(texts)
        findings += overlap_findings(described, rows)
    wanted = [each for each in findings if each.kind not in ignore and severity in (None, each.severity)]
    wanted.sort(key=lambda each: (str(each.file), each.line or 0, each.kind, each.problem))
    unreadable = sum(each.kind is Kind.UNREADABLE for each in findings)
    return LibraryCheck(len(skills) + unreadable, tuple(wanted))


def _copy_findings(skills: Sequence[CheckedSkill], copies: Mapping[Path, CheckedSkill]) -> Iterator[Finding]:
    """Yield copies and skills of the same name, each at the later of the two skills."""
    named: dict[str, CheckedSkill] = {}
    for checked in skills:
        name, digest = checked.skill.name, checked.skill.files[0].digest
        if first := copies.get(checked.file):
            problem = f"all or nearly all of the text is that of {first.file}"
            remedy = "remove one of the two, or leave in each what only it says"
            yield checked.warning(Kind.COPY, "", first.file, problem, remedy)
        other = named.setdefault(name, checked)
        if other.skill.files[0].digest != digest:  # of copies hosts use either
            problem = f"the name {shown_value(name)} is that of {other.file}, too, which is used instead"
            yield checked.warning(Kind.SAME_NAME, "name", name, problem, "rename one of the two")


class _Words(NamedTuple):
    """The terms by which two skills are told apart, whatever the cosine."""

    # of name and description, without what that excludes
    held: frozenset[str]
    # those of the name that the description has, too; the name if it has none, as one in another script
    subject: frozenset[str]
    # those that stand there twice
    repeated: frozenset[str]


def _words_of(skill: Skill) -> _Words:
    named, described = terms_of(skill.name), terms_of(_EXCLUDED.sub(" ", skill.description))
    counts = Counter([*named, *described])
    subject = frozenset(named).intersection(described) or frozenset(named)
    return _Words(frozenset(counts), subject, frozenset(term for term, count in counts.items() if count > 1))


def _differ(one: _Words, other: _Words) -> bool:
    """Return whether one has a subject, such as a product, or each a repeated word, that the other lacks."""
    if one.subject - other.held or other.subject - one.held:
        return True
    return bool(one.repeated - other.held and other.repeated - one.held)


def overlap_findings(skills: Sequence[CheckedSkill], rows: FloatArray) -> Iterator[Finding]:
    """Yield the skills that take each other's queries: each with the most similar other, each pair once.

    `rows`, `(n, dim)` float32 of unit length, are the embeddings of names and descriptions.
    """
    words = [_words_of(each.skill) for each in skills]
    reported: set[tuple[int, int]] = set()
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        cosines = rows[start : start + ROWS_AT_A_TIME] @ rows.T
        for place, similar in enumerate(cosines, start):
            near = np.flatnonzero(similar >= OVERLAP)
            ranked = near[np.argsort(-similar[near], kind="stable")].tolist()
            alike = (at for at in ranked if at != place and not _differ(words[place], words[at]))
            nearest = next(alike, None)
            if nearest is None or (pair := (min(place, nearest), max(place, nearest))) in reported:
                continue
            reported.add(pair)
            checked, other = skills[place], skills[nearest]
            problem = (
                f"the description is nearly that of {shown_value(other.skill.name)} in {other.file} "
                f"({min(1.0, float(similar[nearest])):.2f}), so one takes the other's queries"
            )
            remedy = "say in each what only it does and when not to use it, or make them one skill"
            yield checked.warning(Kind.OVERLAP, "description", other.file, problem, remedy)

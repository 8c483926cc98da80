"""`skillpager library check`: what authors should mend in a library of skills, and in each of them.

This module checks what skills are to each other: copies, names, descriptions that take each other's queries,
and the room that hosts have for all of them. `skill_checks` checks each skill by itself.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skillpager.display_text import percent
from skillpager.library.copies import fold
from skillpager.library.discovery import Progress, no_progress, skill_folders, stub_of
from skillpager.library.skill_checks import (
    CheckedSkill,
    Finding,
    Kind,
    Severity,
    check_skill,
    read_for_check,
    shown_value,
)
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import FloatArray, Skill

if TYPE_CHECKING:
    from skillpager.types import Encoder

# Cosine of two descriptions from which they overlap if their words do not tell them apart: 36 of 38 such
# pairs of public skills take each other's queries (docs/library-check.md)
OVERLAP = 0.80
# rows that are compared with all others at a time: 1,024 by 20,000 cosines take 80 MB
ROWS_AT_A_TIME = 1_024
# estimate of both hosts; code.claude.com/docs/en/skills gives 8,000 characters for 200,000 tokens
CHARACTERS_PER_TOKEN = 4

# "Not for testing": what a description excludes is not what the skill is about
_EXCLUDED = re.compile(r"\b(?:not|never|don['’]t)\b[^.;!?\n]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LibraryCheck:
    """The result of a check.

    Attributes:
        skills: Number of skills that were checked.
        findings: By file and line; those about the whole library last.
    """

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
    encoder: "Encoder | None" = None,
    progress: Progress = no_progress,
) -> LibraryCheck:
    """Return what to mend in the skills of some folders; stubs are left out.

    Args:
        folders: Folders to search.
        ignore: Kinds of findings that are left out.
        encoder: Embeds descriptions; default: the shipped one.
        progress: Called with the number of skills that were read, and of all.
    """
    skills: list[CheckedSkill] = []
    findings: list[Finding] = []
    unreadable = 0
    places = [path for _, path in skill_folders(folders)]
    for number, path in enumerate(places, 1):
        checked = read_for_check(path)
        if isinstance(checked, Finding):
            findings.append(checked)
            unreadable += 1
        elif stub_of(checked.skill.metadata) is None:
            findings += check_skill(checked)
            # there may be thousands
            skills.append(replace(checked, skill=replace(checked.skill, files=checked.skill.files[:1])))
        progress(number, len(places))
    copies = _copies_of(skills)
    findings += _copy_findings(skills, copies)
    if Kind.OVERLAP not in ignore:
        if encoder is None:
            from skillpager.encoders.builtin import BuiltinEncoder

            encoder = BuiltinEncoder()
        described = [each for each in skills if each.skill.description and each.file not in copies]
        rows = encoder.encode_documents(
            [f"{each.skill.name}: {each.skill.description}" for each in described]
        )
        findings += overlap_findings(described, rows)
    findings += listing_findings(skills, folders[0] if len(folders) == 1 else Path())
    wanted = [finding for finding in findings if finding.kind not in ignore]
    return LibraryCheck(len(skills) + unreadable, tuple(sorted(wanted, key=_rank)))


def _rank(finding: Finding) -> tuple[bool, str, int, str, str]:
    """Return the place of a finding among others: by file and line, those about the whole library last."""
    is_last = finding.kind is Kind.LISTING
    return is_last, str(finding.file), finding.line or 0, finding.kind, finding.problem


def _copies_of(skills: Sequence[CheckedSkill]) -> dict[Path, CheckedSkill]:
    """Return the skills of which others are copies, by the SKILL.md of each copy."""
    entries = [each.skill.files[0] for each in skills]
    folded = fold([each.skill for each in skills], lambda at: entries[at].text[entries[at].body_start :])
    return {skills[copy].file: skills[first] for first, copies in folded.items() for copy in copies}


def _copy_findings(skills: Sequence[CheckedSkill], copies: Mapping[Path, CheckedSkill]) -> Iterator[Finding]:
    """Yield copies, near-copies and skills of the same name, each at the later of the two skills."""
    named: dict[str, CheckedSkill] = {}
    for checked in skills:
        name, digest = checked.skill.name, checked.skill.files[0].digest
        if first := copies.get(checked.file):
            kind, problem = Kind.NEAR_COPY, f"nearly all of the text is that of {first.file}"
            remedy = "remove one of the two, or leave in each what only it says"
            if first.skill.files[0].digest == digest:
                kind, problem = Kind.COPY, f"the file is the same as {first.file}"
                remedy = "remove one of the two"
            yield checked.warning(kind, "", first.file, problem, remedy)
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
    """Return whether one has a subject, or each a repeated word, that the other lacks.

    Many descriptions differ in a product's name, and so do the queries.
    """
    if one.subject - other.held or other.subject - one.held:
        return True
    return bool(one.repeated - other.held and other.repeated - one.held)


def overlap_findings(skills: Sequence[CheckedSkill], rows: FloatArray) -> Iterator[Finding]:
    """Yield the skills that take each other's queries: each with the most similar other, each pair once.

    Args:
        skills: Skills with a description.
        rows: `(n, dim)` float32, unit length: the embeddings of names and descriptions.
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


# Hosts that limit the list of skills in their prompt: name, part of the context window that the list may
# take, tokens of the window that is assumed, form of an entry without its description, most characters of a
# description with its `when_to_use` (None if the list has all of it, and no `when_to_use`), and how their
# users raise the limit.
HOSTS = (
    # code.claude.com/docs/en/skills: names always stay, the descriptions of the skills that are used least go
    ("Claude Code", 0.01, 200_000, "- {name}\n", 1_536, "raise skillListingBudgetFraction"),
    # developers.openai.com/codex/skills: descriptions are shortened first, then skills are left out. The
    # window is that of GPT-5 in Codex, of which openai/codex#24299 shows the 2 %: 5,440 tokens.
    ("Codex", 0.02, 272_000, "- {name}\n (file: {file})", None, "raise skills.max_context_tokens"),
)


def listing_findings(skills: Sequence[CheckedSkill], place: Path) -> Iterator[Finding]:
    """Yield a finding at `place` for each host that does not show all descriptions."""
    count = len(skills)
    for host, share, window, entry, longest, way in HOSTS:
        limit = int(share * window * CHARACTERS_PER_TOKEN)
        bare = described = 0
        for each in skills:
            bare += len(entry.format(name=each.skill.name, file=each.file))
            when = each.skill.metadata.get("when_to_use") if longest else None
            texts = [each.skill.description, *([when] if when else [])]
            described += len(f": {' - '.join(texts)[:longest]}")
        needed = bare + described
        if needed <= limit:
            continue
        # of average length
        shown = f"about {count * max(0, limit - bare) // described:,} of {count:,} descriptions fit"
        if bare > limit:
            shown = f"even without descriptions only about {count * limit // bare:,} of {count:,} skills fit"
        problem = (
            f"the list of these skills has {needed:,} characters, and {host} shows {limit:,} "
            f"({percent(share)} of {window:,} tokens): {shown}"
        )
        remedy = f"shorten descriptions, remove skills, {way}, or let the agent search the library"
        yield Finding(Kind.LISTING, Severity.WARNING, place, None, str(needed), problem, remedy)

"""`skillpager library check`: what authors should mend in a library of skills, and in each of them.

This module checks what skills are to each other: copies, names, descriptions that take each other's queries,
and the room that hosts have for all of them. `skill_checks` checks each skill by itself.
"""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillpager.display_text import percent
from skillpager.library.copies import Sketch, find_copies, sketch_of
from skillpager.library.discovery import Progress, skill_folders, stub_of
from skillpager.library.skill_checks import (
    Finding,
    Kind,
    Severity,
    check_skill,
    field_lines,
    read_for_check,
    shown_value,
)
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import FloatArray, Skill

if TYPE_CHECKING:
    from skillpager.types import Encoder

# of near-copies, of which texts that differ in a few words only are estimated to be 100 % alike
LARGEST_SHARE = 0.99
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


@dataclass(frozen=True, slots=True)
class CheckedSkill:
    """The parts of a skill that are compared with others; not its text, for there may be thousands.

    Attributes:
        file: Its SKILL.md.
        name: Its name.
        description: Its description.
        when_to_use: A field of Claude Code's; empty if there is none.
        digest: That of its SKILL.md.
        sketch: Of its text without front matter.
        lines: Line of each field of its front matter, counted from 1.
    """

    file: Path
    name: str
    description: str
    when_to_use: str
    digest: str
    sketch: Sketch
    lines: dict[str, int]

    @classmethod
    def of(cls, skill: Skill, path: Path) -> "CheckedSkill":
        """Return what is kept of the skill in the folder `path`."""
        entry, when = skill.files[0], skill.metadata.get("when_to_use", "")
        sketch, lines = sketch_of(entry.text[entry.body_start :]), field_lines(entry.text)
        return cls(path / ENTRY_FILE, skill.name, skill.description, when, entry.digest, sketch, lines)

    def warning(self, kind: Kind, field: str, value: object, problem: str, remedy: str) -> Finding:
        """Return a finding at a field of its front matter."""
        return Finding(kind, Severity.WARNING, self.file, self.lines.get(field), str(value), problem, remedy)


def check_library(
    folders: Sequence[Path],
    *,
    ignore: Collection[Kind] = (),
    encoder: "Encoder | None" = None,
    progress: Progress = lambda _done, _total: None,
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
    places: dict[Hashable, tuple[Path, Path]] = {}
    for top in folders:
        for path, identity in skill_folders(top):
            places.setdefault(identity, (top, path))
    for number, (top, path) in enumerate(places.values(), 1):
        skill = read_for_check(path)
        if isinstance(skill, Finding):
            findings.append(skill)
            unreadable += 1
        elif stub_of(skill.metadata) is None:
            findings += check_skill(skill, path, top=top)
            skills.append(CheckedSkill.of(skill, path))
        progress(number, len(places))
    copies = find_copies([skill.sketch for skill in skills])
    findings += _copy_findings(skills, copies)
    if Kind.OVERLAP not in ignore:
        if encoder is None:
            from skillpager.encoders.builtin import BuiltinEncoder

            encoder = BuiltinEncoder()
        described = [skill for skill in skills if skill.description]
        rows = encoder.encode_documents([f"{skill.name}: {skill.description}" for skill in described])
        known = {(skills[first].file, skills[place].file) for place, first, _ in copies}
        findings += overlap_findings(described, rows, known)
    findings += listing_findings(skills, folders[0] if len(folders) == 1 else Path())
    wanted = [finding for finding in findings if finding.kind not in ignore]
    return LibraryCheck(len(skills) + unreadable, tuple(sorted(wanted, key=_rank)))


def _rank(finding: Finding) -> tuple[bool, str, int, str, str]:
    """Return the place of a finding among others: by file and line, those about the whole library last."""
    is_last = finding.kind is Kind.LISTING
    return is_last, str(finding.file), finding.line or 0, finding.kind, finding.problem


def _copy_findings(
    skills: Sequence[CheckedSkill], copies: Sequence[tuple[int, int, float]]
) -> Iterator[Finding]:
    """Yield copies, near-copies and skills of the same name, each at the later of the two skills."""
    for place, earlier, likeness in copies:
        skill, first = skills[place], skills[earlier]
        if skill.digest == first.digest:
            problem, remedy = f"the file is the same as {first.file}", "remove one of the two"
            yield skill.warning(Kind.COPY, "", first.file, problem, remedy)
        else:
            share = percent(min(likeness, LARGEST_SHARE))
            problem = f"{share} of its text and that of {first.file} are the same"
            remedy = "remove one of the two, or leave in each what only it says"
            yield skill.warning(Kind.NEAR_COPY, "", first.file, problem, remedy)
    named: dict[str, CheckedSkill] = {}
    for skill in skills:
        other = named.setdefault(skill.name, skill)
        if other.digest != skill.digest:  # of copies hosts use either
            problem = (
                f"the name {shown_value(skill.name)} is that of {other.file}, too, which is used instead"
            )
            yield skill.warning(Kind.SAME_NAME, "name", skill.name, problem, "rename one of the two")


@dataclass(frozen=True, slots=True)
class _Words:
    """The terms by which two skills are told apart, whatever the cosine.

    Attributes:
        held: Those of name and description, without what the description excludes.
        subject: Those of the name that the description has, too; the name if it has none of them, as one in
            another script.
        repeated: Those that stand there twice.
    """

    held: frozenset[str]
    subject: frozenset[str]
    repeated: frozenset[str]


def _words_of(skill: CheckedSkill) -> _Words:
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


def overlap_findings(
    skills: Sequence[CheckedSkill], rows: FloatArray, known: Collection[tuple[Path, Path]] = ()
) -> Iterator[Finding]:
    """Yield the skills that take each other's queries: each with the most similar other, each pair once.

    Args:
        skills: Skills with a description.
        rows: `(n, dim)` float32, unit length: the embeddings of names and descriptions.
        known: Files of pairs that are left out, in the order of `skills`.
    """
    words = [_words_of(skill) for skill in skills]
    reported: set[tuple[int, int]] = set()
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        cosines = rows[start : start + ROWS_AT_A_TIME] @ rows.T
        for place, similar in enumerate(cosines, start):
            near = np.flatnonzero(similar >= OVERLAP)
            for at in near[np.argsort(-similar[near], kind="stable")].tolist():
                first, second = pair = (min(place, at), max(place, at))
                is_known = (skills[first].file, skills[second].file) in known
                if at == place or is_known or _differ(words[place], words[at]):
                    continue
                if pair not in reported:
                    reported.add(pair)
                    skill, other, cosine = skills[place], skills[at], min(1.0, float(similar[at]))
                    problem = (
                        f"the description is nearly that of {shown_value(other.name)} in {other.file} "
                        f"({cosine:.2f}), so one takes the other's queries"
                    )
                    remedy = "say in each what only it does and when not to use it, or make them one skill"
                    yield skill.warning(Kind.OVERLAP, "description", other.file, problem, remedy)
                break


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
        for skill in skills:
            bare += len(entry.format(name=skill.name, file=skill.file))
            when = f" - {skill.when_to_use}" if longest and skill.when_to_use else ""
            described += len(f": {f'{skill.description}{when}'[:longest]}")
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

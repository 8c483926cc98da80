"""`skillpager library check`: what authors should mend in a library of skills, and in each of them."""

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from skillpager.library.copies import NearCopy, find_copies
from skillpager.library.discovery import Progress, skill_folders, stub_of
from skillpager.library.licences import Licences
from skillpager.library.skill_checks import (
    OVERLAP,
    CheckedSkill,
    Finding,
    Kind,
    Limits,
    Severity,
    check_skill,
    read_for_check,
    shown_value,
)
from skillpager.output.formatting import percent
from skillpager.strategies.navigator.lexical import terms_of
from skillpager.types import FloatArray

if TYPE_CHECKING:
    from skillpager.types import Encoder

# of near-copies, of which texts that differ in a few words only are estimated to be 100 % alike
LARGEST_SHARE = 0.99
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
    def warnings(self) -> int:
        """Number of findings that are warnings."""
        return len(self.findings) - self.errors

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by kind, those with most first."""
        return dict(Counter(str(finding.kind) for finding in self.findings).most_common())


def check_library(
    folders: Sequence[Path],
    *,
    limits: Limits = Limits(),  # noqa: B008 # frozen
    ignore: Collection[Kind] = (),
    encoder: "Encoder | None" = None,
    progress: Progress = lambda _done, _total: None,
) -> LibraryCheck:
    """Return what to mend in the skills of some folders; stubs are left out.

    Args:
        folders: Folders to search.
        limits: From which sizes and likenesses on something is a finding.
        ignore: Kinds of findings that are left out.
        encoder: Embeds descriptions; default: the shipped one.
        progress: Called with the number of skills that were read, and of all.
    """
    licences = Licences()
    skills: list[CheckedSkill] = []
    findings: list[Finding] = []
    unreadable = 0
    places: dict[Hashable, tuple[Path, Path]] = {}
    for top in folders:
        for path, identity, _ in skill_folders(top):
            places.setdefault(identity, (top, path))
    for number, (top, path) in enumerate(places.values(), 1):
        skill = read_for_check(path)
        if isinstance(skill, Finding):
            findings.append(skill)
            unreadable += 1
        elif stub_of(skill.metadata) is None:
            findings += check_skill(skill, path, top=top, limits=limits, licences=licences)
            skills.append(CheckedSkill.of(skill, path))
        progress(number, len(places))
    copies = find_copies([skill.sketch for skill in skills], threshold=limits.near_copy)
    findings += _copy_findings(skills, copies)
    findings += _name_findings(skills)
    if Kind.OVERLAP not in ignore:
        if encoder is None:
            from skillpager.encoders.builtin import BuiltinEncoder

            encoder = BuiltinEncoder()
        known = {(copy.first, copy.place) for copy in copies}
        findings += _overlap_findings(skills, known, limits.overlap, encoder)
    place = folders[0] if len(folders) == 1 else Path()
    findings += [finding for host in HOSTS if (finding := listing_finding(host, skills, place))]
    wanted = [finding for finding in findings if finding.kind not in ignore]
    return LibraryCheck(len(skills) + unreadable, tuple(sorted(wanted, key=_rank)))


def _rank(finding: Finding) -> tuple[bool, str, int, str, str]:
    """Return the place of a finding among others: by file and line, those about the whole library last."""
    is_last = finding.kind is Kind.LISTING
    return is_last, str(finding.file), finding.line or 0, finding.kind, finding.problem


def _warning(
    kind: Kind, skill: CheckedSkill, field: str, value: object, problem: str, remedy: str
) -> Finding:
    line = skill.lines.get(field)
    return Finding(kind, Severity.WARNING, skill.file, line, str(value), problem, remedy)


def _copy_findings(skills: Sequence[CheckedSkill], copies: Sequence[NearCopy]) -> Iterator[Finding]:
    """Yield copies and near-copies, each at the later of the two skills."""
    for copy in copies:
        skill, first = skills[copy.place], skills[copy.first]
        if skill.digest == first.digest:
            problem, remedy = f"the file is the same as {first.file}", "remove one of the two"
            yield _warning(Kind.COPY, skill, "", first.file, problem, remedy)
        else:
            share = percent(min(copy.likeness, LARGEST_SHARE))
            problem = f"{share} of its text and that of {first.file} are the same"
            remedy = "remove one of the two, or leave in each what only it says"
            yield _warning(Kind.NEAR_COPY, skill, "", first.file, problem, remedy)


def _name_findings(skills: Sequence[CheckedSkill]) -> Iterator[Finding]:
    """Yield skills of the same name, at the later one; copies are no trouble, because hosts use either."""
    first: dict[str, CheckedSkill] = {}
    for skill in skills:
        other = first.setdefault(skill.name, skill)
        if other.digest != skill.digest:
            problem = (
                f"the name {shown_value(skill.name)} is that of {other.file}, too, which is used instead"
            )
            yield _warning(Kind.SAME_NAME, skill, "name", skill.name, problem, "rename one of the two")


# ---- overlaps


def _overlap_findings(
    skills: Sequence[CheckedSkill], known: set[tuple[int, int]], threshold: float, encoder: "Encoder"
) -> Iterator[Finding]:
    """Yield skills that take each other's queries; those without a description take none."""
    places = [place for place, skill in enumerate(skills) if skill.description]
    texts = [(skills[place].name, skills[place].description) for place in places]
    rows = encoder.encode_documents([f"{name}: {description}" for name, description in texts])
    at = {place: position for position, place in enumerate(places)}
    left_out = {(at[one], at[other]) for one, other in known if one in at and other in at}
    for overlap in find_overlaps(texts, rows, threshold=threshold, known=left_out):
        skill, other = skills[places[overlap.place]], skills[places[overlap.other]]
        more = f", and {overlap.more} more come as near" if overlap.more else ""
        problem = (
            f"the description is nearly that of {shown_value(other.name)} in {other.file} "
            f"({overlap.similarity:.2f}), so one takes the other's queries{more}"
        )
        remedy = "say in each what only it does and when not to use it, or make them one skill"
        yield _warning(Kind.OVERLAP, skill, "description", other.file, problem, remedy)


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two skills, by position, that take each other's queries.

    Attributes:
        place: Position of a skill.
        other: Position of the skill whose description is most like its own.
        similarity: Cosine of their descriptions.
        more: Number of further skills whose descriptions are as like as the threshold asks.
    """

    place: int
    other: int
    similarity: float
    more: int


def find_overlaps(
    texts: Sequence[tuple[str, str]],
    rows: FloatArray,
    *,
    threshold: float = OVERLAP,
    known: Collection[tuple[int, int]] = (),
) -> list[Overlap]:
    """Return the skills that take each other's queries: each with the most similar other, each pair once.

    Args:
        texts: Name and description of each skill.
        rows: `(n, dim)` float32, unit length: their embeddings.
        threshold: Least cosine of two that overlap.
        known: Pairs of positions, the lower first, that are left out.
    """
    words = [_Words.of(name, description) for name, description in texts]
    found: dict[tuple[int, int], Overlap] = {}
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        cosines = rows[start : start + ROWS_AT_A_TIME] @ rows.T
        for place, similar in enumerate(cosines, start):
            others = [
                int(other)
                for other in np.flatnonzero(similar >= threshold)
                if other != place
                and (min(place, other), max(place, other)) not in known
                and not words[place].differ(words[other])
            ]
            if others:
                nearest = max(others, key=lambda other: (similar[other], -other))
                pair = (min(place, nearest), max(place, nearest))
                similarity = min(1.0, float(similar[nearest]))
                found.setdefault(pair, Overlap(place, nearest, similarity, len(others) - 1))
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Words:
    """The terms by which two skills are told apart, whatever the cosine.

    Attributes:
        held: Those of name and description.
        subject: Those of the name that the description has, too; the name if it has none of them, as one in
            another script.
        repeated: Those that stand there twice.
    """

    held: frozenset[str]
    subject: frozenset[str]
    repeated: frozenset[str]

    @classmethod
    def of(cls, name: str, description: str) -> "_Words":
        """Return the words of a skill, without what its description excludes."""
        named, described = terms_of(name), terms_of(_EXCLUDED.sub(" ", description))
        counts = Counter([*named, *described])
        subject = frozenset(named).intersection(described) or frozenset(named)
        return cls(frozenset(counts), subject, frozenset(term for term, count in counts.items() if count > 1))

    def differ(self, other: "_Words") -> bool:
        """Return whether one has a subject, or each a repeated word, that the other lacks.

        Many descriptions differ in a product's name, and so do the queries.
        """
        if self.subject - other.held or other.subject - self.held:
            return True
        return bool(self.repeated - other.held and other.repeated - self.held)


# ---- lists of skills in the prompts of hosts


@dataclass(frozen=True, slots=True)
class Host:
    """A host that limits its list of skills.

    Attributes:
        name: Its name.
        share: Part of the context window that the list may take.
        window: Tokens of the context window that is assumed.
        entry_characters: Most characters of an entry's description; None for no limit.
        shows_when: Whether an entry has the front matter's `when_to_use`.
        shows_path: Whether an entry names the file.
        remedy: How its user raises the limit.
    """

    name: str
    share: float
    window: int
    entry_characters: int | None
    shows_when: bool
    shows_path: bool
    remedy: str


HOSTS = (
    # code.claude.com/docs/en/skills: 1 % of the window, 1,536 characters of description and when_to_use;
    # names always stay, the descriptions of the skills that are used least go
    Host("Claude Code", 0.01, 200_000, 1_536, True, False, "raise skillListingBudgetFraction"),
    # developers.openai.com/codex/skills: 2 % of the window; descriptions are shortened first, then skills are
    # left out. The window is that of GPT-5 in Codex, of which openai/codex#24299 shows the 2 %: 5,440 tokens.
    Host("Codex", 0.02, 272_000, None, False, True, "raise skills.max_context_tokens"),
)


def listing_finding(host: Host, skills: Sequence[CheckedSkill], place: Path) -> Finding | None:
    """Return a finding at `place` if a host does not show all descriptions; else None."""
    limit = int(host.share * host.window * CHARACTERS_PER_TOKEN)
    bare = described = 0
    for skill in skills:
        bare += len(f"- {skill.name}\n") + (len(f" (file: {skill.file})") if host.shows_path else 0)
        when = f" - {skill.when_to_use}" if host.shows_when and skill.when_to_use else ""
        described += len(f": {f'{skill.description}{when}'[: host.entry_characters]}")
    needed, count = bare + described, len(skills)
    if needed <= limit:
        return None
    # of average length
    shown = f"about {count * max(0, limit - bare) // described:,} of {count:,} descriptions fit"
    if bare > limit:
        shown = f"even without descriptions only about {count * limit // bare:,} of {count:,} skills fit"
    problem = (
        f"the list of these skills has {needed:,} characters, and {host.name} shows {limit:,} "
        f"({percent(host.share)} of {host.window:,} tokens): {shown}"
    )
    remedy = f"shorten descriptions, remove skills, {host.remedy}, or let the agent search the library"
    return Finding(Kind.LISTING, Severity.WARNING, place, None, str(needed), problem, remedy)

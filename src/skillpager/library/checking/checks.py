"""`skillpager library check`: what authors should mend in a library of skills."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.library.checking.findings import Finding, Kind, LibraryCheck, Severity, in_order, shown_value
from skillpager.library.checking.listing import HOSTS, Entry, Listing, list_for
from skillpager.library.checking.overlaps import OVERLAP, find_overlaps
from skillpager.library.checking.skill_checks import (
    MAX_BODY_LINES,
    MAX_BODY_TOKENS,
    CheckedSkill,
    Limits,
    check_skill,
    checked_skill,
    read_for_check,
)
from skillpager.library.copies import NEAR_COPY, NearCopy, find_copies
from skillpager.library.discovery import Progress, skill_folders, stub_of
from skillpager.library.licences import Licences
from skillpager.output.formatting import percent
from skillpager.parsing.skill import MAX_DESCRIPTION

if TYPE_CHECKING:
    from skillpager.types import Encoder

DEFAULT_LIMITS = Limits(MAX_DESCRIPTION, MAX_BODY_LINES, MAX_BODY_TOKENS, NEAR_COPY, OVERLAP)
# of near-copies, of which texts that differ in a few words only are estimated to be 100 % alike
LARGEST_SHARE = 0.99


def check_library(
    folders: Sequence[Path],
    *,
    limits: Limits = DEFAULT_LIMITS,
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
    places = list(_places(folders))
    for number, (top, path) in enumerate(places, 1):
        skill = read_for_check(path)
        if isinstance(skill, Finding):
            findings.append(skill)
            unreadable += 1
        elif stub_of(skill.metadata) is None:
            findings += check_skill(skill, path, top=top, limits=limits, licences=licences)
            skills.append(checked_skill(skill, path))
        progress(number, len(places))
    copies = find_copies([skill.sketch for skill in skills], threshold=limits.near_copy)
    findings += _copy_findings(skills, copies)
    findings += _name_findings(skills)
    if Kind.OVERLAP not in ignore:
        known = {(copy.first, copy.place) for copy in copies}
        findings += _overlap_findings(skills, known, limits.overlap, encoder or _shipped_encoder())
    findings += _listing_findings(skills, folders)
    wanted = [finding for finding in findings if finding.kind not in ignore]
    return LibraryCheck(len(skills) + unreadable, in_order(wanted))


def _shipped_encoder() -> "Encoder":
    from skillpager.encoders.builtin import BuiltinEncoder

    return BuiltinEncoder()


def _places(folders: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield the search folder and the folder of each skill, each skill once."""
    seen = set()
    for top in folders:
        for path, identity, _ in skill_folders(top):
            if identity not in seen:
                seen.add(identity)
                yield top, path


def _warning(
    kind: Kind, skill: CheckedSkill, line: int | None, value: str, problem: str, remedy: str
) -> Finding:
    return Finding(kind, Severity.WARNING, skill.file, line, value, problem, remedy)


def _copy_findings(skills: Sequence[CheckedSkill], copies: Sequence[NearCopy]) -> Iterator[Finding]:
    """Yield copies and near-copies, each at the later of the two skills."""
    for copy in copies:
        skill, first = skills[copy.place], skills[copy.first]
        if skill.digest == first.digest:
            problem, remedy = f"the file is the same as {first.file}", "remove one of the two"
            yield _warning(Kind.COPY, skill, None, str(first.file), problem, remedy)
        else:
            share = percent(min(copy.likeness, LARGEST_SHARE))
            problem = f"{share} of its text and that of {first.file} are the same"
            remedy = "remove one of the two, or leave in each what only it says"
            yield _warning(Kind.NEAR_COPY, skill, None, str(first.file), problem, remedy)


def _name_findings(skills: Sequence[CheckedSkill]) -> Iterator[Finding]:
    """Yield skills of the same name, at the later one; copies are no trouble, because hosts use either."""
    first: dict[str, CheckedSkill] = {}
    for skill in skills:
        other = first.setdefault(skill.name, skill)
        if other.digest != skill.digest:
            problem = (
                f"the name {shown_value(skill.name)} is that of {other.file}, too, which is used instead"
            )
            remedy = "rename one of the two"
            yield _warning(Kind.SAME_NAME, skill, skill.name_line, skill.name, problem, remedy)


def _overlap_findings(
    skills: Sequence[CheckedSkill], known: set[tuple[int, int]], threshold: float, encoder: "Encoder"
) -> Iterator[Finding]:
    """Yield skills that take each other's queries; those without a description take none."""
    places = [place for place, skill in enumerate(skills) if skill.description]
    texts = [(skills[place].name, skills[place].description) for place in places]
    rows = encoder.encode_documents([f"{name}: {description}" for name, description in texts])
    position = {place: at for at, place in enumerate(places)}
    left_out = {
        (position[one], position[other]) for one, other in known if one in position and other in position
    }
    for overlap in find_overlaps(texts, rows, threshold=threshold, known=left_out):
        skill, other = skills[places[overlap.place]], skills[places[overlap.other]]
        more = f", and {overlap.more} more come as near" if overlap.more else ""
        problem = (
            f"the description is nearly that of {shown_value(other.name)} in {other.file} "
            f"({overlap.similarity:.2f}), so one takes the other's queries{more}"
        )
        remedy = "say in each what only it does and when not to use it, or make them one skill"
        value = str(other.file)
        yield _warning(Kind.OVERLAP, skill, skill.description_line, value, problem, remedy)


def _listing_findings(skills: Sequence[CheckedSkill], folders: Sequence[Path]) -> Iterator[Finding]:
    """Yield the hosts that do not show all descriptions."""
    entries = [Entry(skill.name, skill.description, skill.when_to_use, skill.file) for skill in skills]
    for host in HOSTS:
        listing = list_for(host, entries)
        if not listing.fits:
            yield Finding(
                Kind.LISTING,
                Severity.WARNING,
                folders[0] if len(folders) == 1 else Path(),
                None,
                f"{listing.needed}",
                _listing_problem(listing),
                f"shorten descriptions, remove skills, {host.remedy}, or let the agent search the library",
            )


def _listing_problem(listing: Listing) -> str:
    host = listing.host
    shown = f"about {listing.described:,} of {listing.skills:,} descriptions fit"
    if listing.listed < listing.skills:
        shown = f"even without descriptions only about {listing.listed:,} of {listing.skills:,} skills fit"
    return (
        f"the list of these skills has {listing.needed:,} characters, and {host.name} shows "
        f"{listing.ration:,} ({percent(host.share)} of {host.window:,} tokens): {shown}"
    )

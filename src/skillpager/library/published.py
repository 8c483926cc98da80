"""Skills in the library of a shared store: published by one host, offered by processes without their folders.

A process has the list of published skills in memory, asks for the version of the library every few seconds
while it is used, and reads what is new.
"""

import hashlib
import json
import logging
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.caches import LRUCache
from skillpager.errors import SkillError, StoreError
from skillpager.library.discovery import (
    FoundSkill,
    Keep,
    Published,
    is_user_only,
    stated_licence,
    stub_of,
)
from skillpager.library.filters import read_licence, recognise_name
from skillpager.types import PublishedSkill, Skill, SourceFile

if TYPE_CHECKING:
    from skillpager.stores.postgres import PostgresLibrary
    from skillpager.types import Store

logger = logging.getLogger(__name__)

# seconds between two looks at the version, and most seconds that a caller waits for one: a database that is
# away must not slow down what is answered from memory
POLL_SECONDS = 2.0
WAIT_SECONDS = 0.5
# characters of the texts of skills that stay in memory beside those of their indexes
MAX_KEPT_CHARS = 16 * 1024**2
# most bytes of a published skill's text: many times what a skill may have
MAX_CONTENT_BYTES = 256 * 1024**2
# a longer name has no place in an index of the database
MAX_NAME_BYTES = 1_000
# skills whose texts are read together
TEXT_BATCH = 200


class PublishedSkills:
    """The published skills of one library, mirrored in memory. Thread-safe.

    Args:
        library: The library in its store.

    Attributes:
        place: Name and address of the library, without user and password.
    """

    def __init__(self, library: "PostgresLibrary") -> None:
        self.place = library.place
        self._library = library
        self._version = (0, 0)
        self._by_name: dict[str, FoundSkill] = {}
        self._skills: list[FoundSkill] | None = None
        self._texts = LRUCache[tuple[str, int], Skill](
            MAX_KEPT_CHARS, lambda skill: sum(len(file.text) for file in skill.files)
        )
        self._turn = threading.Lock()
        self._due = 0.0
        self._failure: StoreError | None = None

    def skills(self) -> list[FoundSkill]:
        """Return the skills by name: the same list until one changes, for which the store is asked at times.

        While the store is away the list stays as it is.

        Raises:
            StoreError: The store cannot be read, and never could.
        """
        is_due = time.monotonic() >= self._due
        if self._skills is None and (is_due or self._failure is None):
            self._poll()
        elif is_due and not self._turn.locked():
            poll = threading.Thread(target=self._poll, daemon=True)
            poll.start()
            poll.join(WAIT_SECONDS)
        if self._skills is None:
            raise self._failure or StoreError(f"{self.place} has not been read yet.")
        return self._skills

    def _poll(self) -> None:
        """Read what has changed; that the store is away is logged once, until it is back."""
        with self._turn:
            try:
                self._refresh()
                self._failure = None
            except StoreError as error:
                if self._failure is None:
                    logger.warning("the list of published skills stays as it is for now: %s", error)
                self._failure = error
            self._due = time.monotonic() + POLL_SECONDS

    def _refresh(self) -> None:
        version, changed = self._library.changes(self._version)
        if self._skills is not None and version == self._version:
            return
        is_reset = version[0] != self._version[0] or version[1] < self._version[1]
        by_name = {} if is_reset else dict(self._by_name)
        for number, skill in changed:
            if isinstance(skill, str):
                by_name.pop(skill, None)
                continue
            by_name[skill.name] = FoundSkill(
                skill.name,
                skill.description,
                Path(f"{self._library.name}:{skill.name}"),
                None,
                None,
                skill.digest,
                skill.user_only,
                skill.stated_licence,
                published=Published(number, skill.licence, self),
            )
        if self._skills is None or by_name != self._by_name:
            self._by_name, self._skills = by_name, [by_name[name] for name in sorted(by_name)]
        self._version = version

    def find(self, name: str) -> FoundSkill | None:
        """Return the skill of this name; None if there is none.

        Raises:
            StoreError: The store cannot be read.
        """
        self.skills()
        return self._by_name.get(name)

    def read(self, name: str, scope: str) -> Skill:
        """Return the skill of this name with its text, in a scope as for `read_skill`.

        Raises:
            SkillError: It is not there any more, or damaged.
            StoreError: The store cannot be read.
        """
        found = self._by_name.get(name)
        version = found.published.version if found is not None and found.published is not None else 0
        skill = self._texts.get((name, version))
        if skill is None:
            content = self._library.contents([name]).get(name)
            if content is None:
                raise SkillError(f"The skill {name!r} is not in the library {self.place} any more.")
            version, data = content
            skill = self._texts.put((name, version), unpack_skill(data, f"{name!r} of {self.place}"))
        return replace(skill, files=skill.files[:1]) if scope == "body" else skill

    def bodies(self, skills: Sequence[FoundSkill]) -> Iterator[tuple[FoundSkill, str]]:
        """Yield each skill with the body of its SKILL.md, of those that are still what was found.

        A skill whose text is damaged is left out, with a warning.

        Raises:
            StoreError: The store cannot be read.
        """
        for start in range(0, len(skills), TEXT_BATCH):
            batch = skills[start : start + TEXT_BATCH]
            contents = self._library.contents([skill.name for skill in batch])
            for found in batch:  # the order of equal skills in a route is that of their words in the index
                if found.name not in contents:
                    continue
                try:
                    entry = unpack_skill(contents[found.name][1], f"{found.name!r} of {self.place}").files[0]
                except SkillError as error:
                    logger.warning("routing does not find %r: %s", found.name, error)
                    continue
                if entry.digest == found.digest:
                    yield found, entry.text[entry.body_start :]


def published_skills(store: "Store", library: str) -> PublishedSkills | None:
    """Return the skills of a store's library; None for a store of one machine, which has no libraries."""
    open_library = getattr(store, "library", None)
    return None if open_library is None else PublishedSkills(open_library(library))


def beside(
    in_folders: Sequence[FoundSkill], in_store: Sequence[FoundSkill], keep: Keep | None
) -> list[FoundSkill]:
    """Return the published skills that are wanted and not copies of skills in folders.

    One that has the name of a skill in a folder is shadowed by that, which its user has put there.
    """
    first: dict[str, Path] = {}
    for each in in_folders:
        if each.problem is None:
            first.setdefault(each.name, each.path)
    texts = {(each.name, each.digest) for each in in_folders}
    return [
        replace(each, shadowed_by=first[each.name]) if each.name in first else each
        for each in in_store
        if (each.name, each.digest) not in texts and (keep is None or keep(each))
    ]


class Publisher:
    """Publishes the skills of one run, each name once.

    Args:
        library: The library.
        found: Skills; those that are shadowed by others of their name are not published.

    Attributes:
        place: Name and address of the library, without user and password.
        names: The names that were published, or were there unchanged.
        changed: The number of them that are new or have changed.
    """

    def __init__(self, library: "PostgresLibrary", found: Sequence[FoundSkill] = ()) -> None:
        self.place = library.place
        self._library = library
        self._tops = {skill.path: skill.folder for skill in found}
        usable = (skill for skill in found if skill.problem is None and skill.shadowed_by is None)
        self._owners = {skill.name: skill.path for skill in usable}
        self._states = {skill.name: skill.state for skill in _present(library)}
        self.names: set[str] = set()
        self.changed = 0

    def publish(self, skill: Skill, path: Path, key: str) -> None:
        """Publish a skill whose index is stored, unless the library has it or a nearer skill has its name.

        Args:
            skill: The skill, all of its files.
            path: Its folder or file, or the address from which it was brought.
            key: Cache key of its index.

        Raises:
            SkillError: Its name cannot be stored.
            StoreError: The store cannot be written.
        """
        name = skill.name.encode(errors="replace")
        if len(name) > MAX_NAME_BYTES or "\0" in skill.name or name.decode() != skill.name:
            raise SkillError(
                f"{path} cannot be published: its name is longer than {MAX_NAME_BYTES:,} bytes, or not text. "
                "Give it another in its front matter."
            )
        if stub_of(skill.metadata) is not None or self._owners.setdefault(skill.name, path) != path:
            return
        self.names.add(skill.name)
        content = pack_skill(skill)
        stated = stated_licence(skill.metadata)
        if skill.root is None:  # brought from elsewhere: what the licence files here say is not about it
            licence = recognise_name(stated)
        else:
            licence = read_licence(path, stated, top=self._tops.get(path)).expression
        about = (
            *(skill.name, skill.files[0].digest, skill.description, is_user_only(skill.metadata)),
            *(stated, licence, key),
        )
        state = hashlib.sha256(json.dumps(about).encode() + content).hexdigest()
        if self._states.get(skill.name) != state:
            self.changed += self._library.publish(PublishedSkill(*about, state), content)

    def prune(self) -> list[str]:
        """Take what was in the library before and was not published now out of it; return the names.

        Raises:
            StoreError: The store cannot be written.
        """
        gone = sorted(self._states.keys() - self.names)
        return self._library.remove(gone) if gone else []


def _present(library: "PostgresLibrary") -> list[PublishedSkill]:
    _, changed = library.changes()
    return [skill for _, skill in changed if isinstance(skill, PublishedSkill)]


def pack_skill(skill: Skill) -> bytes:
    """Return a skill as bytes: compressed JSON of what its files and its front matter say."""
    form = {
        "name": skill.name,
        "description": skill.description,
        "metadata": dict(skill.metadata),
        "files": [[file.path, file.digest, file.body_start, file.text] for file in skill.files],
    }
    return zlib.compress(json.dumps(form, sort_keys=True).encode())


def unpack_skill(data: bytes, place: str) -> Skill:
    """Return the skill that `pack_skill` made bytes of; it has no folder.

    Raises:
        SkillError: They are not such bytes; `place` names it.
    """
    try:
        opened = zlib.decompressobj()
        form = json.loads(opened.decompress(data, MAX_CONTENT_BYTES))
        files = tuple(SourceFile(path, text, digest, start) for path, digest, start, text in form["files"])
        for file in files:
            if hashlib.sha256(file.text.encode()).hexdigest() != file.digest:
                raise ValueError(f"the digest of {file.path} differs")
        # warnings are for authors, and may name places on the publisher's disk
        return Skill(form["name"], form["description"], form["metadata"], files, None)
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise SkillError(
            f"The published skill {place} is damaged: {error}. Publish it again with `skillpager index`."
        ) from error

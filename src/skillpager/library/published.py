"""The skills of a shared store's library, as a process without their folders offers them.

The list lies in memory. A thread listens for changes and reads what is new; the version of the library, which
it asks for every few seconds as well, is what counts: a notification that is lost costs seconds.
"""

import hashlib
import json
import logging
import os
import threading
import weakref
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.caches import LRUCache
from skillpager.errors import SkillError, StoreError
from skillpager.library.discovery import FoundSkill, Keep, Published
from skillpager.types import PublishedSkill, Skill, SourceFile

if TYPE_CHECKING:
    from skillpager.library.routing.approximate import ApproximateSearch
    from skillpager.stores.postgres_library import PostgresLibrary
    from skillpager.types import Store

logger = logging.getLogger(__name__)

# Seconds between two looks at the version where no notification comes; and until a process begins to listen:
# a command that ends sooner needs no connection for it.
POLL_SECONDS = 2.0
# seconds in which further changes are gathered: many skills are often published one after the other
GATHER_SECONDS = 0.2
# characters of the texts of skills that stay in memory beside those of their indexes
MAX_KEPT_CHARS = 16 * 1024**2
# most bytes of a published skill's text: many times what a skill may have
MAX_CONTENT_BYTES = 256 * 1024**2


# the list of a library that was never read: one object, so that it is the same list each time
_NONE: list[FoundSkill] = []


class PublishedSkills:
    """The published skills of one library. Thread-safe.

    Args:
        library: The library in its store.
    """

    def __init__(self, library: "PostgresLibrary") -> None:
        self._library = library
        self._version = (0, 0)
        self._by_name: dict[str, FoundSkill] = {}
        self._skills: list[FoundSkill] | None = None
        self._texts = LRUCache[tuple[str, int], Skill](
            MAX_KEPT_CHARS, lambda skill: sum(len(file.text) for file in skill.files)
        )
        self._turn = threading.Lock()
        self._unroutable: set[tuple[str, str]] = set()  # names and digests
        self._failing = False
        self._follower: int | None = None  # the process whose thread follows: a fork leaves it behind
        self._stop = threading.Event()
        self._finalizer = weakref.finalize(self, self._stop.set)

    @property
    def place(self) -> str:
        """Name and address of the library, without user and password."""
        return self._library.place

    def skills(self, *, alone: bool = True) -> list[FoundSkill]:
        """Return the skills by name; the same list until one changes. The first call reads it.

        Args:
            alone: If the list was never read and cannot be, raise the error; else that is a warning.

        Raises:
            StoreError: The store cannot be read, and never could.
        """
        if self._skills is None:
            try:
                self.refresh()
            except StoreError as error:
                if alone:
                    raise
                self.fail(error)
                return _NONE
        if self._follower != os.getpid() and not self._stop.is_set():
            self._follower = os.getpid()
            arguments = (weakref.ref(self), self._library, self._stop)
            threading.Thread(target=_follow, args=arguments, name="skillpager-published", daemon=True).start()
        assert self._skills is not None
        return self._skills

    def has_changed(self, before: list[FoundSkill]) -> bool:
        """Return whether `skills` returns another list than before; nothing is read for it."""
        return self._skills is not None and self._skills is not before

    def refresh(self) -> None:
        """Read what has changed.

        Raises:
            StoreError: The store cannot be read.
        """
        with self._turn:
            version, changed = self._library.changes(self._version)
            if changed or self._skills is None or version != self._version:
                anew = version[0] != self._version[0] or version[1] < self._version[1]
                by_name = {} if anew else dict(self._by_name)
                for number, skill in changed:
                    if isinstance(skill, str):
                        by_name.pop(skill, None)
                    else:
                        by_name[skill.name] = self.found(number, skill)
                if self._skills is None or by_name != self._by_name:
                    self._by_name, self._skills = by_name, [by_name[name] for name in sorted(by_name)]
                self._version = version
            self._failing = False

    def found(self, version: int, skill: PublishedSkill) -> FoundSkill:
        """Return a skill that a version of the library brought, as lists and routes have it."""
        return FoundSkill(
            skill.name,
            skill.description,
            Path(f"{self._library.name}:{skill.name}"),
            None,
            None,
            skill.digest,
            skill.user_only,
            skill.stated_licence,
            published=Published(version, skill.licence, skill.key, self),
        )

    def find(self, name: str) -> FoundSkill | None:
        """Return the skill of this name, as the store has it now; None if it has none."""
        self.refresh()
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
            content = self._library.content(name)
            if content is None:
                raise SkillError(f"The skill {name!r} is not in the library {self.place} any more.")
            version, data = content
            skill = self._texts.put((name, version), unpack_skill(data, f"{name!r} of {self.place}"))
        return replace(skill, files=skill.files[:1]) if scope == "body" else skill

    def search(self) -> "ApproximateSearch":
        """Return what searches the library for candidates of a query, without its list."""
        from skillpager.library.routing.approximate import ApproximateSearch  # arrays

        return ApproximateSearch(self._library, self)

    def words(self, skills: Sequence[FoundSkill]) -> dict[str, bytes]:
        """Return the words of skills by name, of those that are still what was found.

        Words that are cut off, or of another release, are made anew of the skill's text. If that is damaged
        as well, the skill is missing, with a warning.

        Raises:
            StoreError: The store cannot be read.
        """
        from skillpager.library.routing.words import are_whole  # arrays

        stored = self._library.words([skill.name for skill in skills])
        found = {}
        for skill in skills:
            digest, words = stored.get(skill.name, ("", b""))
            if digest == skill.digest and (made := words if are_whole(words) else self._make_words(skill)):
                found[skill.name] = made
        return found

    def _make_words(self, found: FoundSkill) -> bytes | None:
        """Return the words of a skill, made of its text; None if that is damaged, or another by now."""
        from skillpager.library.routing.words import words_of  # arrays

        try:
            skill = self.read(found.name, "body")
        except SkillError as error:
            identity = found.name, found.digest
            log = logger.debug if identity in self._unroutable else logger.warning
            log("routing does not find %r: %s", found.name, error)
            self._unroutable.add(identity)  # it is asked for again after each change of the library
            return None
        entry = skill.files[0]
        if entry.digest != found.digest:
            return None
        return words_of(skill.name, skill.description, entry.text[entry.body_start :])

    def fail(self, error: Exception) -> None:
        """Note that the store cannot be followed: said once, until it can be read again."""
        said = "the list of published skills stays as it is for now: %s"
        if self._failing:
            logger.debug(said, error)
        elif isinstance(error, StoreError):
            logger.warning(said, error)
        else:
            logger.error(said, repr(error), exc_info=error)
        self._failing = True

    def close(self) -> None:
        """Stop listening; the list stays as it is."""
        self._finalizer()


def _follow(owner: "weakref.ref[PublishedSkills]", library: "PostgresLibrary", stop: threading.Event) -> None:
    """Keep a list in step while anybody has it.

    An unexpected exception is logged, and does not end the thread: without it no change would be seen again.
    """
    while not stop.wait(POLL_SECONDS):
        try:
            for _ in library.heard(POLL_SECONDS):
                if stop.is_set() or (skills := owner()) is None:
                    return
                skills.refresh()
                del skills
                if stop.wait(GATHER_SECONDS):
                    return
        except StoreError as error:
            logger.debug("nothing is heard of the library %s: %s", library.place, error)
        except Exception as fault:
            if (skills := owner()) is not None:
                skills.fail(fault)
        if stop.is_set() or (skills := owner()) is None:
            return
        try:
            skills.refresh()  # a standby sends no notifications, but has a version
        except Exception as error:
            skills.fail(error)
        del skills


def beside(
    in_folders: Sequence[FoundSkill], in_store: Sequence[FoundSkill], keep: Keep | None
) -> list[FoundSkill]:
    """Return the published skills that are wanted and no copies of skills in folders.

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


def published_skills(store: "Store", library: str) -> PublishedSkills | None:
    """Return the skills of a store's library; None for a store of one machine, which has no libraries."""
    open_library = getattr(store, "library", None)
    return None if open_library is None else PublishedSkills(open_library(library))


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

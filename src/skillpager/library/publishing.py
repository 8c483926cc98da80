"""Publish skills in a shared store's library, from which processes without their folders offer them."""

import hashlib
import json
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.errors import SkillError
from skillpager.library.discovery import USER_ONLY, FoundSkill, stated_licence, stub_of
from skillpager.library.licences import Licences, recognise_name
from skillpager.library.published import pack_skill
from skillpager.types import PublishedSkill, Skill

if TYPE_CHECKING:
    from skillpager.stores.postgres_library import PostgresLibrary

# a longer name has no place in an index of the database
MAX_NAME_BYTES = 1_000


class Publisher:
    """Publishes the skills of one run, each name once. Thread-safe.

    A skill that is published unchanged costs nothing but its reading.

    Args:
        library: The library.
        found: Skills of which those that are shadowed by others of their name are not published.

    Attributes:
        names: The names that were published, or were there unchanged.
        changed: How many of them are new or have changed.
    """

    def __init__(self, library: "PostgresLibrary", found: Sequence[FoundSkill] = ()) -> None:
        from skillpager.library.routing.approximate import skill_terms  # arrays

        self._library = library
        self._licences = Licences()
        self._tops = {skill.path: skill.folder for skill in found}
        usable = (skill for skill in found if skill.problem is None and skill.shadowed_by is None)
        self._owners = {skill.name: skill.path for skill in usable}
        library.make_searchable(skill_terms)
        _, there = library.changes()
        self._states = {skill.name: skill.state for _, skill in there if not isinstance(skill, str)}
        self._turn = threading.Lock()
        self.names: set[str] = set()
        self.changed = 0

    @property
    def place(self) -> str:
        """Name and address of the library, without user and password."""
        return self._library.place

    def publish(self, skill: Skill, path: Path, key: str) -> bool:
        """Publish a skill whose index is stored; return whether that changed the library.

        A stub, and a skill that another of the same name shadows, are passed over.

        Args:
            skill: The skill, all of its files.
            path: Its folder or file, or the address from which it was brought.
            key: Cache key of its index.

        Raises:
            SkillError: Its name cannot be stored.
            StoreError: The store cannot be written.
        """
        _check_name(skill.name, path)
        if stub_of(skill.metadata) is not None:
            return False
        with self._turn:
            if self._owners.setdefault(skill.name, path) != path:
                return False
            self.names.add(skill.name)
        from skillpager.library.routing.approximate import skill_terms  # arrays
        from skillpager.library.routing.words import words_of

        entry, content = skill.files[0], pack_skill(skill)
        stated = stated_licence(skill.metadata)
        words = words_of(skill.name, skill.description, entry.text[entry.body_start :])
        user_only = skill.metadata.get(USER_ONLY, "").strip().lower() == "true"
        licence = self._licence_of(skill, path, stated)
        told = (skill.name, entry.digest, skill.description, user_only, stated, licence, key)
        state = hashlib.sha256(json.dumps(told).encode() + words + content).hexdigest()
        if self._states.get(skill.name) == state:
            return False
        changed = self._library.publish(PublishedSkill(*told, state), words, content, skill_terms(words))
        with self._turn:
            self.changed += changed
        return changed

    def _licence_of(self, skill: Skill, path: Path, stated: str) -> str:
        if skill.root is None:  # brought from elsewhere: what the licence files here say is not about it
            return recognise_name(stated)
        return self._licences.read(path, stated, top=self._tops.get(path)).expression

    def prune(self) -> list[str]:
        """Take what was in the library before and was not published now out of it; return the names.

        Raises:
            StoreError: The store cannot be written.
        """
        gone = sorted(self._states.keys() - self.names)
        return self._library.remove(gone) if gone else []


def remove_published(library: "PostgresLibrary", names: Collection[str]) -> list[str]:
    """Take skills out of a library; return their names.

    Raises:
        SkillError: One of them is not in the library; nothing is removed.
        StoreError: The store cannot be written.
    """
    _, there = library.changes()
    known = {skill.name for _, skill in there if not isinstance(skill, str)}
    if missing := [name for name in names if name not in known]:
        from skillpager.library.discovery import similar_names

        hint = similar_names(missing[0], known) or f"it has {len(known)} skills."
        raise SkillError(f"There is no skill {missing[0]!r} in the library {library.place}: {hint}")
    return library.remove(list(names))


def _check_name(name: str, path: Path) -> None:
    try:
        is_long = len(name.encode()) > MAX_NAME_BYTES
    except UnicodeEncodeError:
        is_long = True
    if is_long:
        raise SkillError(
            f"{path} cannot be published: its name is longer than {MAX_NAME_BYTES:,} bytes, or no text. "
            "Give it another in its front matter."
        )

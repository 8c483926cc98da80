"""Skills in the library of a shared store: one host publishes them, and others offer them without folders."""

import hashlib
import json
import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.caches import LRUCache
from skillpager.display_text import is_plain
from skillpager.errors import SkillError, StoreError
from skillpager.library.discovery import FoundSkill, Published, is_user_only, stated_licence, stub_of
from skillpager.library.filters import read_licence, recognise_name
from skillpager.parsing.skill import related, safe_name
from skillpager.types import PublishedSkill, Skill, SourceFile

if TYPE_CHECKING:
    from skillpager.stores.postgres import PostgresLibrary
    from skillpager.types import Store

logger = logging.getLogger(__name__)

# characters of the texts of skills that stay in memory, for pages while the store is away
MAX_KEPT_CHARS = 16 * 1024**2
# most bytes of a published skill's text: many times what a skill may have
MAX_CONTENT_BYTES = 256 * 1024**2


class PublishedSkills:
    """The published skills of one library, with their list in memory."""

    def __init__(self, library: "PostgresLibrary") -> None:
        self.place = library.place  # name and address, without user and password
        self._library = library
        self._version: tuple[int, int] | None = None
        self._by_name: dict[str, FoundSkill] = {}
        self._texts = LRUCache[tuple[str, int], Skill](
            MAX_KEPT_CHARS, lambda skill: sum(len(file.text) for file in skill.files)
        )
        self._is_away = False

    def skills(self) -> list[FoundSkill]:
        """Return the skills by name, as the store has them now; while it is away, as it had them last.

        One thread at a time may call it. That the store is away is logged once, and a `StoreError` if it
        always was.
        """
        try:
            self._refresh()
            self._is_away = False
        except StoreError as error:
            if not self._is_away:
                logger.warning("the list of published skills stays as it is for now: %s", error)
            self._is_away = True
            if self._version is None:
                raise
        return [self._by_name[name] for name in sorted(self._by_name)]

    def _refresh(self) -> None:
        before = self._version or (0, 0)
        version, changed = self._library.changes(before)
        is_reset = version[0] != before[0] or version[1] < before[1]
        by_name = {} if is_reset else dict(self._by_name)
        for number, skill in changed:
            name = skill if isinstance(skill, str) else skill.name
            # whoever may write to the database may not write into sentences of ours
            if isinstance(skill, str) or safe_name(name, name) != name:
                by_name.pop(name, None)
                continue
            path = Path(f"{self._library.name}:{name}")
            about = skill.digest, skill.user_only, skill.stated_licence
            origin = Published(number, skill.licence, partial(self._read, name, number))
            by_name[name] = FoundSkill(name, skill.description, path, None, None, *about, published=origin)
        self._by_name, self._version = by_name, version

    def _read(self, name: str, version: int, scope: str) -> Skill:
        skill = self._texts.get((name, version))
        if skill is None:
            content = self._library.contents([name]).get(name)
            if content is None:
                raise SkillError(f"The skill {name!r} is not in the library {self.place} any more.")
            version, data = content  # perhaps a later one
            skill = self._texts.put((name, version), unpack_skill(data, f"{name!r} of {self.place}"))
        return replace(skill, files=skill.files[:1]) if scope == "body" else skill


def open_library(store: "Store", name: str) -> "PostgresLibrary | None":
    """Return the library of this name in a store; None for a store of one machine, which has no libraries."""
    opened: Callable[[str], PostgresLibrary] | None = getattr(store, "library", None)
    return None if opened is None else opened(name)


def published_skills(store: "Store", library: str) -> PublishedSkills | None:
    """Return the skills of a store's library; None for a store of one machine."""
    opened = open_library(store, library)
    return None if opened is None else PublishedSkills(opened)


class Publisher:
    """Publishes the skills of one run, each name once: of several in `found` only the nearest.

    `names` were published, or were there unchanged; `changed` of them are new or have changed. Methods raise
    `StoreError` if the store cannot be written.
    """

    def __init__(self, library: "PostgresLibrary", found: Sequence[FoundSkill] = ()) -> None:
        self.place = library.place
        self._library = library
        usable = (skill for skill in found if skill.problem is None and skill.shadowed_by is None)
        self._owners = {skill.name: skill.path for skill in usable}
        _, present = library.changes()
        self._states = {skill.name: skill.state for _, skill in present if isinstance(skill, PublishedSkill)}
        self.names: set[str] = set()
        self.changed = 0

    def publish(self, skill: Skill, path: Path, key: str) -> None:
        """Publish a skill whose index is stored, unless the library has it or a nearer skill has its name.

        `path` is its folder or file, or the address from which it was brought; `key` that of its index.
        """
        if stub_of(skill.metadata) is not None or self._owners.setdefault(skill.name, path) != path:
            return
        self.names.add(skill.name)
        content = pack_skill(skill)
        stated = stated_licence(skill.metadata)
        # of a skill that was brought from elsewhere the manifests here say nothing
        licence = recognise_name(stated) if skill.root is None else read_licence(path, stated)
        digest, user_only = skill.files[0].digest, is_user_only(skill.metadata)
        about = skill.name, digest, skill.description, user_only, stated, licence, key
        state = hashlib.sha256(json.dumps(about).encode() + content).hexdigest()
        if self._states.get(skill.name) != state:
            self.changed += self._library.publish(PublishedSkill(*about, state), content)

    def prune(self) -> list[str]:
        """Take what was in the library before and was not published now out of it; return the names."""
        gone = sorted(self._states.keys() - self.names)
        return self._library.remove(gone) if gone else []


def pack_skill(skill: Skill) -> bytes:
    """Return a skill as compressed JSON."""
    form = {
        "name": skill.name,
        "description": skill.description,
        "metadata": dict(skill.metadata),
        "files": [[file.path, file.digest, file.body_start, file.text] for file in skill.files],
    }
    return zlib.compress(json.dumps(form, sort_keys=True).encode())


def unpack_skill(data: bytes, place: str) -> Skill:
    """Return the skill in bytes of `pack_skill`; in errors `place` names it."""
    try:
        opened = zlib.decompressobj()
        form = json.loads(opened.decompress(data, MAX_CONTENT_BYTES))
        files = tuple(SourceFile(path, text, digest, start) for path, digest, start, text in form["files"])
        for file in files:
            if hashlib.sha256(file.text.encode()).hexdigest() != file.digest or not is_plain(file.path):
                raise ValueError(f"the digest of {file.path!r} differs, or its name breaks a line")
        # warnings are for authors, and may name places on the publisher's disk
        name = safe_name(form["name"], form["name"])
        return Skill(name, form["description"], form["metadata"], related(files), None)
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise SkillError(
            f"The published skill {place} is damaged: {error}. Publish it again with `skillpager index`."
        ) from error

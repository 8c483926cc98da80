"""The skills of many folders behind one object, by name."""

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.errors import SettingsError, StoreError, UnknownSkillError
from skillpager.library.agent_folders import search_folders
from skillpager.library.discovery import (
    USER_ONLY,
    FoundSkill,
    Keep,
    Progress,
    Reading,
    discover,
    similar_names,
    skill_faults,
)
from skillpager.library.licences import Licences
from skillpager.library.routing.routes import DEFAULT_ROUTED
from skillpager.parsing.skill import ENTRY_FILE
from skillpager.settings import cache_folder

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from skillpager.library.library_page import LibraryPage, LibraryPageOptions
    from skillpager.library.published import PublishedSkills
    from skillpager.library.routing.catalog import Catalog
    from skillpager.library.routing.library_words import LibraryWords
    from skillpager.library.routing.routes import Route, RoutedSkill
    from skillpager.pager import SkillPager
    from skillpager.types import SkillIndex

logger = logging.getLogger(__name__)

# seconds after which a library looks for new skills again; at least so many times as long as a search takes
RESCAN_SECONDS = 2.0
RESCAN_FACTOR = 20.0
# further ones, of which some take the places of folded copies
SPARE_ROUTED = 10


class Library:
    """The skills that a server offers, by name. A name is that of a discovered skill, never a path.

    Thread-safe. New, removed and renamed skills are noticed after at most `RESCAN_SECONDS`, in a library of
    thousands after 20 times as long as a search takes; a new one whose folder has its name, directly in a
    search folder, at once. One thread searches, and reads what changed; meanwhile the others get the result
    of the search before.

    Skills that are published in the pager's store are offered beside those of folders, and paged from what is
    stored, without any folder here. Of two of one name that in a folder is used.

    Args:
        pager: Indexes and pages the skills; or makes the pager when it is first needed.
        folders: Folders to search, nearest first; default: those of the pager's settings and the
            conventional ones.
        cache: Folder of the index store, if the pager is to be made later than the first search.
        keep: Returns whether a skill is offered, such as a `SkillFilter`; default: every skill is.
        published: Name of the library in the pager's store whose skills are offered, too; None for none.
    """

    def __init__(
        self,
        pager: "SkillPager | Callable[[], SkillPager]",
        folders: Sequence[Path] | None = None,
        *,
        cache: Path | None = None,
        keep: Keep | None = None,
        published: str | None = None,
    ) -> None:
        self._pager = pager
        self._library = published
        self._cache = cache
        self.keep = keep
        self._licences = Licences()
        self._named = None if folders is None else tuple(folders)
        self.folders = self._search_folders()
        self._searching = threading.Lock()
        self._searched = -RESCAN_SECONDS
        self._took = 0.0
        self._found: list[FoundSkill] | None = None
        self._in_folders: list[FoundSkill] = []
        self._in_store: list[FoundSkill] = []
        self._usable: dict[str, FoundSkill] = {}
        self._skills: list[FoundSkill] = []
        self._readings: dict[Path, Reading] = {}
        self._said_unstored = False
        # names of folders that turned out to contain no skill of that name
        self._misnamed: set[str] = set()

    @cached_property
    def pager(self) -> "SkillPager":
        """Indexes and pages the skills."""
        return self._pager() if callable(self._pager) else self._pager

    def close(self) -> None:
        """Close the store; the library can still be used and opens it again."""
        with self._searching:
            self.__dict__.pop("_published", None)
            self._found = None  # the next use reads the list again
        if "pager" in self.__dict__:
            self.pager.close()

    def found(self, *, fresh: bool = False) -> list[FoundSkill]:
        """Return every found skill, shadowed and unreadable ones included.

        Args:
            fresh: Search again, even if the last search is less than `RESCAN_SECONDS` ago.
        """
        asked = time.monotonic()
        found = self._found
        if found is None or fresh:
            with self._searching:
                # a search that began after the call will do
                return list(self._search() if self._found is None or self._searched < asked else self._found)
        pause = max(RESCAN_SECONDS, RESCAN_FACTOR * self._took)
        if asked - self._searched >= pause and self._searching.acquire(blocking=False):
            try:
                if asked - self._searched >= pause:
                    found = self._search()
            finally:
                self._searching.release()
        if self._published is not None and self._published.has_changed(self._in_store):
            with self._searching:
                found = self._join(self._in_folders)
        return list(found)

    def _search_folders(self) -> tuple[Path, ...]:
        """Return the folders to search; plugins come and go while a server runs."""
        return tuple(search_folders(self.pager.settings.skills_dir)) if self._named is None else self._named

    def _search(self) -> list[FoundSkill]:
        started = time.monotonic()
        self.folders = self._search_folders()
        if self._found is None:
            self._readings = self._stored_readings()
        before = dict(self._readings)
        found = discover(self.folders, self._readings, keep=self.keep)
        self._store_readings(before)
        found = self._join(found)
        self._searched = started
        self._misnamed.clear()
        # the first search reads every skill, and says nothing about the next
        self._took = 0.0 if not before else time.monotonic() - started
        return found

    def _join(self, in_folders: list[FoundSkill]) -> list[FoundSkill]:
        """Return the skills of folders, and behind them the published ones that are no copies of them."""
        in_store = self._in_store
        if self._published is not None:
            in_store = self._published.skills(alone=not in_folders)
        if self._found is not None and in_folders == self._in_folders and in_store is self._in_store:
            return self._found
        found = in_folders
        if in_store:
            from skillpager.library.published import beside

            found = in_folders + beside(in_folders, in_store, self.keep)
        usable = {each.name: each for each in found if each.problem is None and each.shadowed_by is None}
        skills = sorted(usable.values(), key=lambda each: each.name)
        if skills != self._skills:  # routing takes another list for other skills
            self._skills = skills
        self._found, self._usable = found, usable
        self._in_folders, self._in_store = in_folders, in_store
        return found

    def _stored_readings(self) -> dict[Path, Reading]:
        """Return what earlier processes read of the folders."""
        try:
            return {} if self._catalog is None else self._catalog.readings(self.folders)
        except StoreError as error:  # a search stores what it reads, and warns if that fails, too
            logger.debug("every skill is read again: %s", error)
            return {}

    def _store_readings(self, before: Mapping[Path, Reading]) -> None:
        """Store what a search read, for later processes."""
        now = self._readings
        changed = {path: reading for path, reading in now.items() if before.get(path) is not reading}
        # a search from another folder may reach what this one does not
        gone = [path for path in before.keys() - now.keys() if not os.path.lexists(path / ENTRY_FILE)]
        if self._catalog is not None and (changed or gone):
            try:
                self._catalog.save_readings(changed, gone)
            except StoreError as error:
                # a search every few seconds may fail in the same way
                log = logger.debug if self._said_unstored else logger.warning
                log("what was read of skills is not stored, and is read again by each process: %s", error)
                self._said_unstored = True

    def skills(self, *, for_model: bool = False) -> list[FoundSkill]:
        """Return the skills that can be paged, sorted by name.

        Args:
            for_model: Leave out those that only the user may start.
        """
        self.found()
        return [skill for skill in self._skills if not (for_model and skill.user_only)]

    def skill(self, name: str, *, for_model: bool = False) -> FoundSkill:
        """Return the skill of this name.

        Args:
            name: Its name.
            for_model: Refuse a skill that only the user may start.

        Raises:
            UnknownSkillError: There is none, it cannot be read, or it is not for a model; if there is none,
                the message lists similar names.
        """
        found = self.found()
        if name not in self._usable and self._may_be_new(name):
            found = self.found(fresh=True)
            if name not in self._usable:
                self._misnamed.add(name)
        if skill := self._usable.get(name):
            if for_model and skill.user_only:
                raise UnknownSkillError(
                    f"The skill {name!r} is for the user to start: its front matter says "
                    f"`{USER_ONLY}: true`. Ask the user to start it, or do the task without it."
                )
            return skill
        for each in found:
            if each.name == name and each.problem:
                raise UnknownSkillError(f"The skill {name!r} cannot be read: {each.problem}")
        known = [name for name, each in self._usable.items() if not (for_model and each.user_only)]
        hint = similar_names(name, known) or "ask for the list of skills."
        raise UnknownSkillError(f"There is no skill named {name!r} among {len(known)}: {hint}")

    def index(self, name: str, *, scope: str | None = None, for_model: bool = False) -> "SkillIndex":
        """Return the index of the skill of this name; `for_model` as for `skill`.

        Raises:
            UnknownSkillError: As for `skill`.
            SkillPagerError: As for `SkillPager.index`.
        """
        skill = self.skill(name, for_model=for_model)
        scope = scope or self.pager.settings.scope
        with skill_faults(skill.path):
            return self.pager.index(skill.source(scope), scope=scope)

    def route(
        self,
        query: str,
        *,
        k: int = DEFAULT_ROUTED,
        for_model: bool = False,
        progress: Progress | None = None,
    ) -> "Route":
        """Return the `k` skills that a query most likely needs, each with its chance and reasons.

        Shadowed and unreadable skills are left out, and copies are folded to the best of them; those that
        only the user may start are marked. The first route reads all skills, and the catalog keeps their
        words; later ones read what is new. No encoder is needed.

        Args:
            query: The task that the agent is about to do.
            k: Number of skills, at most.
            for_model: Leave out skills that only the user may start.
            progress: Called with the number of skills that were read and of all, while they are read.

        Raises:
            SettingsError: The query is empty, or `k` is below 1.
        """
        if not query.strip():
            raise SettingsError("The query is empty: say in a sentence what the agent is about to do.")
        if k < 1:
            raise SettingsError(f"k is {k}: ask for at least one skill.")
        from skillpager.library.copies import fold_route
        from skillpager.library.routing.router import (  # arrays: a list of names needs none
            load_router,
            route_query,
        )
        from skillpager.library.routing.routes import for_models

        self.found()
        skills = self._skills
        words = self._words.search(skills, progress)
        hidden = sum(skill.user_only for skill in skills) if for_model else 0
        found = route_query(words, skills, query, k=k + hidden + SPARE_ROUTED, model=load_router())
        found = for_models(found, k + SPARE_ROUTED) if hidden else found
        folded = fold_route(found, k=k)
        return replace(folded, skills=tuple(map(self._with_licence, folded.skills)))

    def _with_licence(self, routed: "RoutedSkill") -> "RoutedSkill":
        return replace(routed, licence=self._licences.of(routed.skill))

    def prepare(self, progress: Progress | None = None) -> None:
        """Bring everything up to date that `route` needs, so that the next route is fast.

        Args:
            progress: Called with the number of skills that were read and of all.
        """
        self.found()
        self._words.search(self._skills, progress)

    @cached_property
    def _words(self) -> "LibraryWords":
        """The words of the skills, in an index for these folders and this filter."""
        from skillpager.library.routing.library_words import LibraryWords
        from skillpager.library.routing.word_index import WordIndex

        if self._catalog is None:
            return LibraryWords(WordIndex(None))
        folders = sorted({str(skill.folder.absolute()) for skill in self._skills if skill.folder})
        keep = repr(self.keep) if is_dataclass(self.keep) else type(self.keep).__qualname__
        return LibraryWords(WordIndex(self._catalog.words_of((folders, self.place, keep))))

    @cached_property
    def _published(self) -> "PublishedSkills | None":
        """The skills of the store's library; None if it has none, or they are not wanted."""
        if self._library is None:
            return None
        from skillpager.library.published import published_skills

        return published_skills(self.pager.store, self._library)

    @property
    def place(self) -> str:
        """Name and address of the store's library; empty without one."""
        return "" if self._published is None else self._published.place

    @cached_property
    def _catalog(self) -> "Catalog | None":
        """The catalog beside the index store, or in the cache; None for a store that keeps nothing."""
        from skillpager.library.routing.catalog import Catalog

        folder = self._cache
        if folder is None:
            from skillpager.stores.sqlite import SqliteStore

            store = self.pager.store
            if isinstance(store, SqliteStore):
                folder = store.path.parent
            elif self._published is not None:  # the store is on another host
                folder = cache_folder(self.pager.settings)
        return None if folder is None else Catalog(folder)

    def page(self, query: str, **options: "Unpack[LibraryPageOptions]") -> "LibraryPage":
        """Return one page from the skills that a query needs, each part under its skill's name.

        If one skill suffices it is that skill's page. If none fits, the text says so and names the nearest.
        A skill that cannot be read, or that only the user may start, is passed over and named in `refused`.

        Args:
            query: The task that the agent is about to do; it may consist of several.
            **options: See `LibraryPageOptions`.

        Raises:
            SettingsError: The query is empty, or an option is not valid.
            MissingExtraError: The strategy needs a package that is not installed.
            StrategyError: The strategy's model or endpoint fails.
            TypeError: An option is unknown.
        """
        from skillpager.library.page_maker import make_library_page

        progress = options.get("progress")
        return make_library_page(
            self.pager, lambda k: self.route(query, k=k, progress=progress), query, options
        )

    def _may_be_new(self, name: str) -> bool:
        """Return whether a search folder has a skill folder of this name that no search has read.

        A name that nobody has costs a look at each search folder, not a search.
        """
        if Path(name).name != name or name == ".." or name in self._misnamed:
            return False
        places = [folder / name for folder in self.folders]
        try:
            return any(place not in self._readings and (place / ENTRY_FILE).is_file() for place in places)
        except OSError:  # such as a name that is too long
            return False

"""The skills of many folders behind one object, by name."""

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.errors import SettingsError, StoreError, UnknownSkillError
from skillpager.files import ENTRY_FILE
from skillpager.library import discovery
from skillpager.library.discovery import FoundSkill, Keep, Progress, Reading, no_progress
from skillpager.library.filters import licence_of
from skillpager.library.routing.routes import DEFAULT_ROUTED
from skillpager.settings import INDEX_FOLDER

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from skillpager.library.library_page import LibraryPage, LibraryPageOptions
    from skillpager.library.published import PublishedSkills
    from skillpager.library.routing.catalog import Catalog
    from skillpager.library.routing.routes import Route
    from skillpager.library.routing.word_index import WordIndex
    from skillpager.pager import SkillPager
    from skillpager.types import SkillIndex

logger = logging.getLogger(__name__)

# seconds after which a library looks for new skills again; at least so many times as long as a search takes
RESCAN_SECONDS = 2.0
RESCAN_FACTOR = 20.0
# further ones, of which some take the places of folded copies
SPARE_ROUTED = 10


class Library:
    """The skills of folders and of a store's library, by name. A name is never a path.

    Thread-safe. New, removed and renamed skills are noticed after `RESCAN_SECONDS`, or after `RESCAN_FACTOR`
    times as long as a search takes. One thread searches; the others get the result of the search before.

    Args:
        pager: Indexes and pages the skills; or makes the pager when it is first needed.
        folders: Folders to search, nearest first, or one; or returns those of each search, which need not be
            there; default: those of the pager's settings and the conventional ones.
        cache: Folder of the index store, if the pager is to be made later than the first search.
        keep: Returns whether a skill is offered, such as a `SkillFilter`; default: every skill is.
        published: Name of the library in the pager's store whose skills are offered behind those of folders.

    Raises:
        SkillError: A path in `folders` is not a folder.
    """

    def __init__(
        self,
        pager: "SkillPager | Callable[[], SkillPager]",
        folders: Callable[[], Sequence[Path]] | Sequence[Path | str] | Path | str | None = None,
        *,
        cache: Path | None = None,
        keep: Keep | None = None,
        published: str | None = None,
    ) -> None:
        self._pager = pager
        self._library = published
        self._cache = cache
        self.keep = keep
        if folders is None or callable(folders):
            self._folders = folders or (lambda: discovery.search_folders(self.pager.settings.skills_dir))
        else:
            given = [folders] if isinstance(folders, (str, Path)) else folders
            named = discovery.check_folders(list(map(Path, given)))
            self._folders = lambda: named
        self._searching = threading.Lock()
        self._searched, self._took = -math.inf, 0.0
        self._readings: dict[Path, Reading] = {}
        # All that were found, without copies; and those that can be paged, by name. Replaced as a whole, so
        # that threads need no lock.
        self._listing: tuple[list[FoundSkill], dict[str, FoundSkill]] | None = None

    @cached_property
    def pager(self) -> "SkillPager":
        """Indexes and pages the skills."""
        return self._pager() if callable(self._pager) else self._pager

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders to search; plugins come and go while a server runs."""
        return tuple(self._folders())

    def close(self) -> None:
        """Close the store; the library can still be used and opens it again."""
        self.__dict__.pop("_published", None)
        self._searched = -math.inf  # the next use reads the list again
        if "pager" in self.__dict__:
            self.pager.close()

    def found(self, *, fresh: bool = False) -> list[FoundSkill]:
        """Return every found skill, shadowed and unreadable ones, too; `fresh` searches again."""
        return list(self._listed(fresh=fresh)[0])

    def _listed(self, *, fresh: bool = False) -> tuple[list[FoundSkill], dict[str, FoundSkill]]:
        """Return what the library has; threads wait for a search that runs only if there is no result yet."""
        listing = self._listing
        must_wait = fresh or listing is None
        if (must_wait or self._is_due()) and self._searching.acquire(blocking=must_wait):
            try:
                if fresh or self._is_due():
                    self._search()
            finally:
                self._searching.release()
        assert self._listing is not None
        return self._listing

    def _is_due(self) -> bool:
        return time.monotonic() - self._searched >= max(RESCAN_SECONDS, RESCAN_FACTOR * self._took)

    def _search(self) -> None:
        started = time.monotonic()
        found = self._search_folders()
        if self._published is not None:
            try:
                found += self._published.skills()
            except StoreError:  # it is logged
                if not found:
                    raise
        found = discovery.sort_out(found, self.keep)
        usable = [each for each in found if each.problem is None and each.shadowed_by is None]
        usable.sort(key=lambda each: each.name)
        # the first search may have read every skill, and says nothing about the next
        self._took = time.monotonic() - started if self._listing is not None else 0.0
        self._searched = started
        self._listing = found, {each.name: each for each in usable}

    def _search_folders(self) -> list[FoundSkill]:
        """Return the skills of folders; the catalog keeps them for later processes."""
        catalog = self._catalog
        if self._listing is None and catalog is not None:
            self._readings = catalog.readings()
        before = dict(self._readings)
        found = list(discovery.read_folders(self.folders, self._readings))
        changed = {path: each for path, each in self._readings.items() if before.get(path) is not each}
        # a search of other folders may reach what this one does not
        gone = [path for path in before.keys() - self._readings if not os.path.lexists(path / ENTRY_FILE)]
        try:
            if catalog is not None and (changed or gone):
                catalog.save_readings(changed, gone)
        except OSError as error:
            logger.warning(
                "what was read of skills is not stored, and is read again by each process: %s", error
            )
            self._catalog = None
        return found

    def skills(self, *, for_model: bool = False) -> list[FoundSkill]:
        """Return the skills that can be paged, by name; `for_model` without those that only users start."""
        return [skill for skill in self._listed()[1].values() if not (for_model and skill.user_only)]

    def skill(self, name: str, *, for_model: bool = False) -> FoundSkill:
        """Return the skill of this name; `for_model` refuses one that only the user may start.

        An `UnknownSkillError` says that there is none, it cannot be read, or it is not for a model.
        """
        found, usable = self._listed()
        if skill := usable.get(name):
            if for_model and skill.user_only:
                raise UnknownSkillError(
                    f"The skill {name!r} is for the user to start: its front matter says "
                    f"`{discovery.USER_ONLY}: true`. Ask the user to start it, or do the task without it."
                )
            return skill
        for each in found:
            if each.name == name and each.problem:
                raise UnknownSkillError(f"The skill {name!r} cannot be read: {each.problem}")
        known = [name for name, each in usable.items() if not (for_model and each.user_only)]
        hint = discovery.similar_names(name, known) or "ask for the list of skills."
        raise UnknownSkillError(f"There is no skill named {name!r} among {len(known)}: {hint}")

    def index(
        self, name: str, *, scope: str | None = None, for_model: bool = False, query: str = ""
    ) -> "SkillIndex":
        """Return the index of the skill of this name; see `skill` and `SkillPager.index`."""
        skill = self.skill(name, for_model=for_model)
        scope = scope or self.pager.settings.scope
        with discovery.skill_faults(skill.path):
            return self.pager.index(skill.source(scope), scope=scope, query=query)

    def route(
        self,
        query: str,
        *,
        k: int = DEFAULT_ROUTED,
        for_model: bool = False,
        progress: Progress = no_progress,
    ) -> "Route":
        """Return the `k` skills that a query most likely needs, each with its chance and reasons.

        Shadowed and unreadable skills are left out, and copies are folded to the best of them. The first
        route reads all skills, and the catalog keeps their words; later ones read what is new.

        Args:
            query: The task that the agent is about to do.
            k: Number of skills, at most.
            for_model: Leave out skills that only the user may start.
            progress: Called with the number of skills that were read and of all, while they are read.

        Raises:
            SettingsError: The query is empty, or `k` is below 1.
        """
        # arrays, which a list of names needs not
        from skillpager.library.copies import fold_route
        from skillpager.library.routing.router import load_router, route_query
        from skillpager.library.routing.routes import for_models
        from skillpager.library.routing.word_index import index_faults
        from skillpager.pager import check_query

        check_query(query)
        if k < 1:
            raise SettingsError(f"k is {k}: ask for at least one skill.")
        skills = self.skills()
        words = self._words.search_skills(skills, progress)
        hidden = sum(skill.user_only for skill in skills) if for_model else 0
        with index_faults(self._words.folder):
            found = route_query(words, skills, query, k=k + hidden + SPARE_ROUTED, model=load_router())
        folded = fold_route(for_models(found, k + SPARE_ROUTED) if hidden else found, k=k)
        licensed = (replace(routed, licence=licence_of(routed.skill)) for routed in folded.skills)
        return replace(folded, skills=tuple(licensed))

    def prepare(self, progress: Progress = no_progress) -> None:
        """Read what `route` needs, so that the next one is fast; `progress` is called as by `route`."""
        self._words.search_skills(self.skills(), progress)

    @cached_property
    def _words(self) -> "WordIndex":
        """The words of the skills, in an index for these folders and this filter."""
        from skillpager.library.routing.word_index import WordIndex

        if self._catalog is None:
            return WordIndex(None)
        folders = sorted({str(skill.folder.absolute()) for skill in self.skills() if skill.folder})
        keep = repr(self.keep) if is_dataclass(self.keep) else type(self.keep).__qualname__
        return WordIndex(self._catalog.words_of((folders, self.place, keep)))

    @cached_property
    def _published(self) -> "PublishedSkills | None":
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
        from skillpager.stores.sqlite import SqliteStore

        if self._cache is not None:
            return Catalog(self._cache)
        if isinstance(self.pager.store, SqliteStore):
            return Catalog(self.pager.store.path.parent)
        # the store is on another host
        folder = self.pager.settings.cache_dir / INDEX_FOLDER
        return Catalog(folder) if self._published is not None else None

    def page(self, query: str, **options: "Unpack[LibraryPageOptions]") -> "LibraryPage":
        """Return one page from the skills that a query needs, each part under its skill's name.

        If one skill suffices it is that skill's page. If none fits, the text says so and names the nearest.
        The first skill gets what the budget allows, the next what remains.

        Args:
            query: The task that the agent is about to do; it may consist of several.
            **options: See `LibraryPageOptions`.

        Raises:
            SettingsError: The query is empty, or an option is not valid.
            MissingExtraError: The strategy needs a package that is not installed.
            StrategyError: The strategy's model or endpoint fails.
            TypeError: An option is unknown.
        """
        from skillpager.library.library_page import make_library_page

        return make_library_page(self.pager, self.route, query, options)

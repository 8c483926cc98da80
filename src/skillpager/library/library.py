"""The skills of many folders behind one object, by name."""

import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from skillpager.errors import SettingsError, UnknownSkillError
from skillpager.folders.agents import search_folders
from skillpager.library.discovery import FoundSkill, Reading, discover, similar_names, skill_faults
from skillpager.parsing.skill import ENTRY_FILE

if TYPE_CHECKING:
    from skillpager.library.routes import Route
    from skillpager.library.routing import Router
    from skillpager.pager import SkillPager
    from skillpager.types import SkillIndex

# seconds after which a library looks for new skills again
RESCAN_SECONDS = 2.0
# skills of a route
DEFAULT_ROUTED = 10


class Library:
    """The skills that a server offers, by name. A name is that of a discovered skill, never a path.

    Thread-safe. New, removed and renamed skills are noticed after at most `RESCAN_SECONDS`; a new one whose
    folder has its name, directly in a search folder, at once. One thread searches, and reads what changed;
    meanwhile the others get the result of the search before.

    Args:
        pager: Indexes and pages the skills; or makes the pager when it is first needed.
        folders: Folders to search, nearest first; default: those of the pager's settings and the
            conventional ones.
    """

    def __init__(
        self, pager: "SkillPager | Callable[[], SkillPager]", folders: Sequence[Path] | None = None
    ) -> None:
        self._pager = pager
        self._named = None if folders is None else tuple(folders)
        self.folders = self._search_folders()
        self._searching = threading.Lock()
        self._searched = -RESCAN_SECONDS
        self._found: list[FoundSkill] | None = None
        self._usable: dict[str, FoundSkill] = {}
        self._readings: dict[Path, Reading] = {}
        # names of folders that turned out to contain no skill of that name
        self._misnamed: set[str] = set()
        self._routing = threading.Lock()
        self._router: Router | None = None

    @cached_property
    def pager(self) -> "SkillPager":
        """Indexes and pages the skills."""
        return self._pager() if callable(self._pager) else self._pager

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
        if asked - self._searched >= RESCAN_SECONDS and self._searching.acquire(blocking=False):
            try:
                if asked - self._searched >= RESCAN_SECONDS:
                    found = self._search()
            finally:
                self._searching.release()
        return list(found)

    def _search_folders(self) -> tuple[Path, ...]:
        """Return the folders to search; plugins come and go while a server runs."""
        return tuple(search_folders(self.pager.settings.skills_dir)) if self._named is None else self._named

    def _search(self) -> list[FoundSkill]:
        started = time.monotonic()
        self.folders = self._search_folders()
        found = discover(self.folders, self._readings)
        usable = {each.name: each for each in found if each.problem is None and each.shadowed_by is None}
        self._found, self._usable, self._searched = found, usable, started
        self._misnamed.clear()
        return found

    def skills(self) -> list[FoundSkill]:
        """Return the skills that can be paged, sorted by name."""
        usable = [found for found in self.found() if found.problem is None and found.shadowed_by is None]
        return sorted(usable, key=lambda found: found.name)

    def skill(self, name: str) -> FoundSkill:
        """Return the skill of this name.

        Raises:
            UnknownSkillError: There is none, or it cannot be read; the message lists similar names.
        """
        found = self.found()
        if name not in self._usable and self._may_be_new(name):
            found = self.found(fresh=True)
            if name not in self._usable:
                self._misnamed.add(name)
        if skill := self._usable.get(name):
            return skill
        for each in found:
            if each.name == name and each.problem:
                raise UnknownSkillError(f"The skill {name!r} cannot be read: {each.problem}")
        known = list(self._usable)
        hint = similar_names(name, known) or "ask for the list of skills."
        raise UnknownSkillError(f"There is no skill named {name!r} among {len(known)}: {hint}")

    def index(self, name: str, *, scope: str | None = None) -> "SkillIndex":
        """Return the index of the skill of this name.

        Raises:
            UnknownSkillError: As for `skill`.
            SkillPagerError: As for `SkillPager.index`.
        """
        path = self.skill(name).path
        with skill_faults(path):
            return self.pager.index(path, scope=scope)

    def route(self, query: str, *, k: int = DEFAULT_ROUTED) -> "Route":
        """Return the `k` skills that a query most likely needs, each with its chance and reasons.

        Shadowed and unreadable skills are left out; those that only the user may start are marked.

        Raises:
            SettingsError: The query is empty, or `k` is below 1.
        """
        from skillpager.library.routing import Router  # arrays, which a list of names does without

        if not query.strip():
            raise SettingsError("The query is empty: say in a sentence what the agent is about to do.")
        if k < 1:
            raise SettingsError(f"k is {k}: ask for at least one skill.")
        skills = self.skills()
        with self._routing:
            if self._router is None or self._router.skills != skills:
                self._router = Router(skills)
            router = self._router
        return router.route(query, k=k)

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

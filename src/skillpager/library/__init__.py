"""Libraries of skills: find skills in folders, offer them by name, route queries, make pages of several."""

from skillpager.library.discovery import STUB_OF, FoundSkill, discover, locate, skill_faults, stub_of
from skillpager.library.filters import SkillFilter, settings_filter
from skillpager.library.library import Library
from skillpager.library.library_page import LibraryPage, LibraryPageOptions, Refusal, RefusalReason, SkillPart
from skillpager.library.routing.routes import Route, RoutedSkill

__all__ = [
    "STUB_OF",
    "FoundSkill",
    "Library",
    "LibraryPage",
    "LibraryPageOptions",
    "Refusal",
    "RefusalReason",
    "Route",
    "RoutedSkill",
    "SkillFilter",
    "SkillPart",
    "discover",
    "locate",
    "settings_filter",
    "skill_faults",
    "stub_of",
]

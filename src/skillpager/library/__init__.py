"""Libraries of skills: find the skills in folders, offer them by name, and route queries among them."""

from skillpager.library.discovery import (
    STUB_OF,
    FoundSkill,
    discover,
    found_json,
    locate,
    skill_faults,
    stub_of,
)
from skillpager.library.filters import SkillFilter
from skillpager.library.library import Library
from skillpager.library.routes import Route, RoutedSkill, route_json

__all__ = [
    "STUB_OF",
    "FoundSkill",
    "Library",
    "Route",
    "RoutedSkill",
    "SkillFilter",
    "discover",
    "found_json",
    "locate",
    "route_json",
    "skill_faults",
    "stub_of",
]

"""Libraries of skills: find the skills in folders, and offer them by name."""

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

__all__ = [
    "STUB_OF",
    "FoundSkill",
    "Library",
    "SkillFilter",
    "discover",
    "found_json",
    "locate",
    "skill_faults",
    "stub_of",
]

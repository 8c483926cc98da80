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
from skillpager.library.library import Library

__all__ = [
    "STUB_OF",
    "FoundSkill",
    "Library",
    "discover",
    "found_json",
    "locate",
    "skill_faults",
    "stub_of",
]

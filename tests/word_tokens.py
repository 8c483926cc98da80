"""Small skills whose tokens are words, so that every number can be counted by hand."""

from plain_parts import DigestEncoder, TurnsClassifier
from skillpager.indexing import Builder
from skillpager.parsing.skill import skill_from_files
from skillpager.types import SkillIndex, TokenCounter


class Words:
    """Counts words."""

    id, exact = "words", True

    def count(self, text: str) -> int:
        return len(text.split())


def words(first: str, count: int) -> str:
    """Return a sentence of so many words."""
    return " ".join([first, *["word"] * (count - 2), "end."])


def index_of(*texts: str, counter: TokenCounter | None = None, first: str = "SKILL.md") -> SkillIndex:
    """Return the index of a skill of these files; the six node types take turns."""
    skill = skill_from_files(list(zip((first, "refs/b.md", "c d.md"), texts, strict=False)))
    return Builder(DigestEncoder(), TurnsClassifier(), counter or Words(), "bare").build(skill, "key")

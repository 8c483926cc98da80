"""A store that saves nothing, for indexes that stay in the memory of one process."""

from collections.abc import Sequence

from skillpager.types import Skill, SkillIndex, StoreEntry


class NoStore:
    """A `Store` for strangers' documents: in a real store they would push out the owner's indexes."""

    def load(self, key: str, skill: Skill) -> SkillIndex | None:  # noqa: ARG002 - the Protocol has them
        """Return None."""
        return None

    def save(self, index: SkillIndex) -> None:
        """Do nothing."""

    def entries(self) -> list[StoreEntry]:
        """Return an empty list."""
        return []

    def remove(self, keys: Sequence[str]) -> int:  # noqa: ARG002 - the Protocol has it
        """Return 0: there was nothing to delete."""
        return 0

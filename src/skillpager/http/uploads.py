"""Pages of what clients bring: with the models of the library's pager, and nothing of it kept on disk."""

from collections.abc import Sequence

from skillpager.pager import SkillPager
from skillpager.types import Skill, SkillIndex, StoreEntry


class NoStore:
    """A store that keeps nothing: strangers' documents would push the owner's indexes out of a real one."""

    def load(self, key: str, skill: Skill) -> SkillIndex | None:  # noqa: ARG002 - the Protocol has them
        """Return nothing."""
        return None

    def save(self, index: SkillIndex) -> None:
        """Keep nothing."""

    def entries(self) -> list[StoreEntry]:
        """Return nothing."""
        return []

    def remove(self, keys: Sequence[str]) -> int:  # noqa: ARG002 - the Protocol has it
        """Remove nothing."""
        return 0


def upload_pager(pager: SkillPager) -> SkillPager:
    """Return a pager of the same parts that keeps indexes in memory alone, within the bounds of any pager."""
    return SkillPager(
        encoder=pager.encoder,
        classifier=pager.classifier,
        store=NoStore(),
        token_counter=pager.token_counter,
        embedded_text=pager.recipe.embedded_text,
        settings=pager.settings,
    )

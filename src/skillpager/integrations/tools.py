"""Tools for an agent of any framework: list skills, load a page, read what it left out."""

from collections.abc import Callable, Sequence
from pathlib import Path

from skillpager.display_text import one_line
from skillpager.errors import NodeNotFoundError, SkillPagerError, UnknownSkillError
from skillpager.integrations.retrieval import LibraryFields, PageFields
from skillpager.pager import SkillPager
from skillpager.parsing.skill import MAX_DESCRIPTION
from skillpager.types import PageOptions

# a model can correct its call when it reads these messages
MODEL_MISTAKES: tuple[type[SkillPagerError], ...] = (UnknownSkillError, NodeNotFoundError)


class SkillTools:
    """Three tools over the skills of a library. Their docstrings are for a model.

    Without folders these are those of the settings and the conventional ones. `pager` is by default the one
    that all adapters share. `options` are keyword arguments of `SkillPager.page` except `known` and `folder`,
    a strategy by its name; the tools set `show` themselves. An unknown or wrong one is a `ValueError`.
    """

    def __init__(
        self, folders: Sequence[str | Path] | None, pager: SkillPager | None, options: PageOptions
    ) -> None:
        self._options = PageFields.model_validate({"pager": pager, **options})
        self._library = LibraryFields.model_validate({"folders": folders, "pager": pager}).library

    def functions(self) -> tuple[Callable[..., str], ...]:
        """Return the tools."""
        return self.list_skills, self.load_skill, self.read_skill_nodes

    def list_skills(self) -> str:
        """List the skills, one per line: name and when to use it."""
        skills = self._library.skills(for_model=True)
        lines = (f"{skill.name}: {one_line(skill.description, MAX_DESCRIPTION)}" for skill in skills)
        return "\n".join(lines) or "There are no skills."

    def load_skill(self, name: str, query: str, force: bool = False) -> str:
        """Load the part of a skill that a task needs. Marks such as [… L2-9] show which lines are left out.

        Args:
            name: Name of the skill.
            query: What you are about to do, in a sentence.
            force: Whether to load it even if the skill seems not to cover the query.
        """
        index = self._library.index(name, scope=self._options.scope, for_model=True)
        options = self._options.page_options()
        options["show"] = f"read_skill_nodes {name}"
        options["force"] = force or options.get("force", False)
        return self._library.pager.page(index, query.strip() or name, **options).text

    def read_skill_nodes(self, name: str, nodes: str) -> str:
        """Read what a page of a skill left out.

        Args:
            name: Name of the skill.
            nodes: Lines such as L30-57 or ids such as n12-n16, separated by commas.
        """
        index = self._library.index(name, scope=self._options.scope, for_model=True)
        return self._library.pager.expand(index, nodes).text

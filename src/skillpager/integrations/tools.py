"""Tools for an agent of any framework: list skills, load the page of one, read what it left out."""

from collections.abc import Callable, Sequence
from pathlib import Path

from skillpager.errors import NodeNotFoundError, SkillPagerError, UnknownSkillError
from skillpager.integrations.options import PageFields, shared_pager
from skillpager.library import Library

# a model that reads their message can correct its call
MODEL_MISTAKES: tuple[type[SkillPagerError], ...] = (UnknownSkillError, NodeNotFoundError)


class SkillTools:
    """Three tools over the skills that discovery finds; their docstrings are what a model reads.

    Args:
        folders: Where skills are looked for; None for those of the settings and the conventional ones.
        options: Pager and options of `SkillPager.page`; `show` is the tools' own.
    """

    def __init__(self, folders: Sequence[str | Path] | None, options: PageFields) -> None:
        chosen = None if folders is None else [Path(folder) for folder in folders]
        self._library = Library(options.pager or shared_pager(), chosen)
        self._options = options

    def functions(self) -> tuple[Callable[..., str], ...]:
        """Return the tools."""
        return self.list_skills, self.load_skill, self.read_skill_nodes

    def list_skills(self) -> str:
        """List the skills that can be loaded, a line each: name and when to use it."""
        skills = self._library.skills()
        return "\n".join(f"{skill.name}: {skill.description}" for skill in skills) or "There are no skills."

    def load_skill(self, name: str, query: str) -> str:
        """Load the part of a skill that a task needs. Marks such as [… L2-9 …] stand for omitted lines.

        Args:
            name: Name of the skill.
            query: What you are about to do, in a sentence.
        """
        path = self._library.skill(name).path
        options = self._options.page_options()
        options["show"] = f"read_skill_nodes {name}"
        return self._library.pager.page(path, query.strip() or name, **options).text

    def read_skill_nodes(self, name: str, nodes: str) -> str:
        """Read what a page of a skill left out.

        Args:
            name: Name of the skill.
            nodes: Ids such as n12-n16, or lines such as L30-57; commas separate.
        """
        path = self._library.skill(name).path
        return self._library.pager.expand(path, nodes, scope=self._options.scope).text

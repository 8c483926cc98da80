"""SkillPager: the smallest part of a known skill that suffices for a query.

offline, once per skill content                         online, once per query
SKILL.md ─► Skill ─► Fragments ─► typed Nodes ─► embeddings ─► Edges ─► SkillIndex ══► Selection ─► Page
(+ *.md)   skill    fragments     classifiers     encoders     graph     stores        strategies   pages

from skillpager import SkillPager

pager = SkillPager()
page = pager.page("examples/skills/postgres-backup", "restore one table from a dump")
print(page.text)
print(f"{page.tokens} of {page.full_tokens} tokens")
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillpager.errors import SkillPagerError
    from skillpager.library import Library
    from skillpager.pager import SkillPager
    from skillpager.types import Node, NodeType, Page, Skill, SkillIndex

__all__ = ["Library", "Node", "NodeType", "Page", "Skill", "SkillIndex", "SkillPager", "SkillPagerError"]

_HOMES = {"Library": "library", "SkillPager": "pager", "SkillPagerError": "errors"}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for, so that `skillpager --help` loads no numpy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'types')}"), name)

"""SkillPager: the smallest part of a known skill that suffices for a query.

offline, once per skill content                         online, once per query
SKILL.md ─► Skill ─► Fragments ─► typed Nodes ─► embeddings ─► Edges ─► SkillIndex ══► Selection ─► Context
(+ *.md)   skill    fragments     classifiers     encoders     graph     stores        strategies   context

from skillpager import SkillPager

pager = SkillPager()
page = pager.page("examples/skills/postgres-backup", "restore one table from a dump")
print(page.text)
print(f"{page.tokens} of {page.full_tokens} tokens")
"""

from skillpager.errors import SkillPagerError
from skillpager.pager import SkillPager
from skillpager.types import Context, Node, NodeType, Skill, SkillIndex

__all__ = ["Context", "Node", "NodeType", "Skill", "SkillIndex", "SkillPager", "SkillPagerError"]

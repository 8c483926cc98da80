"""SkillPager: the smallest part of a skill that suffices for a query."""

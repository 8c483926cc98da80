"""The evidence measure against the reference scorer, on the annotated documents where they are at hand.

INTRASKILL_DATA names a folder that holds `score.py` and the split `dev`; the documents themselves are not
part of this project.
"""

import importlib.util
import os
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from skillpager import SkillPager
from skillpager.bench import evidence_coverage
from skillpager.bench.data import read_evidence, to_skill

DATA = Path(os.environ.get("INTRASKILL_DATA", ""))
pytestmark = pytest.mark.skipif(
    "INTRASKILL_DATA" not in os.environ, reason="INTRASKILL_DATA does not name the annotated documents"
)


def _scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", DATA / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES: dict[str, dict[str, Any]] = {
    "plain": {"style": "plain"},
    "marked": {},
    "few nodes": {"strategy": "topk", "max_nodes": 8},
    "sections": {"strategy": "sections", "style": "plain"},
}


@pytest.mark.parametrize("options", PAGES.values(), ids=PAGES.keys())
def test_every_query_of_dev_is_scored_as_the_reference_does(
    options: dict[str, Any], pager: SkillPager
) -> None:
    reference = _scorer()
    skills, queries = read_evidence(DATA / "dev", subset="dev")
    known = {skill.id: skill for skill in skills}
    draw = random.Random(42)
    assert len(queries) == 200
    for query in queries:
        skill = known[query.skill]
        lines = (DATA / "dev" / f"{skill.id}.md").read_text(encoding="utf-8").split("\n")
        page = pager.page(to_skill(skill), query.query, **options).text
        half = "\n".join(line for line in lines if draw.random() < 0.5)
        for context in (page, half, "\n".join(lines), ""):
            expected = reference.evidence_coverage(context, lines, query.critical)
            assert evidence_coverage(context, lines, query.critical) == expected, query.id

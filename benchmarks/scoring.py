"""Pages for annotated queries, and whether they hold the evidence.

The data: a folder of `<id>.md` and `<id>.ann.json` (docs/evidence-format.md). Strategies are compared by
`skillpager bench` (docs/benchmark.md); here it is the pages of one strategy over the knobs of pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from skillpager import SkillIndex, SkillPager
from skillpager.bench.data import load_data, to_skill
from skillpager.bench.data.records import QueryRecord, SkillRecord
from skillpager.bench.judge.evidence import judge_evidence
from skillpager.bench.report.statistics import bootstrap
from skillpager.settings import Settings
from skillpager.types import Page

QUICK_SKILLS = 2
# more nodes than any document has
NO_LIMIT = 10**9
PERCENT = 100


@dataclass(frozen=True, slots=True)
class Paging:
    """How pages are made.

    Attributes:
        style: How they are rendered.
        strategy: Which nodes they show.
        mmr_lambda: Weight of relevance.
        max_nodes: Most nodes; None for the dynamic 20 / 60.
        share: Limit of tokens as a share of the skill; None for no limit.
    """

    style: str
    strategy: str = "mmr"
    mmr_lambda: float = 0.7
    max_nodes: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The evidence in the pages of all queries, all in percent.

    Attributes:
        sufficient: Queries whose page holds the evidence.
        low: Lower end of its 95 % interval.
        high: Upper end.
        coverage: Mean share of the evidence that pages hold.
        micro: Token reduction over all pages together.
        macro: Mean token reduction of a page.
    """

    sufficient: float
    low: float
    high: float
    coverage: float
    micro: float
    macro: float

    @property
    def cells(self) -> list[str]:
        """The cells of a table: sufficiency, interval, coverage, reductions."""
        numbers = [f"{value:.1f}" for value in (self.coverage, self.micro, self.macro)]
        return [f"{self.sufficient:.1f}", f"{self.low:.1f}–{self.high:.1f}", *numbers]

    @property
    def brief(self) -> str:
        """Sufficiency, coverage and reduction in one cell; see `BRIEF`."""
        return f"{self.sufficient:.1f} ({self.coverage:.0f}) at {self.micro:.0f}"


BRIEF = "sufficiency % (coverage %) at token reduction %, micro"
COLUMNS = [
    "sufficiency (%)",
    "95 % interval",
    "coverage (%)",
    "token reduction, micro (%)",
    "macro (%)",
]


class Exam:
    """The annotated documents of one folder, indexed once, paged and scored many times."""

    def __init__(self, folder: Path, *, embedded_text: str | None = None, quick: bool = False) -> None:
        """Read annotations; indexes are built at the first score.

        Args:
            folder: The data.
            embedded_text: What of a node is embedded: `heading` or `bare`; the default when not given.
            quick: Use the first documents alone.
        """
        self._work = TemporaryDirectory()
        skills, queries = load_data(folder)
        self.skills = skills[: QUICK_SKILLS if quick else None]
        asked = {skill.id: skill for skill in self.skills}
        self._cases = [(asked[query.skill], query) for query in queries if query.skill in asked]
        settings = Settings(cache_dir=Path(self._work.name))
        self.pager = SkillPager(
            encoder="builtin", classifier="local", embedded_text=embedded_text, settings=settings
        )
        self._indexes: dict[str, SkillIndex] = {}

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self._cases)

    def index(self, skill: SkillRecord) -> SkillIndex:
        """Return the index of a document."""
        if skill.id not in self._indexes:
            self._indexes[skill.id] = self.pager.index(to_skill(skill))
        return self._indexes[skill.id]

    def score(self, paging: Paging) -> Score:
        """Return what the pages of all queries hold, and what they cost."""
        pages = [self._page(self.index(skill), query, paging) for skill, query in self._cases]
        verdicts = [
            judge_evidence(skill, query, page.text)
            for (skill, query), page in zip(self._cases, pages, strict=True)
        ]
        return _score(pages, verdicts)

    def _page(self, index: SkillIndex, query: QueryRecord, paging: Paging) -> Page:
        limit = None if paging.share is None else int(paging.share * index.full_tokens)
        return self.pager.page(
            index,
            query.query,
            style=paging.style,
            strategy=paging.strategy,
            mmr_lambda=paging.mmr_lambda,
            max_nodes=paging.max_nodes,
            max_tokens=limit,
        )

    def close(self) -> None:
        """Remove what was made."""
        self.pager.close()
        self._work.cleanup()


def _score(pages: Sequence[Page], verdicts: Sequence[tuple[float, bool]]) -> Score:
    coverage, sufficient = np.array(verdicts, dtype=float).T
    interval = bootstrap(sufficient)
    tokens = np.array([page.tokens for page in pages])
    full = np.array([page.full_tokens for page in pages])
    return Score(
        sufficient=PERCENT * interval.value,
        low=PERCENT * interval.low,
        high=PERCENT * interval.high,
        coverage=PERCENT * float(coverage.mean()),
        micro=PERCENT * float(1 - tokens.sum() / full.sum()),
        macro=PERCENT * float((1 - tokens / full).mean()),
    )

"""Pages for annotated queries, measured by the evaluator of `skillpager bench`.

Data: a folder of `<id>.md` and `<id>.ann.json` (docs/measured.md). `skillpager bench` compares
strategies (docs/measured.md); here the pages of one strategy are compared over page options.
"""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from skillpager import SkillPager
from skillpager.bench.data import load_data, to_skill
from skillpager.bench.report.statistics import COVERAGE, MACRO_REDUCTION, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.run.methods import Method
from skillpager.bench.run.selecting import page_by, page_row
from skillpager.settings import Settings
from skillpager.types import SkillIndex

QUICK_SKILLS = 2
BRIEF = "sufficiency % (coverage %) at token reduction %, micro"
COLUMNS = ["sufficiency (%)", "95 % interval", "coverage (%)", "token reduction, micro (%)", "macro (%)"]


@dataclass(frozen=True, slots=True)
class Score:
    """The rows of the pages of all queries."""

    rows: pd.DataFrame

    @property
    def cells(self) -> list[str]:
        """The cells of a table below `COLUMNS`."""
        interval = SUFFICIENCY.interval(self.rows)
        numbers = [measure.of(self.rows) for measure in (COVERAGE, MICRO_REDUCTION, MACRO_REDUCTION)]
        bounds = f"{interval.low:.1f}–{interval.high:.1f}"
        return [f"{interval.value:.1f}", bounds, *(f"{number:.1f}" for number in numbers)]

    @property
    def brief(self) -> str:
        """Sufficiency, coverage and reduction in one cell; see `BRIEF`."""
        sufficient, held, saved = (
            measure.of(self.rows) for measure in (SUFFICIENCY, COVERAGE, MICRO_REDUCTION)
        )
        return f"{sufficient:.1f} ({held:.0f}) at {saved:.0f}"


class Exam:
    """The annotated documents of one folder, indexed once, paged and measured many times."""

    def __init__(self, folder: Path, *, embedded_text: str | None = None, quick: bool = False) -> None:
        """Read annotations; indexes are built at the first score.

        Args:
            folder: The data.
            embedded_text: What of a node is embedded: `bare`, `heading` or `context`; the default when not
                given.
            quick: Use the first documents alone.
        """
        self._work = TemporaryDirectory()
        skills, queries = load_data(folder)
        self.skills = {skill.id: skill for skill in skills[: QUICK_SKILLS if quick else None]}
        self._parsed = {name: to_skill(skill) for name, skill in self.skills.items()}
        self.queries = [query for query in queries if query.skill in self.skills]
        settings = Settings(cache_dir=Path(self._work.name))
        self.pager = SkillPager(
            encoder="builtin", classifier="local", embedded_text=embedded_text, settings=settings
        )

    def index(self, skill: str) -> SkillIndex:
        """Return the index of a document."""
        return self.pager.index(self._parsed[skill])

    def score(self, method: Method, style: str) -> Score:
        """Return what the pages of all queries hold, and what they cost."""
        rows = []
        for query in self.queries:
            page, _ = page_by(self.pager, self._parsed[query.skill], query.query, method, style=style)
            rows.append(page_row(self.skills[query.skill], query, page))
        return Score(pd.DataFrame(rows))

    def close(self) -> None:
        """Remove the indexes."""
        self.pager.close()
        self._work.cleanup()

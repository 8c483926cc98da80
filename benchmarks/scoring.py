"""Pages for annotated queries, and the reference scorer's verdict on them.

The data: a folder of `<id>.md` and `<id>.ann.json` (docs/evidence-format.md). Sufficiency is measured by
the scorer of the data set, a script that runs in a process of its own.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from skillpager import SkillIndex, SkillPager
from skillpager.settings import Settings
from skillpager.types import Context

QUICK_SKILLS = 2
# more nodes than any document has
NO_LIMIT = 10**9
_SCORE = re.compile(
    r"queries (?P<queries>\d+)\s+evidence sufficiency (?P<sufficient>[\d.]+)% "
    r"\[(?P<low>[\d.]+), (?P<high>[\d.]+)\]\s+coverage (?P<coverage>[\d.]+)%\s+"
    r"token reduction (?P<micro>-?[\d.]+)% \(micro\), (?P<macro>-?[\d.]+)% \(macro\)"
)


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
class Annotated:
    """One document and its queries, by id."""

    path: Path
    queries: dict[str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """The scorer's verdict, all in percent.

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

    def __init__(
        self, folder: Path, scorer: Path, *, embedded_text: str | None = None, quick: bool = False
    ) -> None:
        """Read annotations; indexes are built at the first score.

        Args:
            folder: The data.
            scorer: The reference scorer.
            embedded_text: What of a node is embedded: `heading` or `bare`; the default when not given.
            quick: Use the first documents alone.
        """
        self._scorer = scorer
        self._work = TemporaryDirectory()
        work = Path(self._work.name)
        found = sorted(folder.glob("*.ann.json"))[: QUICK_SKILLS if quick else None]
        self._documents = [_annotated(path) for path in found]
        self._split = _linked(found, work / "split") if quick else folder
        settings = Settings(cache_dir=work / "cache", scope="body")
        self.pager = SkillPager(
            encoder="builtin", classifier="local", embedded_text=embedded_text, settings=settings
        )
        self._indexes: dict[Path, SkillIndex] = {}

    @property
    def queries(self) -> int:
        """Number of queries."""
        return sum(len(document.queries) for document in self._documents)

    def index(self, path: Path) -> SkillIndex:
        """Return the index of a document."""
        if path not in self._indexes:
            self._indexes[path] = self.pager.index(path)
        return self._indexes[path]

    def indexes(self) -> list[SkillIndex]:
        """Return the index of each document."""
        return [self.index(document.path) for document in self._documents]

    def score(self, paging: Paging) -> Score:
        """Return the scorer's verdict on the pages of all queries."""
        path = Path(self._work.name) / "contexts.jsonl"
        with path.open("w", encoding="utf-8") as lines:
            for document in self._documents:
                index = self.index(document.path)
                for identifier, query in document.queries.items():
                    row = {"id": identifier, "context": self._page(index, query, paging).text}
                    lines.write(json.dumps(row, ensure_ascii=False) + "\n")
        return _run(self._scorer, self._split, path)

    def _page(self, index: SkillIndex, query: str, paging: Paging) -> Context:
        limit = None if paging.share is None else int(paging.share * index.full_tokens)
        return self.pager.page(
            index,
            query,
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


def _annotated(path: Path) -> Annotated:
    annotation = json.loads(path.read_text(encoding="utf-8"))
    queries = {query["id"]: query["query"] for query in annotation.get("queries", [])}
    return Annotated(path.with_name(f"{annotation['skill']}.md"), queries)


def _linked(annotations: list[Path], folder: Path) -> Path:
    """Return a folder with links to some documents, as a smaller data set."""
    folder.mkdir()
    for path in annotations:
        document = _annotated(path).path
        (folder / path.name).symlink_to(path.resolve())
        (folder / document.name).symlink_to(document.resolve())
    return folder


def _run(scorer: Path, split: Path, contexts: Path) -> Score:
    command = [sys.executable, str(scorer), str(split), str(contexts)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = _SCORE.search(said)
    if found is None:
        raise RuntimeError(f"the scorer said something else than a score: {said[-500:]!r}")
    numbers = {name: float(value) for name, value in found.groupdict().items() if name != "queries"}
    return Score(**numbers)

"""The numbers of the paper, as data; the rows of its tables of results are in `data/paper.csv`.

Sufficiency, intervals and token reductions are percent. Labels are those under which `bench run` repeats
a method.

Reference: *SkillPager: Query-Adaptive Intra-Skill Navigation via Semantic Node Retrieval*; section and
label of each table stand beside it.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row of a table of results: sufficiency, its 95 % interval and token reduction in percent."""

    label: str  # the method, as `bench run` names it
    name: str  # the method, as the paper names it
    sufficiency: float
    low: float
    high: float
    nodes: float  # in a context, mean; NaN where the paper has none
    token_reduction: float  # against full-document prompting


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of results."""

    label: str  # its LaTeX label, without `tab:`
    section: str
    skills: int
    queries: int
    title: str  # of the table that repeats it
    rows: tuple[PaperRow, ...]

    @property
    def reference(self) -> str:
        """Where the table is, in words."""
        where = f"paper {self.section}, table tab:{self.label}"
        return f"{where}: {self.skills:,} skills, {self.queries:,} queries"

    @property
    def is_ablation(self) -> bool:
        """Whether it was measured on the skills with curated answers alone."""
        return self.skills == GROUND_TRUTH_SKILLS


def _read(label: str, section: str, skills: int, queries: int, title: str) -> PaperTable:
    with (DATA / "paper.csv").open(encoding="utf-8", newline="") as file:
        rows = [list(row.values())[1:] for row in csv.DictReader(file) if row["table"] == label]
    read = tuple(PaperRow(row[0], row[1], *(float(cell or "nan") for cell in row[2:])) for row in rows)
    return PaperTable(label, section, skills, queries, title, read)


NODES = 22_774  # §4.1
# §4.1, tab:node-dist: nodes and percent
NODE_TYPES = {
    "concept": (11_369, 49.9),
    "param": (5_166, 22.7),
    "step": (2_617, 11.5),
    "example": (2_530, 11.1),
    "precondition": (580, 2.5),
    "error_handling": (512, 2.2),
}

# ---- the tables of results

GROUND_TRUTH_SKILLS = 195  # §4.1
_ABLATION = (GROUND_TRUTH_SKILLS, 975)  # skills and queries
GRAPH = _read(
    "graph-augmentation",
    *("§3.3", 19, 86),
    title="Graph augmentation: one-hop dependency predecessors added to the selection",
)
MAIN = _read("main-results", "§5.2.1", 395, 1_975, title="Main results: SkillPager and its baselines")
CONCEPT = _read("concept-ablation", "§5.2.2", *_ABLATION, title="Concept nodes in the candidate pool")
LAMBDA = _read(
    "lambda-sweep", "§5.3.1", *_ABLATION, title="Effect of λ, the weight of relevance against redundancy"
)
NODE_BUDGET = _read(
    "k-sweep", "§5.3.2", *_ABLATION, title="Effect of k, the number of nodes that may be selected"
)

SIZE_BOUNDARY = 100  # §5.3.3: k is 20 for skills of at most so many nodes, else 60

# ---- §4.2, §5.1: agreement with people on 96 items each


VALIDATION_SAMPLE = 96
# agreement of people with the judge, by vote pattern: percent, and Cohen's κ
JUDGE_AGREEMENT = {"all": (82.29, 0.646), "3-0": (85.42, 0.708), "2-1": (79.17, 0.583)}
PARSER_ACCURACY, PARSER_MACRO_F1 = 79.17, 79.27

# ---- §4.4

ENCODER = "BAAI/bge-m3"
EMBEDDED_TEXT = "bare"  # the node's text alone

"""Every number of the paper's tables, as data.

Sufficiency, intervals and token reductions are percent. Labels are those under which `bench run` repeats
a method.

Reference: *SkillPager: Query-Adaptive Intra-Skill Navigation via Semantic Node Retrieval*; section and
label of each table stand beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row of a table of results: sufficiency, its 95 % interval and token reduction in percent."""

    label: str  # the method, as `bench run` names it
    name: str  # the method, as the paper names it
    sufficiency: float
    low: float
    high: float
    nodes: float | None = None  # in a context, mean
    token_reduction: float | None = None  # against full-document prompting


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of results."""

    label: str  # its LaTeX label
    section: str
    skills: int
    queries: int
    rows: tuple[PaperRow, ...]
    own: str  # label of the proposed method or operating point

    @property
    def reference(self) -> str:
        """Where the table is, in words."""
        return f"paper {self.section}, table {self.label}: {self.skills:,} skills, {self.queries:,} queries"

    @property
    def is_ablation(self) -> bool:
        """Whether it was measured on the skills with curated answers alone."""
        return self.skills == GROUND_TRUTH_SKILLS

    def row(self, label: str) -> PaperRow:
        """Return the row of a method."""
        return {row.label: row for row in self.rows}[label]


# ---- §4.1 data

SKILLS, QUERIES = 395, 1_975
GROUND_TRUTH_RECORDS, POOL_RECORDS = 196, 78_165
EMPTY_RECORD = "gt/licenses"
GROUND_TRUTH_SKILLS, POOL_SKILLS = 195, 200
QUERIES_PER_SKILL = 5
# §4.4: English-dominant, mixed and other skills
LANGUAGES: Mapping[str, int] = MappingProxyType(
    {"English-dominant": 383, "mixed languages": 11, "other language dominant": 1}
)
CHARACTERS_MIN, CHARACTERS_MEDIAN, CHARACTERS_MAX = 166, 4_163, 93_951
NODES, NODES_MEAN = 22_774, 57.7
NODES_MIN, NODES_MEDIAN, NODES_MAX = 1, 38, 529
# tab:concept-ablation, tab:k-sweep: of a ground-truth skill
GROUND_TRUTH_NODES_MEAN = 47.87
# §5.3.3; the skills that get the smaller of the two budgets
SMALL_SKILLS = 84.10

# tab:node-dist: nodes and percent
NODE_TYPES: Mapping[str, tuple[int, float]] = MappingProxyType(
    {
        "concept": (11_369, 49.9),
        "param": (5_166, 22.7),
        "step": (2_617, 11.5),
        "example": (2_530, 11.1),
        "precondition": (580, 2.5),
        "error_handling": (512, 2.2),
    }
)

# ---- §3.3

GRAPH = PaperTable(
    label="tab:graph-augmentation",
    section="§3.3",
    skills=19,
    queries=86,
    rows=(
        PaperRow("mmr", "MMR", 69.8, 59.3, 79.1, 17.9, 62.4),
        PaperRow("mmr_graph", "MMR + 1-hop augmentation", 67.4, 57.0, 76.7, 28.1, 48.0),
        PaperRow("full", "Full-document prompting", 82.6, 74.4, 90.7),
    ),
    own="mmr",
)

# ---- §5.2

MAIN = PaperTable(
    label="tab:main-results",
    section="§5.2.1",
    skills=SKILLS,
    queries=QUERIES,
    rows=(
        PaperRow("full", "Full-document prompt", 82.23, 80.51, 83.90, 57.43),
        PaperRow("topk_dependency", "Top-k + dependency", 57.85, 55.65, 59.95, 14.80, 36.00),
        PaperRow("greedy_graph", "Greedy graph", 66.73, 64.66, 68.76, 21.59, 45.10),
        PaperRow("chunk_mmr", "Naive chunk + MMR", 81.77, 80.05, 83.44, 7.09, -28.81),
        PaperRow("mmr", "SkillPager", 78.89, 77.01, 80.61, 24.68, 47.04),
    ),
    own="mmr",
)
CONCEPT = PaperTable(
    label="tab:concept-ablation",
    section="§5.2.2",
    skills=GROUND_TRUTH_SKILLS,
    queries=975,
    rows=(
        PaperRow("concept_only", "Concept only", 20.21, 17.74, 22.77, 13.85),
        PaperRow("exec_only", "Exec only", 78.26, 75.59, 80.82, 15.74),
        PaperRow("density:0.3", "Density adaptive (τ = 0.3)", 63.38, 60.31, 66.46, 22.05),
        PaperRow("density:0.4", "Density adaptive (τ = 0.4)", 62.56, 59.59, 65.64, 21.66),
        PaperRow("density:0.5", "Density adaptive (τ = 0.5)", 62.46, 59.49, 65.54, 20.07),
        PaperRow("mmr", "Adaptive", 86.67, 84.51, 88.72, 22.34),
        PaperRow("full", "Full-document prompting", 88.41, 86.36, 90.36, 47.87),
    ),
    own="mmr",
)
# queries that the adaptive variant answers and exec_only does not, and the concept nodes in their contexts
CONCEPT_NEEDED, CONCEPT_NEEDED_SHARE = 113, 54.0
# verdicts of the concept ablation on which all three votes agree
STRONG_VOTES = 89.9

# ---- §5.3

LAMBDA = PaperTable(
    label="tab:lambda-sweep",
    section="§5.3.1",
    skills=GROUND_TRUTH_SKILLS,
    queries=975,
    rows=(
        PaperRow("mmr@lambda=0.3", "λ = 0.3", 42.56, 39.49, 45.74, 1.0),
        PaperRow("mmr@lambda=0.5", "λ = 0.5", 54.05, 50.77, 57.13, 3.97),
        PaperRow("mmr@lambda=0.7", "λ = 0.7", 85.95, 83.79, 88.10, 22.34),
        PaperRow("mmr@lambda=0.9", "λ = 0.9", 86.05, 83.90, 88.21, 22.35),
    ),
    own="mmr@lambda=0.7",
)
NODE_BUDGET = PaperTable(
    label="tab:k-sweep",
    section="§5.3.2",
    skills=GROUND_TRUTH_SKILLS,
    queries=975,
    rows=(
        PaperRow("mmr@k=5", "k = 5", 63.08, 60.00, 66.05, 4.99, 72.67),
        PaperRow("mmr@k=10", "k = 10", 75.49, 72.72, 78.15, 9.70, 55.48),
        PaperRow("mmr@k=20", "k = 20", 85.03, 82.77, 87.28, 18.24, 31.66),
        PaperRow("mmr@k=30", "k = 30", 85.74, 83.49, 87.90, 24.57, 19.61),
        PaperRow("mmr@k=40", "k = 40", 85.64, 83.38, 87.79, 29.27, 12.77),
        PaperRow("mmr@k=60", "k = 60", 86.97, 84.82, 89.03, 35.08, 6.77),
        PaperRow("full", "Full", 88.41, 86.36, 90.36, 47.87),
    ),
    own="mmr@k=20",
)
# §5.3.3: sufficiency at k = 20 and k = 60 for skills of at most 100 nodes, and for larger ones
SIZE_BOUNDARY = 100
SMALL_AT_20, SMALL_AT_60 = 86.40, 87.89
LARGE_AT_20, LARGE_AT_60 = 73.00, 79.00
# boundaries of 80 and 120 nodes change the sufficiency of the full benchmark by less, percentage points
BOUNDARY_CHANGE = 0.5

# ---- §3.1, §3.2: cost

STAGE_1_HOURS, STAGE_1_WORKERS = 9.83, 4  # wall-clock time of all skills
STAGE_1_MINUTES = 3.2  # of a skill, median
QUERY_TOKENS = 498.0  # of the embedding call for a query, mean

# ---- §4.2, §5.1: agreement with people on 96 items each


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often people and the judge agree: percent, and Cohen's κ."""

    agreement: float
    kappa: float


VALIDATION_SAMPLE = 96
JUDGE_AGREEMENT: Mapping[str, Agreement] = MappingProxyType(
    {"all": Agreement(82.29, 0.646), "3-0": Agreement(85.42, 0.708), "2-1": Agreement(79.17, 0.583)}
)
PARSER_ACCURACY, PARSER_MACRO_F1 = 79.17, 79.27

# ---- §4.4

ENCODER = "BAAI/bge-m3"
EMBEDDED_TEXT = "bare"  # the node's text alone
CLASSIFIER = "DeepSeek-V4-Flash"
JUDGE = "DeepSeek-V4-Pro, majority of three votes"

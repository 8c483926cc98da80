"""What stands in a report, in its order: sections of tables and figures, and what could not be made."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from skillpager.bench.data.provenance import differences
from skillpager.bench.report.claims import CheckedClaim, check_claims
from skillpager.bench.report.curves import Curve, read_curves
from skillpager.bench.report.figures import Picture
from skillpager.bench.report.figures.graph import graph_figure
from skillpager.bench.report.figures.paper_figures import concept_figure, lambda_figure, node_budget_figure
from skillpager.bench.report.figures.tradeoffs import budget_figure, panels_figure, pareto_figure
from skillpager.bench.report.measures import MEASURES
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables import Column, Row, Table
from skillpager.bench.report.tables.ablations import classifiers, encoders, granularity
from skillpager.bench.report.tables.budgets import matched_budgets
from skillpager.bench.report.tables.claims import claims_table
from skillpager.bench.report.tables.compared import (
    concept_ablation,
    concept_need,
    graph_augmentation,
    lambda_sweep,
    main_results,
    node_budget_sweep,
)
from skillpager.bench.report.tables.data import (
    composition,
    judge_validation,
    node_types,
    parser_agreement,
    preservation,
)
from skillpager.bench.report.tables.glossary import glossary
from skillpager.bench.report.tables.methods import all_methods, by_difficulty, by_size, pairwise
from skillpager.bench.report.tables.sizes import boundary_sweep, size_sweep
from skillpager.errors import SkillPagerError
from skillpager.pager import SkillPager

logger = logging.getLogger(__name__)

Block = Table | Picture


class Material:
    """What tables and figures are made of, each read once."""

    def __init__(self, results: Results, pager: SkillPager) -> None:
        """Take the results, and what indexes the skill whose graph is drawn."""
        self.results = results
        self.pager = pager

    @cached_property
    def curves(self) -> list[Curve]:
        """The matched-budget curves."""
        return read_curves(self.results)

    @cached_property
    def claims(self) -> list[CheckedClaim]:
        """The paper's claims, checked."""
        return check_claims(self.results)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report.

    Attributes:
        name: Its anchor.
        title: Its heading.
        text: A sentence or two on what it shows.
        blocks: Its tables and figures.
    """

    name: str
    title: str
    text: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A table or figure that could not be made.

    Attributes:
        title: What it would show.
        reason: Why it is missing, and what would mend that.
    """

    title: str
    reason: str


def make_sections(material: Material) -> tuple[list[Section], list[Absent]]:
    """Return the sections that have contents, and what is missing."""
    sections, absent = [], []
    for plan in _PLANS:
        blocks: list[Block] = []
        for part in plan.parts:
            made = _make(part, material)
            if isinstance(made, Absent):
                absent.append(made)
            else:
                blocks.append(made)
        if blocks:
            sections.append(Section(plan.name, plan.title, plan.text, tuple(blocks)))
    return sections, absent


def _make(part: "_Part", material: Material) -> Block | Absent:
    try:
        made = part.make(material)
    except SkillPagerError as error:  # a report without one figure is better than none
        logger.warning("%s: %s", part.title, error)
        return Absent(part.title, str(error))
    return Absent(part.title, part.mend) if made is None else made


@dataclass(frozen=True, slots=True)
class _Part:
    """How a table or figure is made, its title when it is not, and what would mend that."""

    title: str
    make: Callable[[Material], Block | None]
    mend: str


@dataclass(frozen=True, slots=True)
class _Plan:
    name: str
    title: str
    text: str
    parts: tuple[_Part, ...]


def _table(title: str, make: Callable[[Results], Block | None], mend: str) -> _Part:
    """Return a part that needs the results alone."""
    return _Part(title, lambda material: make(material.results), mend)


def _run(suite: str) -> str:
    return f"not run: skillpager bench run --methods {suite}"


def _measures_table(_: Results) -> Table:
    rows = tuple(Row((m.name, m.unit, m.definition, m.reference)) for m in MEASURES)
    columns = (Column("Measure"), Column("Unit"), Column("Definition"), Column("Source"))
    return Table("measures", "Measures", columns, rows)


_ANY = _run("main")
_BUDGET = _run("budget")

_PLANS = (
    _Plan(
        "claims",
        "Where the paper's claims hold",
        "Each claim compares two methods on the same queries.",
        (_Part("The paper's claims", lambda m: claims_table(m.claims, judge=m.results.judge), _ANY),),
    ),
    _Plan(
        "data",
        "Data and stage 1",
        "What the skills are, and what parsing makes of them.",
        (
            _table("Composition", composition, _ANY),
            _table("Node types", node_types, _ANY),
            _table("Losslessness", preservation, _ANY),
            _table("Parser quality", parser_agreement, "the skills carry no node types by annotators"),
            _Part("Node graph", lambda m: graph_figure(m.results, m.pager), _ANY),
        ),
    ),
    _Plan(
        "main",
        "Main results",
        "The paper's method and its baselines, at the paper's settings.",
        (
            _table("Main results", main_results, _run("main")),
            _table(
                "The judge against people",
                judge_validation,
                "no answered validation sheet of this judge was scored: see skillpager bench validate",
            ),
        ),
    ),
    _Plan(
        "ablations",
        "Ablations",
        "The method with one part taken away or exchanged.",
        (
            _table("Concept ablation", concept_ablation, _run("concept")),
            _table("Concept ablation, figure", concept_figure, _run("concept")),
            _table("Queries that need concept nodes", concept_need, _run("concept")),
            _table("Graph augmentation", graph_augmentation, _run("graph")),
            _table("Granularity", granularity, _run("granularity")),
            _table("Encoder", encoders, _run("encoder")),
            _table("Classifier", classifiers, _run("classifier")),
        ),
    ),
    _Plan(
        "sweeps",
        "Hyperparameters",
        "How λ, k and the boundary of the dynamic budget behave.",
        (
            _table("λ sweep", lambda_sweep, _run("lambda")),
            _table("λ sweep, figure", lambda_figure, _run("lambda")),
            _table("k sweep", node_budget_sweep, _run("k")),
            _table("k sweep, figure", node_budget_figure, _run("k")),
            _table("k by size", size_sweep, _run("k")),
            _table("Boundary", boundary_sweep, _run("boundary")),
        ),
    ),
    _Plan(
        "methods",
        "All methods",
        "Beyond the paper: every method that was run, at its default budget.",
        (
            _table("All methods", all_methods, _run("offline")),
            _table("Pareto plot", pareto_figure, _run("offline")),
            _table("Tests between methods", pairwise, _run("offline")),
            _table("By difficulty", by_difficulty, "the queries carry no difficulty"),
            _table("By size", by_size, _ANY),
        ),
    ),
    _Plan(
        "budgets",
        "Equal budgets",
        "Methods stop at different sizes by default; here each may spend the same share of a skill's tokens.",
        (
            _Part("Matched budgets", lambda m: matched_budgets(m.curves), _BUDGET),
            _Part("Matched budgets, figure", lambda m: budget_figure(m.curves), _BUDGET),
            _Part("Matched budgets by method", lambda m: panels_figure(m.curves), _BUDGET),
        ),
    ),
    _Plan(
        "measuring",
        "How it was measured",
        "Intervals are percentile bootstraps with 10,000 resamples and seed 42, as in the paper. They draw "
        "queries where they stand beside the paper's, and whole skills where two methods are compared: five "
        "queries about one skill are not five independent observations.",
        (
            _table("Differences", differences, _ANY),
            _table("Methods", glossary, _ANY),
            _table("Measures", _measures_table, _ANY),
        ),
    ),
)


def tables_of(sections: Sequence[Section]) -> Iterator[Table]:
    """Yield the tables of sections, in order."""
    yield from (block for section in sections for block in section.blocks if isinstance(block, Table))


def pictures_of(sections: Sequence[Section]) -> Iterator[Picture]:
    """Yield the figures of sections, in order."""
    yield from (block for section in sections for block in section.blocks if isinstance(block, Picture))

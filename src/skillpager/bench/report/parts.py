"""The parts of a report, in order: its sections, and the tables and figures of each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from skillpager.bench.data.provenance import differences
from skillpager.bench.report.figures import Picture, paper_figures, tradeoffs
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables import Table, budgets, claims, compared, data, methods, topology
from skillpager.bench.report.tables.budgets import read_curves

Block = Table | Picture


@dataclass(frozen=True, slots=True)
class Part:
    """A table or figure that a report may have.

    Attributes:
        title: Its name where it is missing.
        make: Makes it, and returns None where it cannot; None for the graph, which needs a pager.
        absent: Why it is missing when there is none.
        is_figure: Whether it is drawn.
        shows_types: Whether it shows the types of the run's classifier, or the edges that are made of them.
        from_rows: Whether published rows suffice for it, so that `make tables` makes it for each published
            run.
    """

    title: str
    make: Callable[[Results], Block | None] | None
    absent: str
    is_figure: bool = False
    shows_types: bool = False
    from_rows: bool = True


@dataclass(frozen=True, slots=True)
class PlannedSection:
    """A section that a report has if one of its parts can be made."""

    name: str  # its anchor
    title: str
    text: str
    parts: tuple[Part, ...]


def _run(suite: str) -> str:
    return f"not run: skillpager bench run --methods {suite}"


def _of_curves(make: Callable[..., Block | None], results: Results) -> Block | None:
    """Return a table or figure of the matched-budget curves."""
    return make(read_curves(results))


_ANY = _run("main")
_OLD = "the run was made before edges and times were recorded: run again with another --out"
_NO_TYPES = "the skills carry no node types by annotators"

SECTIONS = (
    PlannedSection(
        "claims",
        "The paper's claims",
        "Each claim compares two methods on the same queries.",
        (Part("The paper's claims", claims.claims_table, _ANY),),
    ),
    PlannedSection(
        "data",
        "Data and stage 1",
        "What the skills are, and what parsing makes of them.",
        (
            Part("Composition", data.composition, _ANY, from_rows=False),
            Part("Node types", data.node_types, _ANY, shows_types=True),
            Part("Losslessness", data.preservation, _ANY, from_rows=False),
            Part("Parser quality", data.parser_agreement, _NO_TYPES, shows_types=True, from_rows=False),
            Part("Confusion of types", data.parser_confusion, _NO_TYPES, shows_types=True, from_rows=False),
            Part("Cost", data.costs, _OLD, from_rows=False),
        ),
    ),
    PlannedSection(
        "graphs",
        "Graphs",
        "The graph that stage 1 infers, which only the graph methods read.",
        (
            Part("Node graph", None, _ANY, is_figure=True, shows_types=True, from_rows=False),
            Part("Edges by kind", topology.edge_kinds, _OLD, shows_types=True, from_rows=False),
            Part("Topology", topology.topology, _OLD, shows_types=True, from_rows=False),
            Part(
                "Entry bias",
                topology.entry_bias,
                f"{_run('main')}; the queries need critical lines",
                shows_types=True,
                from_rows=False,
            ),
        ),
    ),
    PlannedSection(
        "main",
        "Main results",
        "The paper's method and its baselines, at the paper's settings.",
        (
            Part("Main results", compared.main_results, _run("main")),
            Part(
                "The judge against people",
                data.judge_validation,
                "no answered validation sheet of this judge was scored: see skillpager bench validate",
            ),
        ),
    ),
    PlannedSection(
        "ablations",
        "Ablations",
        "The method with one part taken away or exchanged.",
        (
            Part("Concept ablation", compared.concept_ablation, _run("concept")),
            Part("Concept ablation, figure", paper_figures.concept_figure, _run("concept"), is_figure=True),
            Part("Queries that need concept nodes", compared.concept_need, _run("concept")),
            Part("Graph augmentation", compared.graph_augmentation, _run("graph")),
            Part("Granularity", compared.granularity, _run("granularity")),
            Part("Encoder", compared.encoders, _run("encoder")),
            Part("Classifier", compared.classifiers, _run("classifier")),
        ),
    ),
    PlannedSection(
        "sweeps",
        "Hyperparameters",
        "How λ, k and the boundary of the dynamic budget behave.",
        (
            Part("λ sweep", compared.lambda_sweep, _run("lambda")),
            Part("λ sweep, figure", paper_figures.lambda_figure, _run("lambda"), is_figure=True),
            Part("k sweep", compared.node_budget_sweep, _run("k")),
            Part("k sweep, figure", paper_figures.node_budget_figure, _run("k"), is_figure=True),
            Part("k by size", compared.size_sweep, _run("k")),
            Part("Boundary", compared.boundary_sweep, _run("boundary")),
        ),
    ),
    PlannedSection(
        "methods",
        "All methods",
        "Beyond the paper: every method that was run, at its default budget.",
        (
            Part("All methods", methods.all_methods, _run("offline")),
            Part("Pareto plot", tradeoffs.pareto_figure, _run("offline"), is_figure=True),
            Part("Tests between methods", methods.pairwise, _run("offline")),
            Part("By difficulty", methods.by_difficulty, "the queries carry no difficulty"),
            Part("By size", methods.by_size, _ANY),
        ),
    ),
    PlannedSection(
        "budgets",
        "Equal budgets",
        "Methods stop at different sizes by default; here each may spend the same share of a skill's tokens.",
        (
            Part("Matched budgets", partial(_of_curves, budgets.matched_budgets), _run("budget")),
            Part(
                "Matched budgets, figure",
                partial(_of_curves, tradeoffs.budget_figure),
                _run("budget"),
                is_figure=True,
            ),
            Part(
                "Matched budgets by method",
                partial(_of_curves, tradeoffs.panels_figure),
                _run("budget"),
                is_figure=True,
            ),
        ),
    ),
    PlannedSection(
        "measuring",
        "How it was measured",
        "Intervals are percentile bootstraps with 10,000 resamples and seed 42, as in the paper. They draw "
        "queries where they stand beside the paper's, and whole skills where two methods are compared: five "
        "queries about one skill are not five independent observations.",
        (
            Part("Differences", differences, _ANY, from_rows=False),
            Part("Methods", methods.glossary, _ANY),
            Part("Measures", methods.measures_table, _ANY, from_rows=False),
        ),
    ),
)

PARTS = tuple(part for section in SECTIONS for part in section.parts)

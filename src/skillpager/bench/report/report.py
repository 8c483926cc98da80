"""The report of a run: one self-contained HTML file, one Markdown file, tables and figures.

report.html                         report.md
tables/<name>.csv                   figures/<name>.png, figures/<name>.svg
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.report import budgets, claims, compared, figures, methods, paper, stage1
from skillpager.bench.report.budgets import compare_curves, read_curves, without_budget
from skillpager.bench.report.figures import FIGURES, Picture
from skillpager.bench.report.measures import MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.methods import ALPHA, BASELINE, compare_methods
from skillpager.bench.report.results import Results, run_facts
from skillpager.bench.report.table import Table, format_cell, render
from skillpager.bench.run.learned import refusal
from skillpager.bench.run.methods import parse_method
from skillpager.bench.run.suites import SUITES
from skillpager.errors import SkillPagerError
from skillpager.files import write_file
from skillpager.pager import SkillPager

logger = logging.getLogger(__name__)

TITLE = "IntraSkill-Bench"
LEAD = (
    "An agent is about to use a known skill: which part of it does it need? Methods choose parts of "
    "{skills:,} skills for {queries:,} queries, and a judge says whether each part suffices. The paper's "
    "numbers stand beside ours."
)
TABLES = "tables"
# the budget of the first findings: half of the tokens, about what the paper's method spends
HALF = 0.5

Fact = tuple[str, str]
Block = Table | Picture


@dataclass(frozen=True, slots=True)
class Part:
    """A table or figure that a report may have.

    Attributes:
        title: Its name where it is missing.
        make: Makes it, and returns None where it cannot.
        suite: The suite without which it is missing, or the reason in words.
        is_figure: Whether it is drawn.
        shows_types: Whether it shows the types of the run's classifier, or the edges that are made of them.
        from_rows: Whether published rows suffice for it, so that `make tables` makes it for each published
            run.
    """

    title: str
    make: Callable[[Results], Block | None]
    suite: str = "main"
    is_figure: bool = False
    shows_types: bool = False
    from_rows: bool = True

    @property
    def absent(self) -> str:
        """Why it is missing when there is none."""
        return f"not run: skillpager bench run --methods {self.suite}" if self.suite in SUITES else self.suite


Figure = partial(Part, is_figure=True)


def _beside(table: paper.PaperTable) -> Callable[[Results], Table | None]:
    return partial(compared.beside_paper, table)


UNLABELED = "the skills carry no node types by annotators"
UNTIMED = "run again with another --out, to record times"
UNSCORED = "no answered validation sheet of this judge was scored: see skillpager bench validate"
# title, text and parts of each section, in order; a section without parts is left out
SECTIONS: tuple[tuple[str, str, tuple[Part, ...]], ...] = (
    (
        "The paper's claims",
        "Each claim compares two methods on the same queries.",
        (Part("The paper's claims", claims.claims_table),),
    ),
    (
        "Data and stage 1",
        "What the skills are, and what parsing makes of them.",
        (
            Part("Composition", stage1.composition, from_rows=False),
            Part("Node types", stage1.node_types, shows_types=True),
            Part("Parser quality", stage1.parser_agreement, UNLABELED, shows_types=True, from_rows=False),
            Part("Cost", stage1.costs, UNTIMED, from_rows=False),
        ),
    ),
    (
        "Main results",
        "The paper's method and its baselines, at the paper's settings.",
        (
            Part("Main results", _beside(paper.MAIN)),
            Part("The judge against people", stage1.judge_validation, UNSCORED),
        ),
    ),
    (
        "Ablations",
        "The method with one part taken away or exchanged.",
        (
            Part("Concept ablation", _beside(paper.CONCEPT), "concept"),
            Figure("Concept ablation, figure", figures.concept_figure, "concept"),
            Part("Queries that need concept nodes", compared.concept_need, "concept"),
            Part("Graph augmentation", _beside(paper.GRAPH), "graph"),
            Part("Granularity", compared.granularity, "granularity"),
            Part("Encoder", compared.encoders, "encoder"),
            Part("Classifier", compared.classifiers, "classifier"),
        ),
    ),
    (
        "Hyperparameters",
        "How λ, k and the boundary of the dynamic budget behave.",
        (
            Part("λ sweep", _beside(paper.LAMBDA), "lambda"),
            Figure("λ sweep, figure", figures.lambda_figure, "lambda"),
            Part("k sweep", _beside(paper.NODE_BUDGET), "k"),
            Figure("k sweep, figure", figures.node_budget_figure, "k"),
            Part("k by size", compared.size_sweep, "k"),
        ),
    ),
    (
        "All methods",
        "Beyond the paper: every method that was run, at its default budget.",
        (
            Part("All methods", methods.all_methods, "offline"),
            Figure("Pareto plot", figures.pareto_figure, "offline"),
            Part("Tests between methods", methods.pairwise, "offline"),
        ),
    ),
    (
        "Equal budgets",
        "Methods stop at different sizes by default; here each may spend the same share of a skill's tokens.",
        (
            Part("Matched budgets", budgets.matched_budgets, "budget"),
            Figure("Matched budgets, figure", figures.budget_figure, "budget"),
        ),
    ),
    (
        "How it was measured",
        "Intervals are percentile bootstraps with 10,000 resamples and seed 42, as in the paper. They draw "
        "queries where they stand beside the paper's, and whole skills where two methods are compared: five "
        "queries about one skill are not five independent observations.",
        (
            Part("Methods", methods.glossary),
            Part("Measures", methods.measures_table, from_rows=False),
        ),
    ),
)
PARTS = tuple(part for *_, parts in SECTIONS for part in parts)


@dataclass(frozen=True, slots=True)
class Report:
    """A report, before it is HTML or Markdown."""

    title: str
    lead: str
    facts: list[Fact]  # settings and data that the results depend on
    findings: list[Fact]
    sections: list[tuple[str, str, list[Block]]]  # title, text and what could be made
    absent: list[Fact]  # title of each table or figure that could not be made, and why


def write_report(
    folder: BenchFolder,
    *,
    judge: str,
    out: Path,
    pager: SkillPager | None = None,
    allow_trained: bool = False,
) -> list[Path]:
    """Write the report of a run and return its files, the HTML file first.

    Args:
        folder: Results of a run.
        judge: Id of the judge whose verdicts count.
        out: Where to write; files of the same names are replaced.
        pager: Indexes the skill whose graph is drawn; one of the default parts by default.
        allow_trained: Whether methods that have learned from the skills are shown, each table and picture
            with a note, or left out.

    Raises:
        BenchError: The folder holds no verdicts of this judge, or is damaged, or all methods have learned
            from its skills.
        MissingExtraError: A package of the extra `bench` is not installed.
    """
    results = Results(folder, judge, allow_trained=allow_trained)
    report = make_report(results, pager or SkillPager())
    files = {name: render(name, report=report).encode() for name in ("report.html", "report.md")}
    for block in (block for *_, blocks in report.sections for block in blocks):
        if isinstance(block, Table):
            # a file is read without the report, so that the note is a column of it
            note = results.trained_note
            rows = block.rows.assign(Note=note) if note else block.rows
            files[f"{TABLES}/{block.name}.csv"] = replace(block, rows=rows).to_csv().encode()
        else:
            files[f"{FIGURES}/{block.name}.png"] = block.png
            files[f"{FIGURES}/{block.name}.svg"] = block.svg
    for name, content in files.items():
        write_file(out / name, content)
    return [out / name for name in files]


def make_report(results: Results, pager: SkillPager) -> Report:
    """Return the report of results."""
    sections: list[tuple[str, str, list[Block]]] = []
    absent: list[Fact] = [("Methods", results.refused_note)] if results.refused_note else []
    graph = Figure("Node graph", partial(figures.graph_figure, pager=pager), shows_types=True)
    for title, text, parts in SECTIONS:
        blocks: list[Block] = []
        for part in (*parts, graph) if title == "Data and stage 1" else parts:
            made = _make(part, results)
            if isinstance(made, str):
                absent.append((part.title, made))
            else:
                blocks.append(replace(made, note=f"{made.note} {results.trained_note}".strip()))
        if blocks:
            sections.append((title, text, blocks))
    subsets = ", ".join(dict.fromkeys(skill.subset for skill in results.skills if skill.subset))
    noted = [("Learned from", results.trained_note)] if results.trained_note else []
    return Report(
        title=f"{TITLE}: {subsets}" if subsets else TITLE,
        lead=LEAD.format(skills=len(results.skills), queries=len(results.queries)),
        facts=[*run_facts(results), *noted],
        findings=[*noted, *find_out(results)],
        sections=sections,
        absent=absent,
    )


def _make(part: Part, results: Results) -> Block | str:
    """Return a table or figure, or why there is none."""
    if part.shows_types and results.types_learned and not results.allow_trained:
        return refusal({"the classifier": results.types_learned}, len(results.skills))
    reason = part.absent
    try:
        if (made := part.make(results)) is not None:
            return made
    except SkillPagerError as error:  # a report without one figure is better than none
        logger.warning("%s: %s", part.title, error)
        reason = str(error)
    return reason + (", or its methods have learned from these skills" if results.refused_note else "")


# ---- findings: the main results as labels and numbers


def find_out(results: Results) -> Iterator[Fact]:
    """Yield label and numbers of each main result, the most useful first."""
    yield from _at_half(results)
    if len(curves := read_curves(results)) > 1:
        best = curves[0]
        tested = compare_curves(curves, best)
        tied = ", ".join(name for name, (_, p) in tested.items() if p >= ALPHA) or "no other method"
        area = format_cell(best.area(by_skill=True), 1)
        yield "Largest area under the curve over all budgets", f"{best.method}: {area} %"
        yield f"Area not significantly smaller (Holm, {len(tested)} tests)", tied
    if checked := claims.check_claims(results):
        counts = Counter(each.outcome for each in checked)
        label, words = "Claims of the paper that were checked", claims.VERDICTS
        if parts := claims.differing_parts(results):
            words = claims.OUTCOMES
            label = f"Claims of the paper, not comparable with this run ({'; '.join(parts)})"
        yield label, f"{len(checked)}: {', '.join(f'{counts[each]} {text}' for each, text in words.items())}"


def _at_half(results: Results) -> Iterator[Fact]:
    """Yield the best method at half of the tokens, the baseline there, and the difference."""
    labels = {without_budget(label): label for label in results.labels if parse_method(label).share == HALF}
    labels = {name: label for name, label in labels.items() if results.has(label)}
    if len(labels) < 2:
        return
    scores = {name: SUFFICIENCY.of(results.rows(label)) for name, label in labels.items()}
    best = max(scores, key=scores.__getitem__)
    at_half = f"at a budget of {100 * HALF:.0f} % of the tokens"
    yield f"Best of {len(labels)} methods {at_half}", f"{best}: sufficiency {scores[best]:.1f} %"
    if BASELINE not in scores or best == BASELINE:
        return
    used = format_cell(100 - MICRO_REDUCTION.of(results.rows(labels[BASELINE])), 1)
    yield f"{BASELINE} {at_half}", f"sufficiency {scores[BASELINE]:.1f} %; {used} % of the tokens used"
    tested = compare_methods(results, labels.values(), baseline=labels[BASELINE])
    for each in (each for each in tested if each.method == labels[best]):
        points = format_cell(each.comparison.clustered.scaled(100), 1)
        p = f"p = {each.p_holm:.4f} (Holm, {len(tested)} tests)"
        yield f"{best} − {BASELINE}", f"{points} points; {p}"

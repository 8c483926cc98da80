"""The report of a run: one self-contained HTML file, one Markdown file, tables and figures.

report.html                         report.md
tables/<name>.csv                   figures/<name>.png, figures/<name>.svg
"""

import base64
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.provenance import run_facts
from skillpager.bench.report.figures import paper_figures, tradeoffs
from skillpager.bench.report.figures.drawing import stamped
from skillpager.bench.report.measures import LATENCY_MEDIAN, MICRO_REDUCTION, SUFFICIENCY
from skillpager.bench.report.parts import SECTIONS, Block
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables import Table, claims, table
from skillpager.bench.report.tables.budgets import compare_curves, read_curves, without_budget
from skillpager.bench.report.tables.methods import ALPHA, BASELINE, compare_methods, default_methods
from skillpager.bench.report.tables.table import escape_markdown, format_cell
from skillpager.bench.run.learned import refusal
from skillpager.bench.run.methods import parse_method
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
TABLES, FIGURES = "tables", "figures"
# the budget of the first findings: half of the tokens, about what the paper's method spends
HALF = 0.5

Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the report, with what could be made."""

    name: str  # its anchor
    title: str
    text: str
    blocks: list[Block]


@dataclass(frozen=True, slots=True)
class Report:
    """A report, before it is HTML or Markdown."""

    title: str
    lead: str
    facts: list[Fact]  # settings and data that the results depend on
    findings: list[Fact]
    sections: list[Section]
    absent: list[Fact]  # title of each table or figure that could not be made, and why
    note: str = ""  # on every table and picture: who has learned from the skills


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
    report = make_report(Results(folder, judge, allow_trained=allow_trained), pager or SkillPager())
    files = {"report.html": to_page(report).encode(), "report.md": to_text(report).encode()}
    for block in (block for section in report.sections for block in section.blocks):
        if isinstance(block, Table):
            # a file is read without the report, so that the note is a column of it
            rows = [{**row, "Note": report.note} for row in block.rows] if report.note else block.rows
            files[f"{TABLES}/{block.name}.csv"] = table.to_csv(replace(block, rows=rows)).encode()
        else:
            files[f"{FIGURES}/{block.name}.png"] = block.png
            files[f"{FIGURES}/{block.name}.svg"] = block.svg
    for name, content in files.items():
        write_file(out / name, content)
    return [out / name for name in files]


def make_report(results: Results, pager: SkillPager) -> Report:
    """Return the report of results."""
    sections: list[Section] = []
    absent: list[Fact] = [("Methods", results.refused_note)] if results.refused_note else []
    note, total = results.trained_note, len(results.skills)
    for planned in SECTIONS:
        blocks: list[Block] = []
        for part in planned.parts:
            if part.shows_types and results.types_learned and not results.allow_trained:
                absent.append((part.title, refusal({"the classifier": results.types_learned}, total)))
                continue
            made, reason = None, part.absent
            try:
                with stamped(note):
                    made = part.make(results) if part.make else paper_figures.graph_figure(results, pager)
            except SkillPagerError as error:  # a report without one figure is better than none
                logger.warning("%s: %s", part.title, error)
                reason = str(error)
            if made is None:
                left_out = ", or its methods have learned from these skills" if results.refused_note else ""
                absent.append((part.title, reason + left_out))
            else:
                blocks.append(_with_note(made, note))
        if blocks:
            sections.append(Section(planned.name, planned.title, planned.text, blocks))
    subsets = ", ".join(dict.fromkeys(skill.subset for skill in results.skills if skill.subset))
    noted = [("Learned from", note)] if note else []
    return Report(
        title=f"{TITLE}: {subsets}" if subsets else TITLE,
        lead=LEAD.format(skills=len(results.skills), queries=len(results.queries)),
        facts=[*run_facts(results), *noted],
        findings=[*noted, *find_out(results)],
        sections=sections,
        absent=absent,
        note=note,
    )


def _with_note(block: Block, note: str) -> Block:
    """Return a table or picture with a note behind its own, if there is one."""
    if not note:
        return block
    if isinstance(block, Table):
        return replace(block, note=f"{block.note} {note}".lstrip())
    return replace(block, caption=f"{block.caption} {note}")


# ---- findings: the main results as labels and numbers


def find_out(results: Results) -> Iterator[Fact]:
    """Yield label and numbers of each main result, the most useful first."""
    yield from _at_half(results)
    if len(curves := read_curves(results)) > 1:
        best = curves[0]
        tested = compare_curves(curves, best)
        tied = [name for name, (_, p) in tested.items() if p >= ALPHA]
        for label, curve in (("Largest", best), ("Second largest", curves[1])):
            area = format_cell(curve.area(by_skill=True), 1)
            yield f"{label} area under the curve over all budgets", f"{curve.method}: {area} %"
        yield (
            f"Area not significantly smaller (Holm, {len(tested)} tests)",
            ", ".join(tied) or "no other method",
        )
    if len(points := tradeoffs.points_of(results, default_methods(results))) > 1:
        best_points = [
            f"{point.method} {point.sufficiency:.1f} % at {format_cell(point.reduction, 1)} %"
            for point in tradeoffs.frontier(points)
        ]
        label = f"Pareto frontier of {len(points)} methods at default budgets: sufficiency at token reduction"
        yield label, "; ".join(best_points)
    if results.has(BASELINE):
        rows = results.rows(BASELINE)
        sufficient = format_cell(SUFFICIENCY.interval(rows, by_skill=True), 1)
        yield (
            f"{BASELINE} at the paper's settings",
            f"sufficiency {sufficient} %; token reduction {format_cell(MICRO_REDUCTION.of(rows), 1)} %; "
            f"{LATENCY_MEDIAN.of(rows):.1f} ms for a page (median)",
        )
    if checked := claims.check_claims(results):
        counts = Counter(each.outcome for each in checked)
        if parts := claims.differing_parts(results):
            outcomes = ", ".join(f"{counts[each]} {words}" for each, words in claims.OUTCOMES.items())
            label = f"Claims of the paper, not comparable with this run ({'; '.join(parts)})"
            yield label, f"{len(checked)}: {outcomes}"
        else:
            holds, fails, open_ = (counts[each] for each in claims.OUTCOMES)
            verdicts = f"{holds} hold, {fails} do not hold, {open_} open"
            yield "Claims of the paper that were checked", f"{len(checked)}: {verdicts}"


def _at_half(results: Results) -> Iterator[Fact]:
    """Yield the best method at half of the tokens, the baseline there, and the difference."""
    labels = {
        without_budget(label): label
        for label in results.labels
        if parse_method(label).share == HALF and results.has(label)
    }
    if len(labels) < 2:
        return
    scores = {name: SUFFICIENCY.of(results.rows(label)) for name, label in labels.items()}
    best = max(scores, key=scores.__getitem__)
    at_half = f"at a budget of {100 * HALF:.0f} % of the tokens"
    yield f"Best of {len(labels)} methods {at_half}", f"{best}: sufficiency {scores[best]:.1f} %"
    if BASELINE not in scores or best == BASELINE:
        return
    used = 100 - MICRO_REDUCTION.of(results.rows(labels[BASELINE]))
    yield (
        f"{BASELINE} {at_half}",
        f"sufficiency {scores[BASELINE]:.1f} %; {format_cell(used, 1)} % of the tokens used",
    )
    tested = compare_methods(results, labels.values(), baseline=labels[BASELINE])
    for each in tested:
        if each.method == labels[best]:
            points = format_cell(each.comparison.clustered.scaled(100), 1)
            yield (
                f"{best} − {BASELINE}",
                f"{points} points; p = {each.p_holm:.4f} (Holm, {len(tested)} tests)",
            )


# ---- forms


def to_page(report: Report) -> str:
    """Return the report as one HTML page; tables and figures are in it, everything is escaped."""

    def block_html(block: Block) -> str:
        if isinstance(block, Table):
            return table.to_html(block)
        image = base64.b64encode(block.svg).decode()
        return table.render("figure.html", picture=block, source=f"data:image/svg+xml;base64,{image}")

    return table.render("report.html", report=report, block_html=block_html)


def to_text(report: Report) -> str:
    """Return the report as Markdown, with its figures as files beside it."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    def listed(facts: Sequence[Fact]) -> Iterator[str]:
        yield from (f"- **{escape_markdown(name)}**: {escape_markdown(value)}" for name, value in facts)

    yield f"# {escape_markdown(report.title)}\n\n{escape_markdown(report.lead)}\n"
    yield from listed(report.facts)
    yield "\n## Findings\n"
    yield from listed(report.findings)
    for section in report.sections:
        yield f"\n## {escape_markdown(section.title)}\n\n{escape_markdown(section.text)}\n"
        for block in section.blocks:
            if isinstance(block, Table):
                yield table.to_markdown(block)
            else:
                title, alt, caption = map(escape_markdown, (block.title, block.alt, block.caption))
                yield f"**{title}**\n\n![{alt}]({FIGURES}/{block.name}.svg)\n\n{caption}\n"
    if report.absent:
        yield "\n## Not in this report\n"
        yield from listed(report.absent)

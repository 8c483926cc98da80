"""The report of a run: one HTML file that needs nothing else, one Markdown file, tables and figures.

report.html                         report.md
tables/<name>.csv                   figures/<name>.png, figures/<name>.svg
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from skillpager.atomic_write import write_file
from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.data.provenance import run_facts
from skillpager.bench.report.contents import (
    Absent,
    Block,
    Material,
    Section,
    make_sections,
    pictures_of,
    tables_of,
)
from skillpager.bench.report.findings import find_out
from skillpager.bench.report.pages import render
from skillpager.bench.report.results import Results
from skillpager.bench.report.tables import Table, to_csv, to_html, to_markdown
from skillpager.bench.report.tables.table import escape_markdown
from skillpager.pager import SkillPager

TITLE = "IntraSkill-Bench"
LEAD = (
    "An agent is about to use a known skill: which part of it does it need? Methods choose parts of "
    "{skills:,} skills for {queries:,} queries, and a judge says whether each part suffices. The paper's "
    "numbers stand beside ours."
)
TABLES, FIGURES = "tables", "figures"


@dataclass(frozen=True, slots=True)
class Report:
    """A report.

    Attributes:
        title: Its heading.
        lead: What was measured, in a sentence or two.
        facts: Name and value of what the results depend on.
        findings: What it shows, a sentence or two each.
        sections: Tables and figures.
        absent: What could not be made.
    """

    title: str
    lead: str
    facts: tuple[tuple[str, str], ...]
    findings: tuple[str, ...]
    sections: tuple[Section, ...]
    absent: tuple[Absent, ...]


def write_report(
    folder: BenchFolder, *, judge: str, out: Path, pager: SkillPager | None = None
) -> list[Path]:
    """Write the report of a run and return its files, the HTML file first.

    Args:
        folder: Results of a run.
        judge: Id of the judge whose verdicts count.
        out: Where to write; made if need be, files of the same names are replaced.
        pager: Indexes the skill whose graph is drawn; the default parts when not given.

    Raises:
        BenchError: The folder holds no verdicts of this judge, or is damaged.
        MissingExtraError: A package of the extra `bench` is not installed.
    """
    report = make_report(Results(folder, judge), pager or SkillPager())
    files = {"report.html": to_page(report).encode(), "report.md": to_text(report).encode()}
    files |= {f"{TABLES}/{table.name}.csv": to_csv(table).encode() for table in tables_of(report.sections)}
    for picture in pictures_of(report.sections):
        files[f"{FIGURES}/{picture.name}.png"] = picture.png
        files[f"{FIGURES}/{picture.name}.svg"] = picture.svg
    for name, data in files.items():
        write_file(out / name, data)
    return [out / name for name in files]


def make_report(results: Results, pager: SkillPager) -> Report:
    """Return the report of results."""
    material = Material(results, pager)
    sections, absent = make_sections(material)
    subsets = ", ".join(dict.fromkeys(skill.subset for skill in results.skills if skill.subset))
    return Report(
        title=f"{TITLE}: {subsets}" if subsets else TITLE,
        lead=LEAD.format(skills=len(results.skills), queries=len(results.queries)),
        facts=tuple(run_facts(results)),
        findings=tuple(find_out(results, material.curves, material.claims)),
        sections=tuple(sections),
        absent=tuple(absent),
    )


# ---- forms


def to_page(report: Report) -> str:
    """Return the report as one HTML page; tables and figures are in it, everything is escaped."""
    return render("report.html", report=report, block_html=_block_html)


def _block_html(block: Block) -> str:
    if isinstance(block, Table):
        return to_html(block)
    data = base64.b64encode(block.svg).decode()
    return render("figure.html", picture=block, source=f"data:image/svg+xml;base64,{data}")


def to_text(report: Report) -> str:
    """Return the report as Markdown, with its figures as files beside it."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {escape_markdown(report.title)}\n"
    yield f"{escape_markdown(report.lead)}\n"
    yield from (f"- **{escape_markdown(name)}**: {escape_markdown(value)}" for name, value in report.facts)
    yield "\n## Findings\n"
    yield from (f"- {escape_markdown(finding)}" for finding in report.findings)
    for section in report.sections:
        yield f"\n## {escape_markdown(section.title)}\n\n{escape_markdown(section.text)}\n"
        yield from (_block_markdown(block) for block in section.blocks)
    if report.absent:
        yield "\n## Not in this report\n"
        yield from (f"- **{escape_markdown(a.title)}**: {escape_markdown(a.reason)}" for a in report.absent)


def _block_markdown(block: Block) -> str:
    if isinstance(block, Table):
        return to_markdown(block)
    title, alt, caption = map(escape_markdown, (block.title, block.alt, block.caption))
    return f"**{title}**\n\n![{alt}]({FIGURES}/{block.name}.svg)\n\n{caption}\n"

"""The report of a run: one self-contained HTML file, tables and figures.

report.html    tables/<name>.csv    figures/<name>.png
"""

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import jinja2

from skillpager.bench.data.folder import BenchFolder
from skillpager.bench.report import claims, figures, paper, tables
from skillpager.bench.report.figures import Picture
from skillpager.bench.report.results import BASELINE, Results
from skillpager.bench.report.tables import MISSING, Table
from skillpager.bench.run.methods import SUITES
from skillpager.files import write_file

Block = Table | Picture
# title of a table or figure, its maker, and the suite without which it is missing, or the reason in words
Part = tuple[str, Callable[[Results], Block | None], str]


# the parts of each section, in order; a section without parts is left out
SECTIONS: dict[str, tuple[Part, ...]] = {
    "Skills of several files": (("Skills of several files", tables.folders, "folders"),),
    "The paper's claims": (("The paper's claims", claims.claims_table, "main"),),
    "Main results": (
        ("Main results", partial(tables.beside_paper, paper.MAIN), "main"),
        ("Entry bias", tables.entry_bias, "main"),
        ("Entry bias, figure", figures.entry_figure, "main"),
        ("Node types", tables.node_types, "main"),
        (
            "Parser quality",
            tables.parser_agreement,
            "no node types by annotators, or the classifier has learned from them",
        ),
    ),
    "Ablations": (
        ("Concept ablation", partial(tables.beside_paper, paper.CONCEPT), "concept"),
        ("Graph augmentation", partial(tables.beside_paper, paper.GRAPH), "graph"),
        ("Granularity", tables.granularity, "granularity"),
    ),
    "Hyperparameters": (
        ("λ sweep", partial(tables.beside_paper, paper.LAMBDA), "lambda"),
        ("λ sweep, figure", partial(figures.sweep_figure, paper.LAMBDA), "lambda"),
        ("k sweep", partial(tables.beside_paper, paper.NODE_BUDGET), "k"),
        ("k sweep, figure", partial(figures.sweep_figure, paper.NODE_BUDGET), "k"),
    ),
    "All methods": (
        ("All methods", tables.all_methods, "offline"),
        ("Pareto plot", figures.pareto_figure, "offline"),
        ("Tests between methods", tables.pairwise, "offline"),
    ),
    "Equal budgets": (
        ("Matched budgets", tables.matched_budgets, "budget"),
        ("Matched budgets, figure", figures.budget_figure, "budget"),
    ),
}
# the makers for which published rows suffice
FROM_ROWS = [
    make for parts in SECTIONS.values() for _, make, _ in parts if make is not tables.parser_agreement
]


def write_report(
    folder: BenchFolder, *, judge: str, out: Path, allow_trained: bool = False, baseline: str = BASELINE
) -> list[Path]:
    """Write the report of a run under a judge and return its files, the HTML file first.

    Methods that have learned from the skills are left out, or with `allow_trained` shown, each table and
    picture with a note.
    """
    results = Results(folder, judge, allow_trained=allow_trained, baseline=baseline)
    note = results.trained_note
    absent = [("Methods", results.refused_note)] if results.refused_note else []
    sections: dict[str, list[Block]] = {}
    files: dict[str, bytes] = {}
    for section, parts in SECTIONS.items():
        for title, make, suite in parts:
            block = make(results)
            if block is None:
                reason = suite if " " in suite else f"not run: skillpager bench run --methods {suite}"
                refused = [label for label in SUITES.get(suite, ()) if label in results.learned]
                if refused and results.refused_note:
                    reason = f"{', '.join(refused)} left out: learned from these skills"
                absent.append((title, reason))
                continue
            sections.setdefault(section, []).append(replace(block, note=f"{block.note} {note}".strip()))
            if isinstance(block, Picture):
                files[f"figures/{block.name}.png"] = block.png
            else:
                # a file is read without the report, so that the note is a column of it
                rows = block.rows.assign(Note=note) if note else block.rows
                files[f"tables/{block.name}.csv"] = replace(block, rows=rows).to_csv().encode()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["base64"] = lambda content: base64.b64encode(content).decode()
    page = environment.get_template("report.html").render(
        subsets=", ".join(filter(None, results.skills["subset"].unique())),
        results=results,
        facts=run_facts(results),
        sections=sections,
        absent=absent,
    )
    for name, content in {"report.html": page.encode(), **files}.items():
        write_file(out / name, content)
    return [out / name for name in ("report.html", *files)]


def run_facts(results: Results) -> dict[str, str]:
    """Return by name everything that the results depend on."""
    run, data = results.folder.entry("run"), results.folder.entry("data")
    names = ("encoder", "embedded_text", "classifier", "splitter", "token_counter", "style")
    facts: dict[str, object] = {
        "Data": data.get("source"),
        "Skills, queries": f"{len(results.skills):,}, {len(results.queries):,}",
        "Digest of the skills": str(data.get("skills_sha256") or "")[:12],
        "Judge": results.judge,
        **{name.capitalize().replace("_", " "): run.get(name) for name in names},
        "Machine": ", ".join(map(str, results.folder.entry("machine").values())),
        "Seed": results.manifest.get("seed"),
        "Version": f"skillpager {results.manifest.get('version', MISSING)}",
        "Command": f"skillpager bench report {results.folder.path.name} --judge {results.judge}",
    }
    if results.trained_note:
        facts["Learned from"] = results.trained_note
    return {name: MISSING if value in (None, "") else str(value) for name, value in facts.items()}

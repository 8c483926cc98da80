"""The tables of a report: the paper's with our measurements beside them, ablations, and all methods."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from skillpager.bench.judge.node_types import parser_quality
from skillpager.bench.report import methods, paper
from skillpager.bench.report.paper import PaperTable
from skillpager.bench.report.results import BASELINE, GROUND_TRUTH, LINKED, Results
from skillpager.bench.report.statistics import (
    ALL_MEASURES,
    AVERAGE_NODES,
    COVERAGE,
    FRAGMENT_REDUCTION,
    MICRO_REDUCTION,
    SUFFICIENCY,
    TOKENS,
    Interval,
    Measure,
    UpperBound,
)
from skillpager.bench.run.methods import SUITES
from skillpager.bench.run.windows import ENTRY, SECTION_BM25
from skillpager.types import NodeType

Cell = str | int | float | Interval | None
Row = dict[str, Cell]

CI = "[95 % CI]"
OVER_SKILLS = "… over skills"
MISSING = "—"
# decimals by a part of the heading; others have two
DECIMALS = {"^p, ": 4, "κ": 3, "Coverage|votes|Share|^Budget|Recall|^AP|nDCG": 1}
# nearly every suite holds these methods, so they do not show that it was run
COMMON = frozenset({"mmr", "full"})
STRONGEST = (NodeType.PRECONDITION, NodeType.ERROR_HANDLING)  # of the paper's parser (§5.1)
# the place of needed lines in their skill, and the method that is said to miss the last ones
THIRDS, GREEDY = ("first third", "middle third", "last third"), "greedy_graph"
# budgets at which the table shows the curves
SHOWN = (0.3, 0.5, 0.7)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of results; None and NaN are shown as a dash.

    Neighbouring headings that begin with the same words and a colon (`Paper: `) are shown as a group. A
    column whose heading begins with `p, ` holds p values.
    """

    name: str  # the name of its file, also its anchor: lower-case letters, digits, hyphens
    title: str  # its title
    rows: pd.DataFrame  # its cells; the first column names the row
    note: str = ""  # how to read it
    reference: str = ""  # where the paper has it

    @property
    def texts(self) -> pd.DataFrame:
        """The cells as people read them."""
        return pd.DataFrame(
            {name: [format_cell(cell, str(name)) for cell in cells] for name, cells in self.rows.items()}
        )

    @property
    def columns(self) -> list[tuple[str, str, bool]]:
        """Group, title and whether it holds numbers, of each column."""
        names = [str(heading).rpartition(": ")[::2] for heading in self.rows]
        numbers = [not any(isinstance(cell, str) for cell in self.rows[heading]) for heading in self.rows]
        return [(group, title, is_number) for (group, title), is_number in zip(names, numbers, strict=True)]

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Title and number of columns of each group; the title is empty for columns without one."""
        return [(group, len(list(columns))) for group, columns in groupby(each[0] for each in self.columns)]

    def to_csv(self) -> str:
        """Return the table as CSV: six digits, an interval in three columns, empty where there is nothing."""
        columns: dict[str, list[object]] = {}
        for name, cells in self.rows.items():
            columns[str(name)] = [getattr(cell, "value", cell) for cell in cells]
            if any(isinstance(cell, Interval) for cell in cells):
                for end in ("low", "high"):
                    columns[f"{name} {end}"] = [getattr(cell, end, None) for cell in cells]
        return pd.DataFrame(columns).to_csv(index=False, lineterminator="\n", float_format="%.6g")


def frame(rows: Iterable[Mapping[str, Cell]]) -> pd.DataFrame:
    """Return rows as a DataFrame whose whole numbers stay whole beside fractions and missing cells."""
    return pd.DataFrame(list(rows), dtype=object)


def format_cell(cell: Cell, heading: str = "") -> str:
    """Return a cell as people read it: `1,975`, `−28.81`, `78.89 [77.01, 80.61]`, `≤ 0.0030` or a dash."""
    if isinstance(cell, str):
        return cell.replace(" = ", "\u00a0=\u00a0")  # no line break in an equation
    if isinstance(cell, Interval):
        value, low, high = (format_cell(number, heading) for number in (cell.value, cell.low, cell.high))
        return MISSING if value == MISSING else f"{value} [{low}, {high}]"
    if cell is None or math.isnan(cell):
        return MISSING
    if isinstance(cell, int):
        return f"{cell:,}".replace("-", "−")
    decimals = next((number for part, number in DECIMALS.items() if re.search(part, heading)), 2)
    if heading.startswith("p, ") and cell < 10.0**-decimals:
        return f"< {10.0**-decimals:.{decimals}f}"
    if isinstance(cell, UpperBound):
        return f"≤\u00a0{cell:.{decimals}f}"
    text = f"{cell:,.{decimals}f}"
    return text.lstrip("-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


# ---- the paper's


def beside_paper(table: PaperTable, results: Results) -> Table | None:
    """Return a table of the paper with our numbers beside it; None if nothing of its own was run."""
    if not any(results.has(row.label) for row in table.rows if row.label not in COMMON):
        return None
    chosen = results.skills
    if table.is_ablation:
        chosen = chosen.loc[chosen.index.isin(results.ablation_skills)]
    rows_of = {row.label: results.rows(row.label, chosen.index) for row in table.rows}
    with_coverage = any(map(COVERAGE.known, rows_of.values()))
    with_tokens = not all(math.isnan(row.token_reduction) for row in table.rows)
    here = (*([COVERAGE] if with_coverage else []), AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION)
    lines: list[Row] = [
        {
            "Method": row.name,
            f"Paper: Suff. (%) {CI}": Interval(row.sufficiency, row.low, row.high),
            "Paper: Nodes": row.nodes,
            **({"Paper: Fragment red. (%)": row.token_reduction} if with_tokens else {}),
            f"Here: Suff. (%) {CI}": SUFFICIENCY.interval(rows_of[row.label]),
            **{f"Here: {measure.heading}": measure.of(rows_of[row.label]) for measure in here},
        }
        for row in table.rows
    ]
    queries = results.queries["skill"].isin(chosen.index).sum()
    curated = " with curated answers" * bool(table.is_ablation and chosen["subset"].isin(GROUND_TRUTH).all())
    note = f"Here: {len(chosen):,} skills{curated}, {queries:,} queries."
    if absent := [row.name for row in table.rows if not len(rows_of[row.label])]:
        note += f" Not run here: {', '.join(absent)}."
    return Table(table.label, table.title, frame(lines), note, table.reference)


def node_types(results: Results) -> Table | None:
    """Return the number of nodes of each of the six types; None if nothing was run."""
    here = {kind: int(results.skills[kind].sum()) for kind in paper.NODE_TYPES}
    here["total"] = total = sum(here.values())
    if not total:
        return None
    lines: list[Row] = [
        {
            "Type": kind,
            "Paper: Nodes": nodes,
            "Paper: Share (%)": share,
            "Here: Nodes": here[kind],
            "Here: Share (%)": 100 * here[kind] / total,
        }
        for kind, (nodes, share) in {**paper.NODE_TYPES, "total": (paper.NODES, 100.0)}.items()
    ]
    note, linked = "", results.skills[LINKED].sum(skipna=False)
    if linked > 0:  # the paper calls its graphs sparse (§1)
        note = f"{100 * (1 - linked / total):.1f} % of the nodes have no edge of reference or condition."
    reference = "paper §4.1, table tab:node-dist"
    return Table("node-types", "Node types after stage 1", frame(lines), note, reference)


def parser_agreement(results: Results) -> Table | None:
    """Return how well the predicted node types match annotators'; None without annotations.

    None, too, if the classifier has learned from the skills.
    """
    if results.types_learned and not results.allow_trained:
        return None
    quality = parser_quality(results.folder.skills(), results.folder.nodes())
    if quality is None:
        return None
    columns: dict[str, Row] = {
        "Paper": {
            "Nodes compared": paper.VALIDATION_SAMPLE,
            "Accuracy (%)": paper.PARSER_ACCURACY,
            "Macro-F1 (%)": paper.PARSER_MACRO_F1,
        }
    }
    for rater, scores in (("Here", quality.parser), ("Here: a second annotator", quality.annotators)):
        if scores:
            columns[rater] = {
                "Nodes compared": scores.cases,
                "Accuracy (%)": scores.rate.scaled(100),
                "Macro-F1 (%)": 100 * scores.macro_f1,
                **{f"F1 of {label} (%)": 100 * f1 for label, f1 in scores.f1.items()},
            }
    ranks = sorted(quality.parser.f1, key=lambda kind: -quality.parser.f1[kind])
    placed = [f"{kind} is number {1 + ranks.index(kind)}" for kind in STRONGEST if kind in ranks]
    lines: list[Row] = [
        {"": name, **{column: numbers.get(name) for column, numbers in columns.items()}}
        for name in columns["Here"]
    ]
    return Table(
        "parser-quality",
        "Node types of the parser against annotators' labels",
        frame(lines),
        note="Paper: a sample balanced over types, sources and sizes, labelled by people. Here: all labelled "
        f"nodes of {quality.skills} skills, in the proportions in which they occur; nodes without a label: "
        f"{quality.unlabelled}. A second annotator is held against the first, as the parser is. "
        f"The paper calls precondition and error_handling its strongest types; here by F1 "
        f"{' and '.join(placed) or 'neither occurs'} of {len(ranks)}.",
        reference="paper §5.1",
    )


# ---- ablations beyond the paper's


def granularity(results: Results) -> Table | None:
    """Return typed nodes against chunks of several sizes (paper §5.2.1); None if no sizes were run."""
    sizes = [label for label in results.labels if label.startswith("chunk_mmr:") and "@" not in label]
    rows_of = {label: results.rows(label) for label in (BASELINE, *sizes) if results.has(label)}
    if len(rows_of) < 2:
        return None
    title = "Granularity: typed nodes against chunks of fixed length, MMR on both"
    note = "Chunks and nodes have the same k, so that larger chunks spend more: see the matched budgets for "
    note += "equal cost. “Nodes” of a chunk method are chunks."
    rows = _measured(rows_of, (COVERAGE, AVERAGE_NODES, FRAGMENT_REDUCTION, MICRO_REDUCTION))
    return Table("granularity", title, rows, note)


def entry_bias(results: Results) -> Table | None:
    """Return sufficiency by the place of the needed lines (paper §1); None without greedy traversal."""
    labels = [row.label for row in paper.MAIN.rows if results.has(row.label)]
    thirds = results.queries.set_index("query")["depth"].dropna().mul(3).clip(upper=2).astype(int)
    if GREEDY not in labels or thirds.empty:
        return None
    lines: list[Row] = []
    for number, name in enumerate(THIRDS):
        asked = thirds.index[thirds == number]
        every = {label: results.rows(label) for label in labels}
        found = {label: rows[rows["query"].isin(asked)] for label, rows in every.items()}
        shares = {label: SUFFICIENCY.interval(rows, by_skill=True) for label, rows in found.items()}
        lines.append({"Needed lines": name, "Queries": len(asked), **shares})
    return Table(
        "entry-bias",
        "Entry bias: sufficiency (%) by where a skill has the needed lines",
        frame(lines),
        note="A query's place is the mean of its needed lines. Intervals draw skills. The paper says that "
        "traversal of the graph misses what is far from the entry.",
    )


def folders(results: Results) -> Table | None:
    """Return skills of several files by pages, their entry file alone and whole sections; None if not run."""
    rows_of = {label: results.rows(label) for label in SUITES["folders"] if results.has(label)}
    if not {label.partition("@")[0] for label in rows_of} & {ENTRY, SECTION_BM25}:
        return None
    rows = _measured(rows_of, (COVERAGE, TOKENS, MICRO_REDUCTION), with_skills=True)
    note = (
        f"“{ENTRY}” is SKILL.md alone, as hosts load it; “navigator” the page without limits, or filled to a "
        f"number of tokens; “{SECTION_BM25}” the best sections of all files by BM25 under the same number."
    )
    return Table("folders", "Skills of several files", rows, note)


def _measured(
    rows_of: Mapping[str, pd.DataFrame], measures: Iterable[Measure], *, with_skills: bool = False
) -> pd.DataFrame:
    """Return a row for each method: its sufficiency, and those of the measures that the judge has.

    `with_skills` adds the number of queries, and the interval over skills.
    """
    known = [measure for measure in measures if any(map(measure.known, rows_of.values()))]
    lines: list[Row] = []
    for label, rows in rows_of.items():
        line: Row = {"Method": label}
        if with_skills:
            line["Queries"] = len(rows)
        line[f"Suff. (%) {CI}"] = SUFFICIENCY.interval(rows)
        if with_skills:
            line[OVER_SKILLS] = SUFFICIENCY.interval(rows, by_skill=True)
        lines.append(line | {measure.heading: measure.of(rows) for measure in known})
    return frame(lines)


# ---- all methods


def all_methods(results: Results) -> Table | None:
    """Return every method at its default budget with every measure; None if there is none."""
    rows_of = {label: results.rows(label) for label in methods.default_methods(results)}
    if not rows_of:
        return None
    rows = _measured(rows_of, ALL_MEASURES, with_skills=True)
    saved = [100 * (1 - rows["tokens"] / rows["full_tokens"]).median() for rows in rows_of.values()]
    return Table(
        "all-methods",
        "All methods at their default budgets",
        rows.assign(**{"Token red., median (%)": saved}),
        note="Methods spend different amounts: read sufficiency and token reduction together, or see the "
        "matched budgets. The first interval draws queries, as the paper does; the second draws skills. "
        "Queries about one skill are not independent, so that the second is the one to trust. Fragment "
        "reduction counts nodes alone, as the paper does; token reduction the texts that an agent is given, "
        "over all queries (micro), as their mean (macro) or median. Recall, AP and nDCG are of the picks, "
        "in the order of picking, against the nodes that hold needed lines.",
    )


def pairwise(results: Results) -> Table | None:
    """Return paired tests of all methods at their default budgets against the baseline; None without both."""
    base = results.baseline
    compared = methods.compare_methods(results, methods.default_methods(results), baseline=base)
    if not compared:
        return None
    rows = frame(
        {
            "Method": each.method,
            f"Difference (points) {CI}": each.difference,
            OVER_SKILLS: each.clustered,
            "Token red. (points)": each.saved,
            "Only it": each.only_method,
            f"Only {base}": each.only_baseline,
            "p, bootstrap": each.p,
            "p, Holm": each.p_holm,
        }
        for each in compared
    )
    return Table(
        "pairwise",
        f"Every method against {base}: sufficiency on the same queries",
        rows,
        note="Paired bootstrap of the difference; its p resamples skills, and is corrected for "
        f"{len(compared)} tests by Holm's method. “Only it” counts the queries that the method answers and "
        f"{base} does not. Methods spend different amounts: see the column of token "
        "reduction.",
    )


def matched_budgets(results: Results) -> Table | None:
    """Return the areas under matched-budget curves, the largest first; None without curves."""
    curves = methods.read_curves(results)
    if not curves:
        return None
    base = methods.filling_curve(curves, results.baseline)
    tests = methods.compare_curves(curves, base) if base else {}
    columns = {"sufficiency": SUFFICIENCY.heading, "coverage": COVERAGE.heading, "used": "used (%)"}
    if any(curve.points["coverage"].isna().any() for curve in curves):
        del columns["coverage"]
    lines: list[Row] = []
    for curve in curves:
        difference, p = tests.get(curve.method, (None, None))
        line: Row = {"Method": curve.method, f"Area (%) {CI}": curve.area()}
        line |= {
            f"against {base.method if base else results.baseline} (points) {CI}": difference,
            "p, Holm": p,
        }
        points = curve.points.reindex(SHOWN)
        for share, point in points.iterrows():
            for key, name in columns.items():
                line[f"Budget of {100 * float(str(share)):.0f} %: {name}"] = float(point[key])
        lines.append(line)
    low, *_, high = 100 * curves[0].points.index
    return Table(
        "matched-budgets",
        "Equal budgets: sufficiency when every method may spend the same share of a skill's tokens",
        frame(lines),
        note=f"Area: under the curve of sufficiency over budgets from {low:.0f} to {high:.0f} % of a skill's "
        "tokens, by the trapezoid rule, divided by that range: the mean sufficiency over budgets. Its "
        "interval draws queries. Interval and p of the difference draw skills; p is corrected for "
        f"{len(tests)} tests. A budget is a ceiling: “used” is what the contexts take in fact. "
        f"Methods that use less than {100 * methods.MIN_USED:.0f} % of their budgets are not compared.",
    )

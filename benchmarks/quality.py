"""Evidence sufficiency and token reduction of every strategy and over its knobs."""

from collections.abc import Iterator

from options import Options
from results import Report, Table
from scoring import BRIEF, COLUMNS, NO_LIMIT, Exam, Paging

LAMBDAS = (0.3, 0.5, 0.7, 0.9, 1.0)
NODES = (5, 10, 20, 30, 40, 60)
SHARES = (0.3, 0.4, 0.5, 0.6)
SHARE_LAMBDAS = (0.7, 0.9, 1.0)
STYLES = ("plain", "marked")
QUICK_LAMBDAS = (0.7,)
QUICK_NODES = (20,)


def measure(options: Options) -> Report:
    """Return the report on quality, measured on the last folder of the data."""
    if not options.data:
        return Report("Quality", [], note="Not measured: it needs `--data`.")
    exam = Exam(options.data[-1], quick=options.quick)
    tables = [_strategies(exam), *(_sweep(exam, style, quick=options.quick) for style in STYLES)]
    if not options.quick:
        tables.append(_limits(exam))
    note = f"{exam.queries} queries on {len(exam.skills)} documents of `{options.data[-1].name}`. {_NOTE}"
    exam.close()
    return Report("Quality: evidence sufficiency and token reduction", tables, note=note)


_NOTE = (
    "A page is sufficient when it holds the lines that an annotator found a query cannot do without "
    "([format](../docs/evidence-format.md)); token reduction is 1 − page ÷ body. Style `plain` is the "
    "strategy alone, as in the paper: bare nodes, nothing passes through whole. Style `marked` is what a "
    "user gets: headings, lead-ins and elision markers are paid for, gaps cheaper than their marker are "
    "shown, and a skill that fits the budget passes through whole."
)


def _strategies(exam: Exam) -> Table:
    rows = []
    for style in STYLES:
        for strategy in ("full", "topk", "mmr"):
            score = exam.score(Paging(style, strategy))
            level = "strategy alone" if style == "plain" else "what a user gets"
            rows.append([strategy, style, level, *score.cells])
    title = "Strategies at the paper's settings: k = 20 up to 100 nodes, else 60; λ = 0.7"
    note = "`full` in style `plain` lacks the headings."
    return Table(title, ["strategy", "style", "level", *COLUMNS], rows, note)


def _sweep(exam: Exam, style: str, *, quick: bool) -> Table:
    lambdas, numbers = (QUICK_LAMBDAS, QUICK_NODES) if quick else (LAMBDAS, NODES)
    budgets: list[int | None] = [*numbers, None]
    rows = []
    for mmr_lambda in lambdas:
        scores = [exam.score(Paging(style, mmr_lambda=mmr_lambda, max_nodes=number)) for number in budgets]
        rows.append([f"{mmr_lambda}", *(score.brief for score in scores)])
    columns = ["λ", *(f"k = {number}" if number else "k = 20/60" for number in budgets)]
    level = "strategy alone" if style == "plain" else "what a user gets"
    note = f"Each cell: {BRIEF}."
    return Table(f"MMR over λ and k, style `{style}` ({level})", columns, rows, note)


def _limits(exam: Exam) -> Table:
    rows = []
    for paging in _limited():
        k = "no limit" if paging.max_nodes else "20/60"
        limit = f"{paging.share:.0%}".replace("%", " %")
        rows.append([k, f"{paging.mmr_lambda}", limit, *exam.score(paging).cells])
    columns = ["k", "λ", "max_tokens", *COLUMNS]
    title = "MMR under max_tokens, a share of the document, style `marked` (what a user gets)"
    return Table(title, columns, rows, "Markers, headings and lead-ins count towards the limit.")


def _limited() -> Iterator[Paging]:
    for max_nodes in (None, NO_LIMIT):
        for mmr_lambda in SHARE_LAMBDAS:
            for share in SHARES:
                yield Paging("marked", mmr_lambda=mmr_lambda, max_nodes=max_nodes, share=share)

"""Evidence sufficiency and token reduction by strategy, page options, and embedded text."""

from itertools import product

from options import Options
from results import Cell, Report, Table
from scoring import BRIEF, COLUMNS, Exam
from skillpager.bench.run.methods import ALL_NODES, Method
from skillpager.settings import Settings

LAMBDAS = (0.3, 0.5, 0.7, 0.9, 1.0)
NODES = (5, 10, 20, 30, 40, 60)
SHARES = (0.3, 0.4, 0.5, 0.6)
SHARE_LAMBDAS = (0.7, 0.9, 1.0)
QUICK_LAMBDAS = (0.7,)
QUICK_NODES = (20,)
STYLES = {"plain": "strategy alone", "marked": "what a user gets"}
MMR = Method(strategy="mmr", mmr_lambda=0.7)

FORMS = ("bare", "heading", "context")
EMBEDDED = {
    "topk, k = 20/60": ("plain", Method(strategy="topk")),
    "mmr λ = 0.7, k = 20/60": ("plain", MMR),
    "mmr λ = 0.9, k = 20/60": ("plain", Method(strategy="mmr", mmr_lambda=0.9)),
    "mmr λ = 0.7, k = 20/60, as a user gets it": ("marked", MMR),
    "mmr λ = 0.9, max_tokens = 40 %": (
        "marked",
        Method(strategy="mmr", mmr_lambda=0.9, max_nodes=ALL_NODES, share=0.4),
    ),
}
QUICK_EMBEDDED = ("mmr λ = 0.7, k = 20/60",)


def measure(options: Options) -> Report:
    """Return the report on quality, measured on the last folder of the data."""
    if not options.data:
        return Report("Quality", [], note="Not measured: it needs `--data`.")
    exam = Exam(options.data[-1], quick=options.quick)
    tables = [_strategies(exam), *(_sweep(exam, style, quick=options.quick) for style in STYLES)]
    if not options.quick:
        tables.append(_limits(exam))
    size = f"{len(exam.queries)} queries on {len(exam.skills)} documents of `{options.data[-1].name}`."
    exam.close()
    return Report("Quality: evidence sufficiency and token reduction", tables, note=f"{size} {_NOTE}")


_NOTE = (
    "A page is sufficient when it holds the lines that an annotator found a query cannot do without "
    "([format](../docs/measured.md)); token reduction is 1 − page ÷ body. Style `plain` is the "
    "strategy alone, as in the paper: bare nodes, nothing passes through whole. Style `marked` is what a "
    "user gets: headings, lead-ins and elision markers are paid for, gaps cheaper than their marker are "
    "shown, and a skill that fits the budget passes through whole. The encoder that ships was trained on the "
    "published `train` and `dev` documents, which flatters every number here; docs/measured.md has numbers "
    "on documents left out of the training."
)


def _strategies(exam: Exam) -> Table:
    rows = [
        [strategy, style, level, *exam.score(Method(strategy=strategy, mmr_lambda=0.7), style).cells]
        for (style, level), strategy in product(STYLES.items(), ("full", "topk", "mmr"))
    ]
    title = "Strategies at the paper's settings: k = 20 up to 100 nodes, else 60; λ = 0.7"
    note = "`full` in style `plain` lacks the headings."
    return Table(title, ["strategy", "style", "level", *COLUMNS], rows, note)


def _sweep(exam: Exam, style: str, *, quick: bool) -> Table:
    lambdas, numbers = (QUICK_LAMBDAS, QUICK_NODES) if quick else (LAMBDAS, NODES)
    rows = []
    for mmr_lambda in lambdas:
        methods = [
            Method(strategy="mmr", mmr_lambda=mmr_lambda, max_nodes=number) for number in (*numbers, None)
        ]
        rows.append([f"{mmr_lambda}", *(exam.score(method, style).brief for method in methods)])
    columns = ["λ", *(f"k = {number}" for number in numbers), "k = 20/60"]
    title = f"MMR over λ and k, style `{style}` ({STYLES[style]})"
    return Table(title, columns, rows, f"Each cell: {BRIEF}.")


def _limits(exam: Exam) -> Table:
    rows: list[list[Cell]] = []
    for max_nodes, mmr_lambda, share in product((None, ALL_NODES), SHARE_LAMBDAS, SHARES):
        method = Method(strategy="mmr", mmr_lambda=mmr_lambda, max_nodes=max_nodes, share=share)
        k = "no limit" if max_nodes else "20/60"
        cells = exam.score(method, "marked").cells
        rows.append([k, f"{mmr_lambda}", f"{100 * share:.0f} %", *cells])
    columns = ["k", "λ", "max_tokens", *COLUMNS]
    title = "MMR under max_tokens, a share of the document, style `marked` (what a user gets)"
    return Table(title, columns, rows, "Markers, headings and lead-ins count towards the limit.")


def measure_embedded_text(options: Options) -> Report:
    """Return the report on what of a node is embedded, measured on the last folder of the data."""
    title = "Embedded text: bare, with the heading path, or with heading path and lead-in"
    if not options.data:
        return Report(title, [], note="Not measured: it needs `--data`.")
    exams = {form: Exam(options.data[-1], embedded_text=form, quick=options.quick) for form in FORMS}
    rows = [
        [name, style, form, *exams[form].score(method, style).cells]
        for (name, (style, method)), form in product(EMBEDDED.items(), FORMS)
        if name in QUICK_EMBEDDED or not options.quick
    ]
    for exam in exams.values():
        exam.close()
    table = Table("Quality by embedded text", ["selection", "style", "embedded text", *COLUMNS], rows)
    note = (
        f"Documents of `{options.data[-1].name}`. The default is `{Settings().embedded_text}`, for which the "
        "encoder that ships was trained."
    )
    return Report(title, [table], note=note)

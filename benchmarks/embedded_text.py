"""What of a node should be embedded: its bare text, or its heading path too."""

from options import Options
from results import Report, Table
from scoring import COLUMNS, NO_LIMIT, Exam, Paging
from skillpager.settings import Settings

FORMS = ("bare", "heading")
SETTINGS = {
    "topk, k = 20/60": Paging("plain", "topk"),
    "mmr λ = 0.7, k = 20/60": Paging("plain"),
    "mmr λ = 0.9, k = 20/60": Paging("plain", mmr_lambda=0.9),
    "mmr λ = 0.7, k = 20/60, as a user gets it": Paging("marked"),
    "mmr λ = 0.9, max_tokens = 40 %": Paging("marked", mmr_lambda=0.9, max_nodes=NO_LIMIT, share=0.4),
}
QUICK_SETTINGS = {name: paging for name, paging in SETTINGS.items() if paging == Paging("plain")}


def measure(options: Options) -> Report:
    """Return the report on the embedded text, measured on the last folder of the data."""
    title = "Embedded text: bare or with the heading path"
    if not options.data:
        return Report(title, [], note="Not measured: it needs `--data`.")
    exams = {form: Exam(options.data[-1], embedded_text=form, quick=options.quick) for form in FORMS}
    rows = []
    for name, paging in (QUICK_SETTINGS if options.quick else SETTINGS).items():
        for form, exam in exams.items():
            rows.append([name, paging.style, form, *exam.score(paging).cells])
    for exam in exams.values():
        exam.close()
    table = Table("Quality by embedded text", ["selection", "style", "embedded text", *COLUMNS], rows)
    return Report(
        title,
        [table],
        note=f"Documents of `{options.data[-1].name}`. The default is `{Settings().embedded_text}`.",
    )

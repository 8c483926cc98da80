"""Check of the task `bibliography-cleanup`: commands of citation scripts, and classes of papers."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, commands, load, options, plain

check = Check()
calls = [c for c in commands("bib.sh") if any(w.endswith(".py") for w in c)]
check.need(len(calls) == 5, f"five calls, there are {len(calls)}")
switches = ("--deduplicate", "--descending", "--auto-fix", "--check-dois-only", "--verbose", "--validate")


def call(index, script, words, wanted, flags=()):
    """Note what the call of a script lacks."""
    if index >= len(calls):
        return
    at_ = next(i for i, w in enumerate(calls[index]) if w.endswith(".py"))
    positional, given = options(calls[index][at_:], switches)
    ok = positional[0].split("/")[-1] == script and positional[1:] == words
    ok = ok and all(given.get(k) == [v] for k, v in wanted.items()) and set(flags) <= set(given)
    if given.get("--format") == ["json"] and index == 0:
        del given["--format"]
    ok = ok and set(given) <= set(wanted) | set(flags) | {"--verbose", "--validate"}
    check.need(ok, f"call {index + 1}: {script} with the right options")


call(
    0,
    "search_google_scholar.py",
    ["solid-state batteries"],
    {
        "--year-start": "2019",
        "--year-end": "2024",
        "--sort-by": "citations",
        "--limit": "20",
        "--output": "batteries.json",
    },
)
call(
    1,
    "format_bibtex.py",
    ["messy.bib"],
    {"--sort": "year", "--output": "formatted.bib"},
    ("--deduplicate", "--descending"),
)
call(
    2,
    "validate_citations.py",
    ["formatted.bib"],
    {"--report": "validation.json", "--output": "final.bib"},
    ("--auto-fix",),
)
call(3, "validate_citations.py", ["final.bib"], {}, ("--check-dois-only",))
call(4, "doi_to_bibtex.py", [], {"--input": "dois.txt", "--output": "dois.bib"})
wanted = {
    "P1": "highly influential",
    "P2": "significant",
    "P3": "landmark",
    "P4": "seminal",
    "P5": "noteworthy",
}
a = {str(k): plain(v) for k, v in load().items()}
for paper, name in wanted.items():
    check.need(a.get(paper, "").startswith(name), f"{paper}: its class")
check.done()

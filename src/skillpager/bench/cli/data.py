"""Build benchmark folders: `skillpager bench data …`."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from skillpager.cli.messages import FAILED, UsageError, are_notes_shown, note, print_json, reported, warn
from skillpager.cli.options import AsJson, complete_skill
from skillpager.cli.views import counted, print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.data.records import QueryRecord, SkillRecord
    from skillpager.json_types import JsonObject

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Benchmark folder to write.")]


@app.callback()
def data() -> None:
    """Build benchmark folders: skills.jsonl, queries.jsonl, manifest.json.

    Needs `pip install "skillpager[bench]"`.
    """


@app.command()
@reported
def skillrouter(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="SkillRouter-Eval-Core: manifest.json, tasks.jsonl, easy/ …")
    ],
    out: Out,
    download: Annotated[
        bool, typer.Option("--download", help="First download it into DIR, from Hugging Face.")
    ] = False,
    revision: Annotated[str, typer.Option(metavar="REV", help="Branch, tag or commit to download.")] = "main",
    queries: Annotated[
        Literal["none", "tasks"],
        typer.Option(help="tasks: written by people. none: to be generated, as in the paper."),
    ] = "none",
    as_json: AsJson = False,
) -> None:
    """Build the paper's benchmark of 395 skills (its §4.1), and compare it with the paper's Table 2.

    These are all ground-truth skills with a body, and 200 of the pool, drawn with seed 42 in proportion to
    the seven namespaces. Where data and paper differ is a warning.

    \b
    Examples:
      skillpager bench data skillrouter eval_core --out skillrouter --download
      skillpager bench data skillrouter eval_core --out tasks --queries tasks
    """
    from skillpager.bench.data.fetch import download_skillrouter
    from skillpager.bench.data.skillrouter import check_composition, draw_skills, read_task_queries

    if download:
        download_skillrouter(folder, revision=revision, bars=are_notes_shown() and sys.stderr.isatty())
    draw = draw_skills(folder)
    checks = check_composition(draw)
    records = read_task_queries(folder, draw.skills) if queries == "tasks" else []
    more: JsonObject = {"composition": [asdict(check) | {"agrees": check.agrees} for check in checks]}
    _write(out, draw.skills, records, "skillrouter", draw.details, as_json=as_json, more=more)
    rows = []
    for check in checks:
        because = f" ({check.reason})" if check.reason else ""
        if not check.agrees:
            warn(f"{check.measure}: {check.expected} expected, {check.found} found{because}")
        agrees = "yes" if check.agrees else f"no{because}"
        rows.append([check.measure, check.expected, check.found, agrees])
    if not as_json:
        print_table(["measure", "expected", "here", "agrees"], rows, right=["expected", "here"])


@app.command()
@reported
def evidence(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of ID.md with ID.ann.json.")],
    out: Out,
    subset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the subset. [default: the name of DIR]")
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Take the short queries, of ID.short.json.")] = False,
    as_json: AsJson = False,
) -> None:
    """Build a benchmark of annotated documents: queries, each with the lines it needs.

    \b
    Examples:
      skillpager bench data fetch --split test --out test
      skillpager bench data evidence test --out bench-test
      skillpager bench data evidence test --short --out bench-test-short
    """
    from skillpager.bench.data.evidence import read_evidence

    name = folder.resolve().name if subset is None else subset
    skills, queries = read_evidence(folder, subset=name, short=short)
    _write(out, skills, queries, "evidence", {"subset": name}, as_json=as_json)


@app.command()
@reported
def evals(
    skills: Annotated[
        list[str],
        typer.Argument(
            metavar="SKILL…",
            help="Skill folders, or names of known skills, with an evals/evals.json.",
            autocompletion=complete_skill,
            show_default=False,
        ),
    ],
    out: Out,
    as_json: AsJson = False,
) -> None:
    """Build a benchmark of skills and their own test cases, which people wrote.

    \b
    Examples:
      skillpager bench data evals ~/.claude/skills/csv-analyzer --out evals
    """
    from skillpager.bench.data.skills import read_evals
    from skillpager.cli.session import find_skill
    from skillpager.settings import load_settings

    settings = load_settings()
    records, queries = read_evals([find_skill(skill, settings) for skill in skills])
    _write(out, records, queries, "evals", {}, as_json=as_json)


@app.command()
@reported
def skills(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="SKILL", help="Skill folders, Markdown files, or folders that contain skills."
        ),
    ],
    out: Out,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSONL of queries: skill, query, and critical lines for the evidence judge."
        ),
    ] = None,
    subset: Annotated[str, typer.Option(metavar="NAME", help="Name of the subset.")] = "own",
    as_json: AsJson = False,
) -> None:
    """Build a benchmark of any skills, all their files included.

    Without --queries a model writes them: `skillpager bench queries`.

    \b
    Examples:
      skillpager bench data skills examples/skills --queries examples/queries.jsonl --out samples
      skillpager bench data skills ~/.claude/skills --out mine
    """
    from skillpager.bench.data.skills import read_queries, read_skills

    records = read_skills(paths, subset=subset)
    asked = read_queries(queries, records) if queries else []
    _write(out, records, asked, "skills", {"subset": subset}, as_json=as_json)


@app.command()
@reported
def fetch(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of evidence data to write.")],
    split: Annotated[
        Literal["skillsbench", "test", "dev", "train", "train2"],
        typer.Option(
            help="Part of the annotations: skillsbench and test to report on; from the others models learned."
        ),
    ] = "skillsbench",
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Server of URL/REPO/COMMIT/PATH. [default: https://raw.githubusercontent.com]",
        ),
    ] = None,
    git: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Read clones, FOLDER/OWNER/NAME, instead of the network."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Parallel downloads.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Restore the documents of the published annotations from their public repositories.

    Each is read at the commit that was annotated, and written only if its SHA-256 matches. Documents that
    are in the folder are not fetched again. The exit code is 1 if any is missing.

    \b
    Examples:
      skillpager bench data fetch --split skillsbench --out skillsbench
      skillpager bench data fetch --split test --out test --git ~/clones
    """
    from skillpager.bench.data.evidence import read_published
    from skillpager.bench.data.fetch import GITHUB_RAW, Clones, RawFiles, fetch_documents

    if git is not None and mirror is not None:
        raise UsageError("--git and --mirror both say where documents are read: leave one of them out.")
    origin = Clones(git) if git is not None else RawFiles(mirror or GITHUB_RAW)
    published = read_published(split)
    with progress_bar("documents") as progress:
        missing = fetch_documents(published, out, origin, jobs=jobs, progress=progress)
    restored = len(published) - len(missing)
    if as_json:
        print_json({"out": str(out), "documents": restored, "missing": [entry.json for entry in missing]})
    elif missing:
        print_table(["missing", "why"], [[entry.document.skill, entry.problem] for entry in missing])
    note(f"{restored} of {len(published)} documents are in {out}")
    if missing:
        note("repeat the command for the others: what is there is not fetched again")
        raise typer.Exit(FAILED)


def _write(
    out: Path,
    skills: Sequence["SkillRecord"],
    queries: Sequence["QueryRecord"],
    source: str,
    details: "JsonObject",
    *,
    as_json: bool,
    more: "JsonObject | None" = None,
) -> None:
    """Write a benchmark folder; with `--json` print the entry of its manifest, and `more`."""
    from skillpager.bench.data.folder import BenchFolder, write_data

    folder = BenchFolder(out)
    written = write_data(folder, skills, queries, source=source, details=details)
    asked = counted(len(folder.queries()), "query", "queries")
    note(f"{counted(len(skills), 'skill')} and {asked} are in {out}")
    if as_json:
        print_json({"out": str(out), "data": written, **(more or {})})

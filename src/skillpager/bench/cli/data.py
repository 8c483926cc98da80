"""Build benchmark folders: `skillpager bench data …`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from skillpager.cli.messages import FAILED, note, reported
from skillpager.cli.views import counted, print_table, progress_bar

if TYPE_CHECKING:
    from skillpager.bench.data.records import QueryRecord, SkillRecord
    from skillpager.json_types import JsonObject

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Benchmark folder to write.")]


@app.callback()
def data() -> None:
    """Build benchmark folders: skills.jsonl, queries.jsonl, manifest.json.

    Needs the extra `[bench]`.
    """


@app.command()
@reported
def skillrouter(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="SkillRouter-Eval-Core, with easy/part-*.jsonl.gz.")
    ],
    out: Out,
) -> None:
    """Build the paper's benchmark of 395 skills (its §4.1).

    These are all ground-truth skills with a body, and 200 of the pool, drawn with seed 42 in proportion to
    the seven namespaces. DIR is a copy of the data set, which
    `hf download pipizhao/SkillRouter-Eval-Core --repo-type dataset --local-dir DIR` makes.

    \b
    Examples:
      skillpager bench data skillrouter eval_core --out skillrouter
    """
    from skillpager.bench.data.skillrouter import draw_skills

    skills, details = draw_skills(folder)
    _write(out, skills, [], "skillrouter", details)


@app.command()
@reported
def evidence(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of ID.md with ID.ann.json.")],
    out: Out,
    short: Annotated[bool, typer.Option("--short", help="Take the short queries, of ID.short.json.")] = False,
) -> None:
    """Build a benchmark of annotated documents: queries, each with the lines it needs.

    \b
    Examples:
      skillpager bench data fetch --split test --out test
      skillpager bench data evidence test --out bench-test
      skillpager bench data evidence test --short --out bench-test-short
    """
    from skillpager.bench.data.evidence import read_evidence

    subset = folder.resolve().name
    skills, queries = read_evidence(folder, subset=subset, short=short)
    _write(out, skills, queries, "evidence", {"subset": subset})


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
) -> None:
    """Build a benchmark of any skills, all their files included.

    Without --queries a model writes them: `skillpager bench queries`.

    \b
    Examples:
      skillpager bench data skills examples/skills --queries examples/queries.jsonl --out samples
      skillpager bench data skills ~/.claude/skills --out mine
    """
    from skillpager.bench.data.folder import read_queries, read_skills

    records = read_skills(paths)
    asked = read_queries(queries, records) if queries else []
    _write(out, records, asked, "skills", {})


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
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Take them from below FOLDER, without a network."),
    ] = None,
) -> None:
    """Restore the documents of the published annotations from their public repositories.

    Each is read at the commit that was annotated, and written only if its SHA-256 matches. Documents that
    are in the folder are not fetched again. The exit code is 1 if any is missing.

    \b
    Examples:
      skillpager bench data fetch --split skillsbench --out skillsbench
      skillpager bench data fetch --from ~/clones --out skillsbench
    """
    from skillpager.bench.data.evidence import fetch_documents, read_published

    published = read_published(split)
    with progress_bar("documents") as progress:
        missing = fetch_documents(published, out, source=source, progress=progress)
    restored = len(published) - len(missing)
    if missing:
        print_table(["missing", "why"], list(missing.items()))
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
) -> None:
    from skillpager.bench.data.folder import BenchFolder, write_data

    folder = BenchFolder(out)
    write_data(folder, skills, queries, source=source, details=details)
    asked = counted(len(folder.queries()), "query", "queries")
    note(f"{counted(len(skills), 'skill')} and {asked} are in {out}")

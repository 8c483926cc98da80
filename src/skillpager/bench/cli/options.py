"""Options that several commands share, as groups: a command takes a group as one parsed object."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from skillpager.cli.options import AsJson, CacheDir, ClassifierName, EncoderName

EVIDENCE, LLM, NO_JUDGE = "evidence", "llm", "none"
VOTES = 3  # paper §4.2
DEFAULT_JOBS = 8  # paper §4.1
# reasoning models think for minutes
DEFAULT_TIMEOUT = 180.0


def optional(*names: str, metavar: str, help: str, **limits: Any) -> Any:
    """Return an option whose default is None, which the help does not show."""
    return typer.Option(*names, metavar=metavar, help=help, show_default=False, **limits)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of a command that asks a language model; `--json` of such a command too."""

    model: Annotated[
        str | None, optional("--model", metavar="NAME", help="Chat model; SKILLPAGER_LLM_MODEL by default.")
    ] = None
    base_url: Annotated[
        str | None,
        optional(
            "--base-url",
            metavar="URL",
            help="OpenAI-compatible endpoint; SKILLPAGER_LLM_BASE_URL by default.",
        ),
    ] = None
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Requests at a time.")] = (
        DEFAULT_JOBS
    )
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="S", min=0.1, help="Seconds to wait for an answer.")
    ] = DEFAULT_TIMEOUT
    price_in: Annotated[
        float | None, optional("--price-in", metavar="X", min=0, help="Price of a million tokens sent.")
    ] = None
    price_out: Annotated[
        float | None, optional("--price-out", metavar="X", min=0, help="Price of a million tokens answered.")
    ] = None
    max_cost: Annotated[
        float | None,
        optional(
            "--max-cost", metavar="X", min=0, help="Stop before this command costs more; needs the prices."
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what it would cost, and ask nothing.")] = (
        False
    )
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask on a terminal before money is spent.")
    ] = False
    as_json: AsJson = False


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """Where a run takes its data from and writes its results to."""

    data: Annotated[
        Path | None,
        optional(
            "--data",
            metavar="DIR",
            help="Benchmark folder, or folder of evidence data; the data in --out by default.",
        ),
    ] = None
    out: Annotated[
        Path | None, optional("--out", metavar="RUN", help="Folder of the results; --data by default.")
    ] = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How methods are run and judged."""

    judge: Annotated[
        str,
        typer.Option(
            "--judge", metavar="NAME", help="evidence, llm, or none to judge later with `bench judge`."
        ),
    ] = EVIDENCE
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="STYLE",
            help="plain: the nodes alone (default), as in the paper. marked or xml: as users get it.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        optional("--jobs", "-j", metavar="N", min=1, help="Processes; one for each processor by default."),
    ] = None
    contexts: Annotated[
        bool,
        typer.Option(
            "--contexts/--no-contexts", help="Whether results hold the texts, which other judges need."
        ),
    ] = True
    encoder: EncoderName = None
    classifier: ClassifierName = None
    cache_dir: CacheDir = None

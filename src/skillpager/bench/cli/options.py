"""Options that several commands share, as groups: a command takes a group as one parsed object."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from skillpager.cli.options import AsJson, CacheDir, ClassifierName, EncoderName, Yes

EVIDENCE, LLM = "evidence", "llm"
VOTES = 3  # paper §4.2
DEFAULT_JOBS = 8  # paper §4.1
# reasoning models think for minutes
DEFAULT_TIMEOUT = 180.0


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of a command that asks a language model: which, and what it may cost."""

    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Chat model. [default: SKILLPAGER_LLM_MODEL]")
    ] = None
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="OpenAI-compatible endpoint. [default: SKILLPAGER_LLM_BASE_URL]"),
    ] = None
    price_in: Annotated[
        float | None, typer.Option(metavar="X", min=0, help="Price of a million tokens sent.")
    ] = None
    price_out: Annotated[
        float | None, typer.Option(metavar="X", min=0, help="Price of a million tokens answered.")
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(
            metavar="X", min=0, help="Send no request that may cost more than is left of X; needs the prices."
        ),
    ] = None
    yes: Yes = False
    as_json: AsJson = False
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Parallel requests.")] = (
        DEFAULT_JOBS
    )
    timeout: Annotated[float, typer.Option(metavar="S", min=0.1, help="Seconds to wait for an answer.")] = (
        DEFAULT_TIMEOUT
    )
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the expected cost; send nothing.")] = False


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The folders from which a run takes its data and into which it writes its results."""

    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Benchmark folder, or folder of evidence data. [default: the data in --out]"
        ),
    ] = None
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the results. [default: --data]")
    ] = None


AllowTrained = Annotated[
    bool,
    typer.Option(
        "--allow-trained",
        help="Also show methods that have learned from the skills; every table and picture then says so.",
    ),
]


@dataclass(frozen=True, slots=True)
class ExchangeOptions:
    """The options of judging through files: what is exported or imported, and whose answers they are."""

    export: Annotated[
        Path | None,
        typer.Option(
            metavar="SHEET",
            help="Write the cases for people to judge: CSV, or with the suffix .json tasks for Label Studio.",
        ),
    ] = None
    import_: Annotated[
        list[Path] | None,
        typer.Option(
            "--import", metavar="SHEET", help="Answered sheet, or export of Label Studio; repeatable."
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Who gave the imported answers; llm:NAME for an agent."),
    ] = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of how methods are run."""

    style: Annotated[
        str | None,
        typer.Option(
            metavar="STYLE",
            help="plain: the nodes alone, as in the paper (default). marked or xml: as agents get them.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes. [default: one per processor]"),
    ] = None
    encoder: EncoderName = None
    classifier: ClassifierName = None
    cache_dir: CacheDir = None
    allow_trained: AllowTrained = False

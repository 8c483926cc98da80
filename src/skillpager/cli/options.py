"""The options that several commands share, one by one and in groups.

A command takes a group of options as one object of a dataclass: see `skillpager.cli.messages.reported`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

SkillArgument = Annotated[
    str,
    typer.Argument(
        metavar="SKILL",
        help="A skill folder, a Markdown file, or the name of a known skill; - reads Markdown from stdin.",
        show_default=False,
    ),
]
QueryArgument = Annotated[
    str,
    typer.Argument(metavar="QUERY", help="The task at hand, a sentence in quotes; - reads it from stdin."),
]
StyleName = Annotated[
    str | None,
    typer.Option(
        "--style",
        metavar="STYLE",
        help="marked: nodes and marks for what is omitted (default). plain: nodes. xml: marked, in a tag.",
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="How nodes are picked: navigator (default), lean, mmr, topk, full, head, sections, bm25, "
        "hybrid, dpp, msd or cover. Baselines of the paper: greedy_graph[:GAIN], topk_dependency, "
        "mmr_graph, exec_only, concept_only, density[:SHARE]. "
        "MODULE:NAME is one of your own.",
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="Embedding model: builtin (default), builtin:FOLDER, onnx:FOLDER, sentence-transformers:MODEL, "
        "openai:MODEL, hashing, or MODULE:NAME of your own.",
    ),
]
ClassifierName = Annotated[
    str | None,
    typer.Option(
        "--classifier",
        metavar="NAME",
        help="Classifier of node types: local (default), llm, or MODULE:NAME of your own.",
    ),
]
CacheDir = Annotated[
    Path | None, typer.Option("--cache-dir", metavar="DIR", help="Folder for stored indexes.", file_okay=True)
]
SkillFolders = Annotated[
    list[Path] | None,
    typer.Argument(metavar="DIR", help="Folders of skills. [default: those of `skillpager list`]"),
]
SkillsDirs = Annotated[
    list[Path] | None,
    typer.Option("--skills-dir", metavar="DIR", help="Further folder of skills; may be repeated."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens", metavar="N", help="Longest page, omission marks included. [default: no limit]"
    ),
]
Fill = Annotated[
    bool | None,
    typer.Option(
        "--fill/--no-fill",
        help="Fill the page up to its limits, even with what the query hardly needs, as strategies other "
        "than navigator always do.",
        show_default=False,
    ),
]
Context = Annotated[
    str, typer.Option("--context", help='Your situation, such as "TypeScript, Linux": which variant to read.')
]
Force = Annotated[bool, typer.Option("--force", help="Print a page even if it hardly covers the query.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON; errors and warnings become JSON lines on stderr.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where indexes are stored: settings of the same names, which a command may replace."""

    cache_dir: CacheDir = None
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="PostgreSQL database for stored indexes: postgresql://USER@HOST/DATABASE. A password is "
            "better put in PGPASSFILE, because others on this machine can see options.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class EncoderOptions(StoreOptions):
    """Where skills are found, and what compares them with a query."""

    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            metavar="NAME",
            help="Library of the PostgreSQL store, whose skills are offered; none for none. "
            "[default: default]",
        ),
    ] = None
    encoder: EncoderName = None


@dataclass(frozen=True, slots=True)
class IndexOptions(EncoderOptions):
    """Settings of all that an index is made with, for commands that always take the whole skill."""

    classifier: ClassifierName = None


@dataclass(frozen=True, slots=True)
class PagerOptions(IndexOptions):
    """Settings of indexes, and how much of a skill belongs to it."""

    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="skill: all Markdown of its folder (default). body: SKILL.md alone.",
        ),
    ] = None

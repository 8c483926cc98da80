"""The options that several commands share, one by one and in groups, and how a shell completes them.

A command takes a group of options as one object of a dataclass: see `skillpager.cli.messages.reported`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

SHOWN_DESCRIPTION = 60


def complete_skill(incomplete: str) -> list[tuple[str, str]]:
    """Return the known skills whose names begin with `incomplete`, each with its description."""
    from skillpager.errors import SkillPagerError
    from skillpager.library import discover
    from skillpager.library.agent_folders import search_folders
    from skillpager.output.formatting import snippet
    from skillpager.settings import load_settings

    try:
        found = discover(search_folders(load_settings().skills_dir))
    except SkillPagerError:
        # completion has no way to show an error; the command itself will
        return []
    return [
        (skill.name, snippet(skill.description, SHOWN_DESCRIPTION))
        for skill in found
        if skill.name.startswith(incomplete) and skill.problem is None and skill.shadowed_by is None
    ]


def complete_strategy(incomplete: str) -> list[str]:
    """Return the strategies that begin with `incomplete`, with a colon where an argument must follow."""
    from skillpager.strategies.registry import FAMILIES

    return [
        f"{name}:" if family.argument and family.argument.required else name
        for name, family in FAMILIES.items()
        if name.startswith(incomplete)
    ]


def completion(module: str, name: str) -> Callable[[str], list[str]]:
    """Return a completion function for the values of `module.name`, imported when a shell asks for them.

    Of a value with a placeholder, such as `openai:<model>`, the part before it is completed.
    """

    def complete(incomplete: str) -> list[str]:
        values = (str(value).partition("<")[0] for value in getattr(import_module(module), name))
        return [value for value in values if value.startswith(incomplete)]

    return complete


SkillArgument = Annotated[
    str,
    typer.Argument(
        metavar="SKILL",
        help="A skill folder, a Markdown file, or the name of a known skill; - reads Markdown from stdin.",
        autocompletion=complete_skill,
        show_default=False,
    ),
]
QueryArgument = Annotated[
    str, typer.Argument(metavar="QUERY", help="The task at hand, in a sentence; - reads it from stdin.")
]
StyleName = Annotated[
    str | None,
    typer.Option(
        "--style",
        metavar="STYLE",
        help="marked: nodes under their headings, with a mark for each omission (default). plain: nodes "
        "only. xml: as marked, inside an XML tag.",
        autocompletion=completion("skillpager.types", "Style"),
    ),
]
StrategyName = Annotated[
    str | None,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="How nodes are picked: navigator (default), mmr, topk, full, head, sections, bm25, hybrid, dpp, "
        "msd or cover. Baselines of the paper: greedy_graph[:GAIN], topk_dependency, "
        "mmr_graph, exec_only, concept_only, density[:SHARE]. With a further model: reranker:MODEL. "
        "MODULE:NAME is one of your own.",
        autocompletion=complete_strategy,
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="Embedding model: builtin (default), builtin:FOLDER, onnx:FOLDER, sentence-transformers:MODEL, "
        "openai:MODEL, hashing, or MODULE:NAME of your own.",
        autocompletion=completion("skillpager.factories", "ENCODERS"),
    ),
]
ClassifierName = Annotated[
    str | None,
    typer.Option(
        "--classifier",
        metavar="NAME",
        help="Classifier of node types: local (default), llm, or MODULE:NAME of your own.",
        autocompletion=completion("skillpager.factories", "CLASSIFIERS"),
    ),
]
CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", metavar="DIR", help="Folder for stored indexes.", file_okay=True),
]
StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="PostgreSQL database for stored indexes, in place of a folder: postgresql://USER@HOST/DATABASE. "
        "A password is better put in PGPASSFILE: others on this machine can see options.",
    ),
]
LibraryName = Annotated[
    str | None,
    typer.Option(
        "--library",
        metavar="NAME",
        help="Library of the PostgreSQL store: skills are published to it, and those in it are offered. "
        "none for none. [default: default]",
        show_default=False,
    ),
]
SkillFolders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIR",
        help="Folders of skills. [default: those that `skillpager list` searches]",
        show_default=False,
    ),
]
SkillsDirs = Annotated[
    list[Path] | None,
    typer.Option("--skills-dir", metavar="DIR", help="Further folder of skills; may be repeated."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON; errors and warnings become JSON lines on stderr.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where indexes are stored: settings of the same names, which a command may replace."""

    cache_dir: CacheDir = None
    store: StoreAddress = None


@dataclass(frozen=True, slots=True)
class EncoderOptions(StoreOptions):
    """Where skills are found, and what compares them with a query."""

    library: LibraryName = None
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
            help="skill: SKILL.md and the files it links to (default). body: SKILL.md alone.",
            autocompletion=completion("skillpager.parsing.skill", "SCOPES"),
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class PickOptions:
    """How nodes are picked, as in `skillpager.types.PageOptions`."""

    max_nodes: Annotated[
        int | None,
        typer.Option(
            "--max-nodes",
            "-k",
            metavar="N",
            help="Pick at most N nodes; small gaps between them are filled on top. [default: no limit with "
            "navigator, otherwise 20, or 60 for skills of more than 100 nodes]",
        ),
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens", metavar="N", help="Longest page, omission marks included. [default: no limit]"
        ),
    ] = None
    fill: Annotated[
        bool | None,
        typer.Option(
            "--fill/--no-fill",
            help="Fill the page up to --max-nodes and --max-tokens, even with what the query hardly needs. "
            "[default: no-fill; strategies other than navigator always fill it]",
            show_default=False,
        ),
    ] = None
    sufficiency: Annotated[
        float | None,
        typer.Option(
            "--sufficiency",
            metavar="P",
            help="Stop once the page holds everything needed with this estimated probability, such as 0.9. "
            "[default: stop when each remaining node adds too little for its tokens]",
        ),
    ] = None
    mmr_lambda: Annotated[
        float | None,
        typer.Option(
            "--lambda",
            metavar="X",
            help="Use the strategy mmr, weighing relevance (1) against variety (0). [default: 0.7]",
        ),
    ] = None
    strategy: StrategyName = None
